/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/series.h"

#include <stdio.h>
#include <string.h>

#include "common/config.h"
#include "common/help.h"
#include "common/ompi_compat.h"

#include "mpi.h"

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
    char refusal[256];
    snprintf(refusal, sizeof(refusal),
             "%s was built for Open MPI %d.%d and refuses to run in Open MPI %d.%d: "
             "build and install it again with this one",
             component, OMPI_NIC_OMPI_MAJOR, OMPI_NIC_OMPI_MINOR, major, minor);
    onic_say_once(refusal);
    return false;
}
