/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Predefined operations and element types: their numbers on the wire and how to apply them.
 *  A type travels as Open MPI's number for it; types of the same representation share one (MPI_INT
 *  and MPI_INT32_T). May run on the server thread, so only predefined objects are read. */

#include "osc_nicstride/window/op.h"
#include "common/layout/flatten.h"

#include "ompi/datatype/ompi_datatype_internal.h"

/* The number after Open MPI's own ones: MPI_NO_OP has none there. */
#define OP_NO_OP OMPI_OP_NUM_OF_TYPES

static ompi_op_t *const ops[] = {
    [OMPI_OP_MAX] = &ompi_mpi_op_max.op,         [OMPI_OP_MIN] = &ompi_mpi_op_min.op,
    [OMPI_OP_SUM] = &ompi_mpi_op_sum.op,         [OMPI_OP_PROD] = &ompi_mpi_op_prod.op,
    [OMPI_OP_LAND] = &ompi_mpi_op_land.op,       [OMPI_OP_BAND] = &ompi_mpi_op_band.op,
    [OMPI_OP_LOR] = &ompi_mpi_op_lor.op,         [OMPI_OP_BOR] = &ompi_mpi_op_bor.op,
    [OMPI_OP_LXOR] = &ompi_mpi_op_lxor.op,       [OMPI_OP_BXOR] = &ompi_mpi_op_bxor.op,
    [OMPI_OP_MAXLOC] = &ompi_mpi_op_maxloc.op,   [OMPI_OP_MINLOC] = &ompi_mpi_op_minloc.op,
    [OMPI_OP_REPLACE] = &ompi_mpi_op_replace.op, [OP_NO_OP] = &ompi_mpi_op_no_op.op,
};

int nicstride_op_index(const ompi_op_t *op)
{
    if (op == &ompi_mpi_op_no_op.op)
        return OP_NO_OP;
    for (int i = 0; i < (int)(sizeof(ops) / sizeof(ops[0])); i++)
        if (ops[i] == op)
            return i;
    return -1;
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

int nicstride_elements_init(void)
{
    size_t size, extent;

    for (unsigned i = 0; i < OMPI_DATATYPE_MPI_UNAVAILABLE; i++)
        if (nicstride_dtype_size(i, &size, &extent) && size != extent &&
            onic_flatten(dtype_at(i), 1, &elements[i], NULL) != OMPI_SUCCESS)
            return OMPI_ERR_OUT_OF_RESOURCE;
    return OMPI_SUCCESS;
}

void nicstride_elements_fini(void)
{
    for (unsigned i = 0; i < OMPI_DATATYPE_MPI_UNAVAILABLE; i++)
        onic_layout_fini(&elements[i]);
}

bool nicstride_accop_init(nicstride_accop_t *a, unsigned op, unsigned dtype)
{
    int slot;

    if (op >= sizeof(ops) / sizeof(ops[0]) || ops[op] == NULL ||
        !nicstride_dtype_size(dtype, &a->apply.size, &a->apply.extent))
        return false;
    a->op = ops[op];
    a->dt = (ompi_datatype_t *)(uintptr_t)dtype_at(dtype);
    a->apply.reduce = reduce;
    a->apply.ctx = a;
    a->apply.elem = &elements[dtype];
    a->apply.kind = op == OP_NO_OP          ? NICSTRIDE_APPLY_NO_OP
                    : op == OMPI_OP_REPLACE ? NICSTRIDE_APPLY_REPLACE
                                            : NICSTRIDE_APPLY_REDUCE;
    if (a->apply.kind != NICSTRIDE_APPLY_REDUCE)
        return true;
    if (a->apply.size != a->apply.extent && elements[dtype].size == 0)
        return false;
    slot = ompi_op_ddt_map[dtype];
    return slot >= 0 && a->op->o_func.intrinsic.fns[slot] != NULL;
}
