/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Predefined operations and element types: their numbers on the wire and how to apply them.
 *  An operation travels as its number in Fortran, a type as Open MPI's number for it; types of the
 *  same representation share one (MPI_INT and MPI_INT32_T). May run on the server thread, so only
 *  predefined objects are read. */

#include "osc_nicstride/window/op.h"
#include "common/layout/flatten.h"

#include "ompi/datatype/ompi_datatype_internal.h"
#include "opal/class/opal_pointer_array.h"

/* The predefined operations by Open MPI's numbers for Fortran. Looked up once, because its own
 * table may move while programs make operations. */
static ompi_op_t *ops[OMPI_OP_BASE_FORTRAN_OP_MAX];

int nicstride_op_index(const ompi_op_t *op)
{
    return (op->o_flags & OMPI_OP_FLAGS_INTRINSIC) != 0 &&
                   op->o_f_to_c_index != OMPI_OP_BASE_FORTRAN_NULL
               ? op->o_f_to_c_index
               : -1;
}

/* LONG and UNSIGNED_LONG have numbers of their own. All other C integers, and the sized ones of
 * Fortran, have the number of their size. */
const bool nicstride_swappable[OMPI_DATATYPE_MPI_MAX_PREDEFINED] = {
    [OMPI_DATATYPE_MPI_INT8_T] = true,  [OMPI_DATATYPE_MPI_UINT8_T] = true,
    [OMPI_DATATYPE_MPI_INT16_T] = true, [OMPI_DATATYPE_MPI_UINT16_T] = true,
    [OMPI_DATATYPE_MPI_INT32_T] = true, [OMPI_DATATYPE_MPI_UINT32_T] = true,
    [OMPI_DATATYPE_MPI_INT64_T] = true, [OMPI_DATATYPE_MPI_UINT64_T] = true,
    [OMPI_DATATYPE_MPI_LONG] = true,    [OMPI_DATATYPE_MPI_UNSIGNED_LONG] = true,
    [OMPI_DATATYPE_MPI_INTEGER] = true, [OMPI_DATATYPE_MPI_LOGICAL] = true,
    [OMPI_DATATYPE_MPI_C_BOOL] = true,  [OMPI_DATATYPE_MPI_BOOL] = true,
    [OMPI_DATATYPE_MPI_AINT] = true,    [OMPI_DATATYPE_MPI_OFFSET] = true,
    [OMPI_DATATYPE_MPI_COUNT] = true,
};

static const ompi_datatype_t *dtype_at(unsigned dtype)
{
    const ompi_datatype_t *dt;

    /* The first is no datatype, by another name in each series. */
    if (dtype == 0 || dtype >= OMPI_DATATYPE_MPI_UNAVAILABLE)
        return NULL;
    dt = ompi_datatype_basicDatatypes[dtype];
    return dt != NULL && dt->super.size > 0 && dt->super.size <= 64 ? dt : NULL;
}

int nicstride_dtype_index(ompi_datatype_t *dt)
{
    ompi_datatype_t *element = ompi_datatype_get_single_predefined_type_from_args(dt);

    return element != NULL && dtype_at((unsigned)element->id) != NULL ? element->id : -1;
}

bool nicstride_dtype_size(unsigned dtype, size_t *size_p, size_t *extent_p)
{
    const ompi_datatype_t *dt = dtype_at(dtype);

    if (dt == NULL)
        return false;
    *size_p = dt->super.size;
    *extent_p = (size_t)(dt->super.ub - dt->super.lb);
    return true;
}

static void reduce(void *ctx, const void *src, void *dst, size_t n)
{
    nicstride_accop_t *a = ctx;

    ompi_op_reduce(a->op, (void *)(uintptr_t)src, dst, n, a->dt);
}

/* The layouts of elements whose memory form differs from their packed form, by type; others need
 * none. Made once, because handlers may only read predefined objects of Open MPI. */
static onic_layout_t elements[OMPI_DATATYPE_MPI_UNAVAILABLE];

int nicstride_ops_init(void)
{
    size_t size, extent;

    for (int i = 0; i < OMPI_OP_BASE_FORTRAN_OP_MAX; i++)
        ops[i] = opal_pointer_array_get_item(ompi_op_f_to_c_table, i);
    for (unsigned i = 0; i < OMPI_DATATYPE_MPI_UNAVAILABLE; i++)
        if (nicstride_dtype_size(i, &size, &extent) && size != extent &&
            onic_flatten(dtype_at(i), 1, &elements[i], NULL) != OMPI_SUCCESS)
            return OMPI_ERR_OUT_OF_RESOURCE;
    return OMPI_SUCCESS;
}

void nicstride_ops_fini(void)
{
    for (unsigned i = 0; i < OMPI_DATATYPE_MPI_UNAVAILABLE; i++)
        onic_layout_fini(&elements[i]);
}

bool nicstride_accop_init(nicstride_accop_t *a, unsigned op, unsigned dtype)
{
    int slot;

    if (op == OMPI_OP_BASE_FORTRAN_NULL || op >= OMPI_OP_BASE_FORTRAN_OP_MAX ||
        !nicstride_dtype_size(dtype, &a->apply.size, &a->apply.extent))
        return false;
    a->op = ops[op];
    a->dt = (ompi_datatype_t *)(uintptr_t)dtype_at(dtype);
    a->apply.reduce = reduce;
    a->apply.ctx = a;
    a->apply.elem = &elements[dtype];
    a->apply.kind = op == OMPI_OP_BASE_FORTRAN_NO_OP     ? NICSTRIDE_APPLY_NO_OP
                    : op == OMPI_OP_BASE_FORTRAN_REPLACE ? NICSTRIDE_APPLY_REPLACE
                                                         : NICSTRIDE_APPLY_REDUCE;
    if (a->apply.kind != NICSTRIDE_APPLY_REDUCE)
        return true;
    if (a->apply.size != a->apply.extent && elements[dtype].size == 0)
        return false;
    slot = ompi_op_ddt_map[dtype];
    return slot >= 0 && a->op->o_func.intrinsic.fns[slot] != NULL;
}
