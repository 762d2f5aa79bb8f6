/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Accumulate and its kin; see origin.h. */
#include <stddef.h>
#include <string.h>

#include "osc_nicstride/origin/origin.h"
#include "osc_nicstride/origin/rma.h"
#include "osc_nicstride/window/component.h"
#include "osc_nicstride/window/control.h"
#include "osc_nicstride/window/module.h"
#include "osc_nicstride/queue/observe.h"
#include "osc_nicstride/window/op.h"
#include "osc_nicstride/queue/request.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/queue/start.h"
#include "osc_nicstride/origin/contiguous.h"
#include "osc_nicstride/window/transfer.h"
#include "osc_nicstride/sync/enter.h"
#include "common/layout/pack.h"

/* Source bytes gathered at a time, and bytes after which the lock is given to others. */
#define CHUNK     8192
#define LOCK_SPAN (64 << 10)
/* Stands for elements of several types. */
#define ANY_TYPE (ompi_mpi_byte.dt.id)

/** One accumulate call: what to do, and where old values go. */
typedef struct accumulate {
    nicstride_transfer_t access;
    nicstride_accop_t op;
    nicstride_accop_t no_op; /**< for what the origin does not reach */
    int op_index;
    int dtype;
    const ompi_datatype_t *target_dt;
    bool fetch;
} accumulate_t;

/** Packed bytes of the target that the origin has something for. */
static uint64_t given(const accumulate_t *acc)
{
    return acc->access.has_origin ? acc->access.origin.size : 0;
}

/** May elements be of several types? The standard says no, but Open MPI and its components let
 *  whoever only replaces or fetches: that is done byte by byte. */
static bool takes_any_type(const ompi_op_t *op)
{
    return op == &ompi_mpi_op_replace.op || op == &ompi_mpi_op_no_op.op;
}

/** Operation and element type, the same on both sides. */
static int check_types(nicstride_module_t *m, const char *call, accumulate_t *acc, ompi_op_t *op,
                       ompi_datatype_t *origin_dt, ompi_datatype_t *target_dt)
{
    const int element = nicstride_dtype_index(target_dt);
    const bool same =
        origin_dt == NULL || origin_dt == target_dt || nicstride_dtype_index(origin_dt) == element;

    acc->op_index = nicstride_op_index(op);
    if (acc->op_index < 0)
        return nicstride_error(m, call, MPI_ERR_OP, "operation %s is not a predefined one",
                               op->o_name);
    acc->target_dt = target_dt;
    acc->dtype = (element < 0 || !same) && takes_any_type(op) ? ANY_TYPE : element;
    if (acc->dtype < 0)
        return nicstride_error(m, call, MPI_ERR_TYPE,
                               "the target datatype is not made of one predefined type");
    if (!same && acc->dtype != ANY_TYPE)
        return nicstride_error(m, call, MPI_ERR_TYPE,
                               "the elements of the origin and the target datatype differ");
    if (!nicstride_accop_init(&acc->op, (unsigned)acc->op_index, (unsigned)acc->dtype))
        return nicstride_error(m, call, MPI_ERR_OP, "operation %s is not defined for %s",
                               op->o_name, acc->op.dt->name);
    (void)nicstride_accop_init(&acc->no_op, (unsigned)nicstride_op_index(&ompi_mpi_op_no_op.op),
                               (unsigned)acc->dtype);
    return OMPI_SUCCESS;
}

/** `n` packed source bytes at position `pos`: in place where they lie so, else gathered. */
static const void *source(const accumulate_t *acc, onic_cursor_t *c, uint64_t pos, void *tmp,
                          uint64_t n)
{
    const nicstride_transfer_t *a = &acc->access;

    if (pos >= given(acc))
        return NULL;
    if (onic_layout_is_contig(&a->origin))
        return a->origin_base + a->origin.offset + (int64_t)pos;
    onic_pack(c, a->origin_base, tmp, n);
    return tmp;
}

