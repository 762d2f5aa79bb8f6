/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Predefined operations and element types, as accumulates name and apply them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/ompi_compat.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/op/op.h"

#include "osc_nicstride/protocol/apply.h"

/** The number on the wire of a predefined operation, or of a datatype's element type; -1: it has
 *  none. */
int nicstride_op_index(const ompi_op_t *op);
int nicstride_dtype_index(ompi_datatype_t *dt);
/** Sizes of an element type, in bytes; false if there is no such type. */
bool nicstride_dtype_size(unsigned dtype, size_t *size_p, size_t *extent_p);

/** True if MPI_Fetch_and_op takes the type: any predefined one, but none derived from one, not even
 *  by MPI_Type_dup. MPI_DATATYPE_NULL counts as predefined, but has no size. */
static inline bool nicstride_fetches(const ompi_datatype_t *dt)
{
    return ompi_datatype_is_predefined(dt) && dt->super.size > 0;
}

/** True for the types that MPI_Compare_and_swap takes, by Open MPI's numbers. */
extern const bool nicstride_swappable[];

/** True if MPI_Compare_and_swap takes the type: predefined integers of C and Fortran, logical
 *  types, addresses, offsets, counts and bytes. MPI_CHAR is also accepted; MPI does not name it,
 *  but other libraries take it and OSU's osu_cas_latency uses it. */
static inline bool nicstride_swaps(const ompi_datatype_t *dt)
{
    return nicstride_fetches(dt) && nicstride_swappable[dt->id];
}

/** An operation on an element type, ready to be applied. `elem` is the layout of an element. */
typedef struct nicstride_accop {
    nicstride_apply_t apply;
    ompi_op_t *op;
    ompi_datatype_t *dt;
} nicstride_accop_t;

/** Begin and end the use of operations. */
int nicstride_ops_init(void);
void nicstride_ops_fini(void);

/** Prepares an operation; false if it is not defined for the type. */
bool nicstride_accop_init(nicstride_accop_t *a, unsigned op, unsigned dtype);
