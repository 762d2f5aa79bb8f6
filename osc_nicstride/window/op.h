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

/** Index of a predefined operation, or of a datatype's element type, as it travels; -1: none. */
int nicstride_op_index(const ompi_op_t *op);
int nicstride_dtype_index(ompi_datatype_t *dt);
/** Sizes of an element type; false where the index is none. */
bool nicstride_dtype_size(unsigned dtype, size_t *size_p, size_t *extent_p);

/** Does MPI_Fetch_and_op take the type? Any predefined one, and none that is made from one, by
 *  MPI_Type_dup either. MPI_DATATYPE_NULL counts as predefined, but has no size. */
static inline bool nicstride_fetches(const ompi_datatype_t *dt)
{
    return ompi_datatype_is_predefined(dt) && dt->super.size > 0;
}

/** By Open MPI's number, the types that MPI_Compare_and_swap takes. */
extern const bool nicstride_swappable[];

/** Does MPI_Compare_and_swap take the type? Predefined integers of C and Fortran, logical types,
 *  addresses, offsets, counts and bytes; and MPI_CHAR, which MPI does not name but other libraries
 *  take and OSU's osu_cas_latency uses. */
static inline bool nicstride_swaps(const ompi_datatype_t *dt)
{
    return nicstride_fetches(dt) && nicstride_swappable[dt->id];
}

/** An operation on an element type, ready to apply. `elem` is its layout. */
typedef struct nicstride_accop {
    nicstride_apply_t apply;
    ompi_op_t *op;
    ompi_datatype_t *dt;
} nicstride_accop_t;

/** Makes the layouts of element types that have gaps; frees them. */
int nicstride_elements_init(void);
void nicstride_elements_fini(void);

/** False where the operation is not defined for the type. */
bool nicstride_accop_init(nicstride_accop_t *a, unsigned op, unsigned dtype);