static int apply_direct(nicstride_module_t *m, const accumulate_t *acc)
{
    const nicstride_transfer_t *a = &acc->access;
    nicstride_ctl_t *ctl = nicstride_ctl(m, a->peer->local);
    const uint64_t chunk = CHUNK - CHUNK % acc->op.apply.size;
    const bool in_place = acc->fetch && onic_layout_is_contig(&acc->access.result);
    onic_cursor_t from, to, old_to;
    uint64_t held = 0;

    if (given(acc) > 0)
        onic_cursor_init(&from, &a->origin, 0);
    onic_cursor_init(&to, &a->target, 0);
    if (acc->fetch)
        onic_cursor_init(&old_to, &acc->access.result, 0);
    if (nicstride_ctl_lock(m, &ctl->acc_lock) != OMPI_SUCCESS)
        return nicstride_broken_error(m, a->call);
    for (uint64_t pos = 0; pos < a->target.size;) {
        _Alignas(64) char tmp[CHUNK], old[CHUNK];
        const uint64_t end = pos < given(acc) ? given(acc) : a->target.size;
        const nicstride_accop_t *op = pos < given(acc) ? &acc->op : &acc->no_op;
        uint64_t n = end - pos < chunk ? end - pos : chunk;
        const void *src = source(acc, &from, pos, tmp, n);
        char *result =
            in_place ? acc->access.result_base + acc->access.result.offset + (int64_t)pos : old;

        nicstride_apply(&op->apply, &to, a->direct, src, acc->fetch ? result : NULL, n);
        if (acc->fetch && !in_place)
            onic_unpack(&old_to, acc->access.result_base, old, n);
        pos += n;
        held += n;
        if (held >= LOCK_SPAN && pos < a->target.size) {
            nicstride_ctl_unlock(&ctl->acc_lock);
            /* What was put off for the lock has its turn, and the rest of the node some time. */
            onic_wire_progress();
            if (nicstride_ctl_lock(m, &ctl->acc_lock) != OMPI_SUCCESS)
                return nicstride_broken_error(m, a->call);
            held = 0;
        }
    }
    nicstride_ctl_unlock(&ctl->acc_lock);
    return OMPI_SUCCESS;
}

static int start_message(accumulate_t *acc, bool *done_p)
{
    nicstride_transfer_t *t = &acc->access;

    t->op = (uint16_t)acc->op_index;
    t->dtype = (uint16_t)acc->dtype;
    t->granule = (uint32_t)acc->op.apply.size;
    /* Short ones travel together. */
    if (t->type == NICSTRIDE_MSG_ACC && t->has_origin &&
        t->target.size > nicstride_inline_max(false) &&
        nicstride_choose(t) == NICSTRIDE_METHOD_MOVER) {
        const uint64_t size = t->target.size;
        const int rc = nicstride_move_start(t, done_p);

        /* Where no slot can be had now the data goes in the messages themselves. */
        if (rc != OMPI_ERR_NOT_AVAILABLE) {
            nicstride_count_accumulate(NICSTRIDE_METHOD_MOVER, size);
            return rc;
        }
        t->cell = NULL;
    }
    nicstride_count_accumulate(NICSTRIDE_METHOD_PACK, t->target.size);
    return nicstride_message_start(t, false, done_p);
}

/** Everything but the request. `*done_p`: it is over. */
static int run(nicstride_module_t *m, accumulate_t *acc, bool *done_p)
{
    *done_p = true;
    if (acc->access.target.size == 0)
        return OMPI_SUCCESS;
    if (nicstride_applies_here(&acc->access)) {
        nicstride_count_accumulate(NICSTRIDE_METHOD_DIRECT, acc->access.target.size);
        return apply_direct(m, acc);
    }
    return start_message(acc, done_p);
}

/** Where old values go. All zero: nothing is fetched. */
typedef struct result {
    void *base;
    int count;
    ompi_datatype_t *dt;
} result_t;

static const result_t no_result;

