/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/ompi_compat.h"

#include <stdlib.h>

#include "ompi/constants.h"
#include "ompi/datatype/ompi_datatype.h"

#include "common/layout/lost_stride.h"

/* Most children of a constructor that are looked at without asking for memory. */
#define CHILDREN 8

/* How many of what a type was made from. */
typedef struct made_from {
    int combiner;
    int32_t nints, naddresses, ntypes;
} made_from_t;

/* Whether the constructor, which is a vector of either kind, gives opal_datatype_add() an extent of
 * -1. It takes that for the child's own, which is right where that is -1, too. */
static bool vector_loses(const ompi_datatype_t *dt, made_from_t m, const ompi_datatype_t *child)
{
    const ptrdiff_t extent = child->super.ub - child->super.lb;
    int ints[3] = {0}; /* count, blocklength; and stride, in elements */
    ptrdiff_t bytes = 0;

    if (ompi_datatype_get_args(dt, 1, &m.nints, ints, &m.naddresses, &bytes, &m.ntypes, NULL,
                               &m.combiner) != OMPI_SUCCESS) {
        return false;
    }
    if (m.combiner == MPI_COMBINER_VECTOR && __builtin_mul_overflow(extent, ints[2], &bytes)) {
        return false;
    }
    return bytes == -1 && ints[0] > 1 && ints[1] > 0 && (ints[1] > 1 || extent != -1);
}

/* In the children but the first, which differ from the one before them. */
static bool others_lose(ompi_datatype_t *const *child, int32_t n)
{
    for (int32_t i = 1; i < n; i++) {
        if (child[i] != child[i - 1] && onic_lost_stride(child[i])) {
            return true;
        }
    }
    return false;
}

/* False for a predefined type, and where there are no bytes. */
static bool how_made(const ompi_datatype_t *dt, made_from_t *m)
{
    return dt->super.size > 0 && !(dt->super.flags & OPAL_DATATYPE_FLAG_PREDEFINED) &&
           ompi_datatype_get_args(dt, 0, &m->nints, NULL, &m->naddresses, NULL, &m->ntypes, NULL,
                                  &m->combiner) == OMPI_SUCCESS &&
           m->ntypes > 0;
}

bool onic_lost_stride(const ompi_datatype_t *dt)
{
    ompi_datatype_t *held[CHILDREN];
    bool lost = false;
    made_from_t m;

    while (!lost && how_made(dt, &m)) {
        ompi_datatype_t **child =
            m.ntypes <= CHILDREN ? held : malloc((size_t)m.ntypes * sizeof(*child));
        if (child == NULL) {
            return true;
        }
        ompi_datatype_get_args(dt, 1, &m.nints, NULL, &m.naddresses, NULL, &m.ntypes, child,
                               &m.combiner);
        if (m.combiner == MPI_COMBINER_VECTOR || m.combiner == MPI_COMBINER_HVECTOR) {
            lost = vector_loses(dt, m, child[0]);
        } else {
            lost = others_lose(child, m.ntypes);
        }
        dt = child[0];
        if (child != held) {
            free(child);
        }
    }
    return lost;
}
