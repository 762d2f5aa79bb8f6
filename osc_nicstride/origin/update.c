/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/layout/copy.h"
#include "common/support/device.h"
#include "osc_nicstride/methods/methods.h"
#include "osc_nicstride/origin/origin.h"
#include "osc_nicstride/sync/fence.h"
#include "osc_nicstride/target/target.h"
#include "osc_nicstride/window/hold.h"

/* Stands for elements of several types. */
#define ANY_TYPE (ompi_mpi_byte.dt.id)

/** True if the elements may be of several types. The standard forbids that, but Open MPI and its
 *  components allow it if values are only replaced or fetched, which is done byte by byte. */
static bool takes_any_type(const ompi_op_t *op)
{
    return op == &ompi_mpi_op_replace.op || op == &ompi_mpi_op_no_op.op;
}

/** Checks operation and element type, which must be the same on both sides; sets them in `t`. */
static int check_types(nicstride_transfer_t *t, ompi_op_t *op, const nicstride_arguments_t *g)
{
    const int element = nicstride_dtype_index(g->target_dt), index = nicstride_op_index(op);
    const bool same = g->origin_dt == NULL || g->origin_dt == g->target_dt ||
                      nicstride_dtype_index(g->origin_dt) == element;
    const int dtype = (element < 0 || !same) && takes_any_type(op) ? ANY_TYPE : element;
    nicstride_accop_t accop;

    if (index < 0)
        return nicstride_error(t->m, t->call, MPI_ERR_OP, "operation %s is not a predefined one",
                               op->o_name);
    if (dtype < 0)
        return nicstride_error(t->m, t->call, MPI_ERR_TYPE,
                               "the target datatype is not made of one predefined type");
    if (!same && dtype != ANY_TYPE)
        return nicstride_error(t->m, t->call, MPI_ERR_TYPE,
                               "the elements of the origin and the target datatype differ");
    if (!nicstride_accop_init(&accop, (unsigned)index, (unsigned)dtype))
        return nicstride_error(t->m, t->call, MPI_ERR_OP, "operation %s is not defined for %s",
                               op->o_name, accop.dt->name);
    t->op = (uint16_t)index;
    t->dtype = (uint16_t)dtype;
    t->granule = (uint32_t)accop.apply.size;
    return OMPI_SUCCESS;
}

/** Where old values go. All zero: nothing is fetched. */
typedef struct result {
    void *base;
    onic_rma_count_t count;
    ompi_datatype_t *dt;
} result_t;

static const result_t no_result;

static int open_result(nicstride_transfer_t *t, const nicstride_arguments_t *g,
                       const result_t *result)
{
    int rc;

    t->result_base = result->base;
    if (result->dt == NULL)
        return OMPI_SUCCESS;
    rc = nicstride_flatten(t->m, t->call, "result", result->dt, (size_t)result->count, &t->result);
    if (rc != OMPI_SUCCESS)
        return rc;
    if (result->dt != g->target_dt && t->dtype != ANY_TYPE &&
        nicstride_dtype_index(result->dt) != t->dtype)
        return nicstride_error(t->m, t->call, MPI_ERR_TYPE,
                               "the elements of the result and the target datatype differ");
    rc = nicstride_fit(t->m, t->call, "target", t->target.size, "result", &t->result);
    if (rc != OMPI_SUCCESS)
        return rc;
    return nicstride_check_host(t->m, t->call, "result", result->base, &t->result);
}

/** Bytes of the target if all sides have equally many contiguous elements of one predefined type;
 *  else 0. */
static inline size_t plain_update(const nicstride_arguments_t *g, const ompi_op_t *op,
                                  const result_t *result)
{
    const size_t bytes = nicstride_gapless_bytes(g->target_dt, (size_t)g->target_count);
    const bool fetches = result->dt != NULL;

    if (bytes == 0 || !ompi_datatype_is_predefined(g->target_dt))
        return 0;
    if (fetches &&
        (result->base == NULL || result->dt != g->target_dt || result->count != g->target_count))
        return 0;
    if (op == &ompi_mpi_op_no_op.op)
        return fetches ? bytes : 0;
    return g->origin_dt == g->target_dt && g->origin_count == g->target_count ? bytes : 0;
}

/** Applies an update to mapped memory if it is short enough to be done at once. */
static inline bool apply_mapped(nicstride_module_t *m, const nicstride_arguments_t *g,
                                nicstride_accop_t *accop, const result_t *result, size_t bytes)
{
    void *at =
        bytes <= NICSTRIDE_LOCK_SPAN ? nicstride_mapped_bytes(m, g->target, g->disp, bytes) : NULL;

    if (at == NULL || nicstride_update(m, onic_node_index(&m->node, g->target), &accop->apply, at,
                                       nicstride_disp_of(m, g->target, at), g->origin, result->base,
                                       bytes / accop->apply.size) != OMPI_SUCCESS)
        return false;
    nicstride_count(NICSTRIDE_METHOD_DIRECT, bytes);
    return true;
}