static int open_result(nicstride_module_t *m, const char *call, accumulate_t *acc,
                       const result_t *result)
{
    int rc;

    acc->fetch = result->dt != NULL;
    acc->access.result_base = result->base;
    if (!acc->fetch)
        return OMPI_SUCCESS;
    rc = nicstride_flatten(m, call, "result", result->dt, (size_t)result->count,
                           &acc->access.result);
    if (rc != OMPI_SUCCESS)
        return rc;
    if (result->dt != acc->target_dt && acc->dtype != ANY_TYPE &&
        nicstride_dtype_index(result->dt) != acc->dtype)
        return nicstride_error(m, call, MPI_ERR_TYPE,
                               "the elements of the result and the target datatype differ");
    rc = nicstride_fit(m, call, "target", acc->access.target.size, "result", &acc->access.result);
    if (rc != OMPI_SUCCESS)
        return rc;
    return nicstride_check_host(m, call, "result", result->base, &acc->access.result);
}

/** Is the operation a predefined one that knows the predefined type? Open MPI looks at neither in
 *  MPI_Fetch_and_op. */
static bool reduces(ompi_op_t *op, const ompi_datatype_t *dt)
{
    const int slot = ompi_op_is_intrinsic(op) ? ompi_op_ddt_map[dt->id] : -1;

    return slot >= 0 && op->o_func.intrinsic.fns[slot] != NULL;
}

/** Elements of a predefined type, without gaps, in mapped memory, few enough for the lock to be
 *  held over all: the whole call is an update under it. */
static inline bool apply_mapped(nicstride_module_t *m, const nicstride_arguments_t *g,
                                ompi_op_t *op, const result_t *result)
{
    const size_t bytes = nicstride_gapless_bytes(g->target_dt, (size_t)g->target_count);
    const bool fetches = result->dt != NULL;
    nicstride_ctl_t *ctl;
    void *at;

    if (bytes == 0 || bytes > LOCK_SPAN || !ompi_datatype_is_predefined(g->target_dt))
        return false;
    if (fetches &&
        (result->base == NULL || result->dt != g->target_dt || result->count != g->target_count))
        return false;
    if (op == &ompi_mpi_op_no_op.op
            ? !fetches
            : g->origin_dt != g->target_dt || g->origin_count != g->target_count ||
                  (op != &ompi_mpi_op_replace.op && !reduces(op, g->target_dt)))
        return false;
    at = nicstride_mapped_bytes(m, g->target, g->disp, bytes);
    if (at == NULL)
        return false;
    ctl = nicstride_ctl(m, onic_node_index(&m->node, g->target));
    /* An error is for the way that can return it. */
    if (nicstride_ctl_lock(m, &ctl->acc_lock) != OMPI_SUCCESS)
        return false;
    if (fetches)
        onic_copy_bytes(result->base, at, bytes);
    if (op == &ompi_mpi_op_replace.op)
        onic_copy_bytes(at, g->origin, bytes);
    else if (op != &ompi_mpi_op_no_op.op)
        ompi_op_reduce(op, (void *)(uintptr_t)g->origin, at, g->target_count, g->target_dt);
    nicstride_ctl_unlock(&ctl->acc_lock);
    nicstride_count_accumulate(NICSTRIDE_METHOD_DIRECT, bytes);
    return true;
}

