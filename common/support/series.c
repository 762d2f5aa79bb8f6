/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/support/series.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/config.h"
#include "common/support/help.h"
#include "common/ompi_compat.h"

#include ONIC_MUTEX_HEADER
#include "ompi/communicator/communicator.h"
#include "ompi/win/win.h"

#include "mpi.h"

/** A structure of which Open MPI tells the size that it has there: what a class makes. */
struct known_size {
    const opal_class_t *running;
    size_t built;
};

/** Those that a component reads, and the mutex that is part of many. */
static const struct known_size known_sizes[] = {
    {OBJ_CLASS(opal_mutex_t), sizeof(opal_mutex_t)},
    {OBJ_CLASS(ompi_communicator_t), sizeof(ompi_communicator_t)},
    {OBJ_CLASS(ompi_win_t), sizeof(ompi_win_t)},
};

static bool version_matches(const char *component)
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

static bool sizes_match(const char *component)
{
    for (size_t i = 0; i < sizeof(known_sizes) / sizeof(known_sizes[0]); i++) {
        const struct known_size *k = &known_sizes[i];
        if (k->running->cls_sizeof == k->built) {
            continue;
        }
        char refusal[256];
        snprintf(refusal, sizeof(refusal),
                 "%s was built with an %s of %zu bytes and refuses to run in this Open MPI, where "
                 "it has %zu: build and install it again with this one",
                 component, k->running->cls_name, k->built, k->running->cls_sizeof);
        onic_say_once(refusal);
        return false;
    }
    return true;
}

bool onic_series_matches(const char *component)
{
    return version_matches(component) && sizes_match(component);
}