/** Sends an update in a short message. */
static bool send_update(nicstride_module_t *m, const nicstride_arguments_t *g,
                        const nicstride_accop_t *accop, const result_t *result, size_t bytes)
{
    const bool fetches = result->dt != NULL, sends = accop->apply.kind != NICSTRIDE_APPLY_NO_OP;
    nicstride_short_t s = {
        .type = fetches ? NICSTRIDE_MSG_GET_ACC : NICSTRIDE_MSG_ACC,
        .op = (uint16_t)nicstride_op_index(accop->op),
        .dtype = (uint16_t)g->target_dt->id,
        .bytes = bytes,
        .data = sends ? g->origin : NULL,
        .result = fetches ? result->base : NULL,
    };

    return (s.data != NULL || !sends) && nicstride_send_short(m, g->target, g->disp, &s);
}

static int accumulate(ompi_win_t *win, const nicstride_arguments_t *arguments, ompi_op_t *op,
                      const result_t *result, ompi_request_t **request_p)
{
    const nicstride_msg_type_t type =
        result->dt != NULL ? NICSTRIDE_MSG_GET_ACC : NICSTRIDE_MSG_ACC;
    nicstride_module_t *m = nicstride_module(win);
    nicstride_arguments_t g = *arguments;
    nicstride_transfer_t t;
    int rc = request_p != NULL ? nicstride_check_passive(m, g.call, g.target) : OMPI_SUCCESS;

    if (op == &ompi_mpi_op_no_op.op)
        g.origin_dt = NULL;
    /* Open MPI also reports this, unless its parameter checks are off. */
    if (rc == OMPI_SUCCESS && g.origin_dt == NULL && result->dt == NULL)
        rc = nicstride_error(m, g.call, MPI_ERR_OP, "MPI_NO_OP is for calls that fetch");
    if (rc == OMPI_SUCCESS)
        rc = nicstride_target_init(&t, m, type, &g);
    if (rc != OMPI_SUCCESS)
        return rc;
    rc = check_types(&t, op, &g);
    if (rc == OMPI_SUCCESS)
        rc = open_result(&t, &g, result);
    return nicstride_run(&t, rc, request_p);
}

/** The calls without a request. Apart from the function above, so that the arguments stay in
 *  registers on the way to mapped memory. */
static inline int accumulate_at_once(ompi_win_t *win, const nicstride_arguments_t *g, ompi_op_t *op,
                                     const result_t *result)
{
    nicstride_module_t *m = nicstride_module(win);
    const size_t bytes = plain_update(g, op, result);
    nicstride_accop_t accop;

    if (bytes > 0 &&
        nicstride_accop_init(&accop, (unsigned)nicstride_op_index(op),
                             (unsigned)g->target_dt->id) &&
        (nicstride_is_mapped(m, g->target) ? apply_mapped(m, g, &accop, result, bytes)
                                           : send_update(m, g, &accop, result, bytes)))
        return OMPI_SUCCESS;
    return accumulate(win, g, op, result, NULL);
}

static int mpi_accumulate(const void *origin, onic_rma_count_t origin_count,
                          ompi_datatype_t *origin_dt, int target, ptrdiff_t disp,
                          onic_rma_count_t target_count, ompi_datatype_t *target_dt, ompi_op_t *op,
                          ompi_win_t *win)
{
    const nicstride_arguments_t g = {"MPI_Accumulate", origin, origin_count, origin_dt,
                                     target,           disp,   target_count, target_dt};

    return accumulate_at_once(win, &g, op, &no_result);
}

static int mpi_raccumulate(const void *origin, onic_rma_count_t origin_count,
                           ompi_datatype_t *origin_dt, int target, ptrdiff_t disp,
                           onic_rma_count_t target_count, ompi_datatype_t *target_dt, ompi_op_t *op,
                           ompi_win_t *win, ompi_request_t **request)
{
    const nicstride_arguments_t g = {
        "MPI_Raccumulate", origin, origin_count, origin_dt, target, disp, target_count, target_dt};

    return accumulate(win, &g, op, &no_result, request);
}

static int mpi_get_accumulate(const void *origin, onic_rma_count_t origin_count,
                              ompi_datatype_t *origin_dt, void *result,
                              onic_rma_count_t result_count, ompi_datatype_t *result_dt, int target,
                              ptrdiff_t disp, onic_rma_count_t target_count,
                              ompi_datatype_t *target_dt, ompi_op_t *op, ompi_win_t *win)
{
    const nicstride_arguments_t g = {
        "MPI_Get_accumulate", origin,   origin_count, origin_dt, target, disp,
        target_count,         target_dt};
    const result_t r = {result, result_count, result_dt};

    return accumulate_at_once(win, &g, op, &r);
}

