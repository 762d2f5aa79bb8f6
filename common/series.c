/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE
#include "common/series.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/config.h"
#include "common/ompi_compat.h"

#include "mpi.h"
#include "opal/util/output.h"
#include "opal/util/show_help.h"

bool onic_series_matches(const char *component)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int len = 0, major = -1, minor = -1;
    MPI_Get_library_version(text, &len);
    const char *v = strstr(text, "Open MPI v");
    if (v != NULL && sscanf(v, "Open MPI v%d.%d", &major, &minor) == 2 &&
        major == OMPI_NIC_OMPI_MAJOR && minor == OMPI_NIC_OMPI_MINOR) {
        return true;
    }
    opal_output(0,
                "%s was built for Open MPI %d.%d and refuses to run in Open MPI %d.%d: "
                "build and install it again with this one",
                component, OMPI_NIC_OMPI_MAJOR, OMPI_NIC_OMPI_MINOR, major, minor);
    return false;
}

void onic_add_help_dir(const void *inside, const char *otherwise)
{
    Dl_info self;
    char dir[PATH_MAX];
    const char *slash = NULL;
    if (dladdr(inside, &self) != 0 && self.dli_fname != NULL) {
        slash = strrchr(self.dli_fname, '/');
    }
    if (slash == NULL || (size_t)(slash - self.dli_fname) >= sizeof(dir)) {
        opal_show_help_add_dir(otherwise);
        return;
    }
    memcpy(dir, self.dli_fname, (size_t)(slash - self.dli_fname));
    dir[slash - self.dli_fname] = '\0';
    opal_show_help_add_dir(dir);
}
