/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/support/series.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "common/config.h"
#include "common/support/help.h"
#include "common/support/selection.h"
#include ONIC_MUTEX_HEADER
#include "ompi/communicator/communicator.h"
#include "ompi/constants.h"
#include "ompi/win/win.h"
#include "opal/mca/base/mca_base_var.h"

/* ---- has anybody asked? ---------------------------------------------------------------------- */

/** True if the framework's parameter (osc, pml or coll) names the component. A component that
 *  nobody has asked for prints nothing. Also in another series. */
static bool is_named(const mca_base_component_t *c)
{
    const char *const *list = NULL;
    const int i = mca_base_var_find("ompi", c->mca_type_name, NULL, NULL);

    return i >= 0 && mca_base_var_get_value(i, &list, NULL, NULL) == OPAL_SUCCESS && list != NULL &&
           onic_selects(*list, c->mca_component_name);
}

/** True if a priority was given, whether right or not. By the interface that has been the same
 *  since Open MPI 1.7: in another series nothing else may be registered. */
static bool has_priority(const mca_base_component_t *c)
{
    static int value;
    mca_base_var_source_t source = MCA_BASE_VAR_SOURCE_DEFAULT;
    const int i =
        mca_base_component_var_register(c, "priority", NULL, MCA_BASE_VAR_TYPE_INT, NULL, 0, 0,
                                        OPAL_INFO_LVL_9, MCA_BASE_VAR_SCOPE_READONLY, &value);

    return i >= 0 && mca_base_var_get_value(i, NULL, &source, NULL) == OPAL_SUCCESS &&
           source != MCA_BASE_VAR_SOURCE_DEFAULT;
}

/* ---- the version check ----------------------------------------------------------------------- */

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

/** Writes why the running series is not the one for which the component was built. */
static bool version_matches(char *why, size_t size)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int len = 0, major = -1, minor = -1;

    MPI_Get_library_version(text, &len);
    const char *v = strstr(text, "Open MPI v");
    if (v != NULL && sscanf(v, "Open MPI v%d.%d", &major, &minor) == 2 &&
        major == OMPI_NIC_OMPI_MAJOR && minor == OMPI_NIC_OMPI_MINOR)
        return true;
    snprintf(why, size, "for Open MPI %d.%d and refuses to run in Open MPI %d.%d",
             OMPI_NIC_OMPI_MAJOR, OMPI_NIC_OMPI_MINOR, major, minor);
    return false;
}

static bool sizes_match(char *why, size_t size)
{
    for (size_t i = 0; i < sizeof(known_sizes) / sizeof(known_sizes[0]); i++) {
        const struct known_size *k = &known_sizes[i];

        if (k->running->cls_sizeof == k->built)
            continue;
        snprintf(why, size,
                 "with an %s of %zu bytes and refuses to run in this Open MPI, where it has %zu",
                 k->running->cls_name, k->built, k->running->cls_sizeof);
        return false;
    }
    return true;
}

bool onic_series_matches(const mca_base_component_t *c)
{
    char why[200];

    if (version_matches(why, sizeof(why)) && sizes_match(why, sizeof(why)))
        return true;
    if (is_named(c) || has_priority(c))
        onic_say_once("%s_%s was built %s: build and install it again with this one",
                      c->mca_type_name, c->mca_component_name, why);
    return false;
}