static int mpi_rget_accumulate(const void *origin, onic_rma_count_t origin_count,
                               ompi_datatype_t *origin_dt, void *result,
                               onic_rma_count_t result_count, ompi_datatype_t *result_dt,
                               int target, ptrdiff_t disp, onic_rma_count_t target_count,
                               ompi_datatype_t *target_dt, ompi_op_t *op, ompi_win_t *win,
                               ompi_request_t **request)
{
    const nicstride_arguments_t g = {
        "MPI_Rget_accumulate", origin,   origin_count, origin_dt, target, disp,
        target_count,          target_dt};
    const result_t r = {result, result_count, result_dt};

    return accumulate(win, &g, op, &r, request);
}

static int mpi_fetch_and_op(const void *origin, void *result, ompi_datatype_t *dt, int target,
                            ptrdiff_t disp, ompi_op_t *op, ompi_win_t *win)
{
    const nicstride_arguments_t g = {"MPI_Fetch_and_op", origin, 1, dt, target, disp, 1, dt};
    const result_t r = {result, 1, dt};

    if (!nicstride_fetches(dt))
        return nicstride_error(nicstride_module(win), g.call, MPI_ERR_TYPE,
                               "the datatype is not a predefined one");
    return accumulate_at_once(win, &g, op, &r);
}

/* ---- compare and swap ------------------------------------------------------------------------ */

/** Does the whole call as an update of mapped memory, or by a short message. */
static inline bool swap_at_once(nicstride_module_t *m, const void *origin, const void *compare,
                                void *result, ompi_datatype_t *dt, int target, ptrdiff_t disp)
{
    const size_t bytes = nicstride_gapless_bytes(dt, 1);
    nicstride_short_t s = {
        .type = NICSTRIDE_MSG_CAS,
        .dtype = (uint16_t)dt->id,
        .bytes = bytes,
        .data = compare,
        .swap = origin,
        .result = result,
    };
    void *at;

    if (bytes == 0)
        return false;
    if (!nicstride_is_mapped(m, target))
        return compare != NULL && result != NULL && nicstride_send_short(m, target, disp, &s);
    at = nicstride_mapped_bytes(m, target, disp, bytes);
    if (at == NULL ||
        nicstride_swap(m, onic_node_index(&m->node, target), at, nicstride_disp_of(m, target, at),
                       bytes, compare, origin, result) != OMPI_SUCCESS)
        return false;
    nicstride_count(NICSTRIDE_METHOD_DIRECT, bytes);
    return true;
}

static int mpi_compare_and_swap(const void *origin, const void *compare, void *result,
                                ompi_datatype_t *dt, int target, ptrdiff_t disp, ompi_win_t *win)
{
    const nicstride_arguments_t g = {"MPI_Compare_and_swap", origin, 1, dt, target, disp, 1, dt};
    nicstride_module_t *m = nicstride_module(win);
    nicstride_transfer_t t;
    int rc;

    if (!nicstride_swaps(dt))
        return nicstride_error(m, g.call, MPI_ERR_TYPE,
                               "the datatype is not a predefined one of integers, characters, "
                               "logical values or bytes");
    if (swap_at_once(m, origin, compare, result, dt, target, disp))
        return OMPI_SUCCESS;
    rc = nicstride_target_init(&t, m, NICSTRIDE_MSG_CAS, &g);
    if (rc != OMPI_SUCCESS)
        return rc;
    t.dtype = (uint16_t)dt->id;
    t.origin_base = (char *)(uintptr_t)compare;
    t.swap = origin;
    t.result_base = result;
    rc = nicstride_check_host(m, g.call, "compare", compare, &t.origin);
    if (rc == OMPI_SUCCESS)
        rc = nicstride_check_host(m, g.call, "result", result, &t.origin);
    if (rc == OMPI_SUCCESS)
        onic_layout_contig(&t.result, 0, t.target.size);
    return nicstride_run(&t, rc, NULL);
}

void nicstride_update_calls(ompi_osc_base_module_t *calls)
{
    calls->osc_accumulate = mpi_accumulate;
    calls->osc_raccumulate = mpi_raccumulate;
    calls->osc_get_accumulate = mpi_get_accumulate;
    calls->osc_rget_accumulate = mpi_rget_accumulate;
    calls->osc_fetch_and_op = mpi_fetch_and_op;
    calls->osc_compare_and_swap = mpi_compare_and_swap;
}