static int accumulate(ompi_win_t *win, const nicstride_arguments_t *arguments, ompi_op_t *op,
                      const result_t *result, ompi_request_t **request_p)
{
    nicstride_module_t *m = nicstride_module(win);
    nicstride_arguments_t g = *arguments;
    nicstride_request_t *request = NULL;
    accumulate_t acc;
    bool done = true;
    int rc = request_p != NULL ? nicstride_check_passive(m, g.call, g.target) : OMPI_SUCCESS;

    if (op == &ompi_mpi_op_no_op.op)
        g.origin_dt = NULL;
    /* Open MPI says so too, unless it was told not to look at parameters. */
    if (rc == OMPI_SUCCESS && g.origin_dt == NULL && result->dt == NULL)
        rc = nicstride_error(m, g.call, MPI_ERR_OP, "MPI_NO_OP is for calls that fetch");
    if (rc == OMPI_SUCCESS)
        rc = check_types(m, g.call, &acc, op, g.origin_dt, g.target_dt);
    if (rc == OMPI_SUCCESS)
        rc = nicstride_target_init(
            &acc.access, m, result->dt != NULL ? NICSTRIDE_MSG_GET_ACC : NICSTRIDE_MSG_ACC, &g);
    if (rc != OMPI_SUCCESS)
        return rc;
    rc = open_result(m, g.call, &acc, result);
    if (rc == OMPI_SUCCESS && request_p != NULL) {
        request = acc.access.request = nicstride_request_new(win);
        rc = request != NULL ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
    }
    if (rc == OMPI_SUCCESS)
        rc = run(m, &acc, &done);
    nicstride_target_fini(&acc.access);
    return request_p != NULL ? nicstride_request_finish(request, rc, done, request_p) : rc;
}

/** The calls without a request. Apart from the above, so that mapped memory is reached with the
 *  arguments in registers. */
static inline int accumulate_at_once(ompi_win_t *win, const nicstride_arguments_t *g, ompi_op_t *op,
                                     const result_t *result)
{
    return apply_mapped(nicstride_module(win), g, op, result)
               ? OMPI_SUCCESS
               : accumulate(win, g, op, result, NULL);
}

int nicstride_accumulate(const void *origin, int origin_count, ompi_datatype_t *origin_dt,
                         int target, ptrdiff_t disp, int target_count, ompi_datatype_t *target_dt,
                         ompi_op_t *op, ompi_win_t *win)
{
    const nicstride_arguments_t g = {"MPI_Accumulate", origin, origin_count, origin_dt,
                                     target,           disp,   target_count, target_dt};

    return accumulate_at_once(win, &g, op, &no_result);
}

int nicstride_raccumulate(const void *origin, int origin_count, ompi_datatype_t *origin_dt,
                          int target, ptrdiff_t disp, int target_count, ompi_datatype_t *target_dt,
                          ompi_op_t *op, ompi_win_t *win, ompi_request_t **request)
{
    const nicstride_arguments_t g = {
        "MPI_Raccumulate", origin, origin_count, origin_dt, target, disp, target_count, target_dt};

    return accumulate(win, &g, op, &no_result, request);
}

int nicstride_get_accumulate(const void *origin, int origin_count, ompi_datatype_t *origin_dt,
                             void *result, int result_count, ompi_datatype_t *result_dt, int target,
                             ptrdiff_t disp, int target_count, ompi_datatype_t *target_dt,
                             ompi_op_t *op, ompi_win_t *win)
{
    const nicstride_arguments_t g = {
        "MPI_Get_accumulate", origin,   origin_count, origin_dt, target, disp,
        target_count,         target_dt};
    const result_t r = {result, result_count, result_dt};

    return accumulate_at_once(win, &g, op, &r);
}

int nicstride_rget_accumulate(const void *origin, int origin_count, ompi_datatype_t *origin_dt,
                              void *result, int result_count, ompi_datatype_t *result_dt,
                              int target, ptrdiff_t disp, int target_count,
                              ompi_datatype_t *target_dt, ompi_op_t *op, ompi_win_t *win,
                              ompi_request_t **request)
{
    const nicstride_arguments_t g = {
        "MPI_Rget_accumulate", origin,   origin_count, origin_dt, target, disp,
        target_count,          target_dt};
    const result_t r = {result, result_count, result_dt};

    return accumulate(win, &g, op, &r, request);
}

int nicstride_fetch_and_op(const void *origin, void *result, ompi_datatype_t *dt, int target,
                           ptrdiff_t disp, ompi_op_t *op, ompi_win_t *win)
{
    const nicstride_arguments_t g = {"MPI_Fetch_and_op", origin, 1, dt, target, disp, 1, dt};
    const result_t r = {result, 1, dt};

    return accumulate_at_once(win, &g, op, &r);
}
