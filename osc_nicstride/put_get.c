/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Put and get, and their request versions: plan, then do.
 */
#include <stddef.h>
#include <string.h>

#include "common/beat.h"
#include "osc_nicstride/calls.h"
#include "osc_nicstride/choose.h"
#include "osc_nicstride/component.h"
#include "osc_nicstride/dynamic.h"
#include "osc_nicstride/errors.h"
#include "osc_nicstride/module.h"
#include "osc_nicstride/observe.h"
#include "osc_nicstride/quick.h"
#include "osc_nicstride/request.h"
#include "osc_nicstride/single_copy.h"
#include "osc_nicstride/small.h"
#include "osc_nicstride/stream.h"
#include "osc_nicstride/target.h"
#include "osc_nicstride/touch.h"
#include "common/pack.h"

/** Before a put into memory that is mapped from a peer. */
static void touch(const nicstride_module_t *m, const nicstride_target_t *a)
{
    const char *at = a->direct + a->target.lb, *end = a->direct + a->target.ub;
    uint64_t from, parts;

    if (a->target.ub - a->target.lb < (int64_t)NICSTRIDE_AROUND || a->peer->rank == m->rank)
        return;
    from = (uint64_t)(a->disp + a->target.lb);
    parts = nicstride_touch_parts(m->info[a->peer->rank].size, from,
                                  from + (uint64_t)(a->target.ub - a->target.lb));
    if ((__atomic_load_n(&a->peer->touched, __ATOMIC_RELAXED) & parts) == parts ||
        !nicstride_touch_pays(&a->target))
        return;
    __atomic_fetch_or(&a->peer->touched, parts, __ATOMIC_RELAXED);
    for (; at < end; at += NICSTRIDE_AROUND)
        (void)__atomic_load_n(at, __ATOMIC_RELAXED);
}

static void copy_direct(const nicstride_module_t *m, const nicstride_target_t *a,
                        nicstride_direction_t dir)
{
    onic_cursor_t o, t;

    if (dir == NICSTRIDE_PUT)
        touch(m, a);

    onic_cursor_init(&o, &a->origin, 0);
    onic_cursor_init(&t, &a->target, 0);
    if (dir == NICSTRIDE_PUT)
        onic_copy(&t, a->direct, &o, a->origin_base, a->target.size);
    else
        onic_copy(&o, a->origin_base, &t, a->direct, a->target.size);
}

/* From here on memcpy moves words of at least 8 bytes, and is the fastest there is. */
#define MEMCPY_MIN 64
/* For more than about a core's L2 glibc takes another way, which is slower on some processors. */
#define MEMCPY_PIECE (128 << 10)

/* One aligned word is by far the most frequent case and is moved as one. */
void nicstride_copy_bytes(void *to, const void *from, size_t bytes)
{
    if (bytes == sizeof(uint64_t)) {
        memcpy(to, from, sizeof(uint64_t));
    } else if (bytes >= MEMCPY_MIN) {
        for (; bytes > MEMCPY_PIECE; bytes -= MEMCPY_PIECE) {
            memcpy(to, from, MEMCPY_PIECE);
            to = (char *)to + MEMCPY_PIECE;
            from = (const char *)from + MEMCPY_PIECE;
        }
        memcpy(to, from, bytes);
    } else {
        onic_layout_t l;
        onic_cursor_t c;

        onic_layout_contig(&l, 0, bytes);
        onic_cursor_init(&c, &l, 0);
        onic_pack(&c, from, to, bytes);
    }
}

/** Starts a transfer by message. */
static int start_message(nicstride_module_t *m, nicstride_target_t *a, nicstride_direction_t dir,
                         nicstride_method_t method, nicstride_tune_cell_t *cell,
                         nicstride_request_t *request)
{
    const nicstride_small_t small = {
        .type = dir == NICSTRIDE_PUT ? NICSTRIDE_MSG_PUT : NICSTRIDE_MSG_GET, .cell = cell};
    nicstride_op_t *op;

    if (method == NICSTRIDE_METHOD_PACK && request == NULL && nicstride_small_move(m, a, &small, 1))
        return OMPI_SUCCESS;
    op = nicstride_op_new(m, a, small.type, a->target.size);
    if (op == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    nicstride_observe_begin_locked(a->peer, cell, method, a->target.size);
    op->rndv = method == NICSTRIDE_METHOD_ZCOPY;
    op->request = request;
    if (dir == NICSTRIDE_PUT) {
        op->origin = a->origin;
        op->origin_base = a->origin_base;
        op->sends_data = true;
    } else {
        op->result = a->origin;
        op->result_base = a->origin_base;
    }
    a->origin.nruns = 0;
    return nicstride_op_start(op);
}

/** Without permission of the kernel there is no single copy: not now, not later. */
static void give_up_single_copy(void)
{
    mca_osc_nicstride_component.params.cma = false;
    nicstride_say_no_single_copy();
}

static int single_copy(const nicstride_target_t *a, nicstride_method_t method,
                       nicstride_direction_t dir)
{
    if (method == NICSTRIDE_METHOD_SIEVE)
        return nicstride_sieve_get(a);
    return dir == NICSTRIDE_PUT ? nicstride_cma_put(a) : nicstride_cma_get(a);
}

/** Single copy; OMPI_ERR_NOT_SUPPORTED or OMPI_ERR_OUT_OF_RESOURCE where another method must do. */
static int move_singly(nicstride_module_t *m, const nicstride_target_t *a,
                       nicstride_method_t method, nicstride_direction_t dir,
                       nicstride_tune_cell_t *cell)
{
    const uint64_t begun = cell != NULL ? onic_ticks() : 0;
    int rc = single_copy(a, method, dir);

    if (rc == OMPI_ERR_NOT_SUPPORTED)
        give_up_single_copy();
    if (rc == OMPI_ERR_NOT_SUPPORTED || rc == OMPI_ERR_OUT_OF_RESOURCE)
        return rc;
    nicstride_count(method, a->target.size);
    if (rc != OMPI_SUCCESS)
        return nicstride_error(m, a->call, rc, "the memory of target rank %d cannot be accessed",
                               a->peer->rank);
    if (cell != NULL)
        nicstride_observe_call(a->peer, cell, method, a->target.size, begun);
    return OMPI_SUCCESS;
}

/**
 * Moves the data by the planned method. `*done_p` says whether that is over already; if not,
 * `request` (if any) will be completed later.
 */
static int move(nicstride_module_t *m, nicstride_target_t *a, nicstride_direction_t dir,
                nicstride_request_t *request, bool *done_p)
{
    nicstride_tune_cell_t *cell;
    nicstride_method_t method = nicstride_choose(m, a, dir, &cell);

    *done_p = true;
    if (method != NICSTRIDE_METHOD_DIRECT)
        nicstride_habit_operation(&m->habit);
    if (nicstride_is_single_copy(method)) {
        int rc = move_singly(m, a, method, dir, cell);

        if (rc != OMPI_ERR_NOT_SUPPORTED && rc != OMPI_ERR_OUT_OF_RESOURCE)
            return rc;
        method = NICSTRIDE_METHOD_PACK;
        cell = NULL;
    }
    nicstride_count(method, a->target.size);
    if (method == NICSTRIDE_METHOD_DIRECT) {
        copy_direct(m, a, dir);
        return OMPI_SUCCESS;
    }
    *done_p = false;
    return start_message(m, a, dir, method, cell, request);
}

/** A few contiguous bytes by single copy; false where it cannot be. */
static bool copy_quickly(nicstride_module_t *m, nicstride_direction_t dir, const void *origin,
                         size_t bytes, nicstride_peer_t *p, ptrdiff_t disp,
                         nicstride_tune_cell_t *cell)
{
    const uint64_t begun = cell != NULL ? onic_ticks() : 0;
    uint64_t at;

    if (!nicstride_plain_offset(m, p->rank, disp, bytes, &at) ||
        (m->flavor == MPI_WIN_FLAVOR_DYNAMIC && !nicstride_region_remembered(m, p, at, bytes)) ||
        nicstride_cma_bytes(p, dir, (void *)(uintptr_t)origin, m->info[p->rank].base + at, bytes) !=
            OMPI_SUCCESS)
        return false;
    if (cell != NULL)
        nicstride_observe_call(p, cell, NICSTRIDE_METHOD_CMA, NICSTRIDE_TUNE_QUICK_BYTES, begun);
    nicstride_count(NICSTRIDE_METHOD_CMA, bytes);
    return true;
}

/** A few contiguous bytes by message, where the target is there to take them. */
static bool send_quickly(nicstride_module_t *m, nicstride_direction_t dir, const void *origin,
                         size_t bytes, nicstride_peer_t *p, ptrdiff_t disp,
                         nicstride_tune_cell_t *cell)
{
    nicstride_small_t s = {.type = NICSTRIDE_MSG_PUT, .len = bytes, .data = origin, .cell = cell};

    if (dir == NICSTRIDE_GET)
        s = (nicstride_small_t){.type = NICSTRIDE_MSG_GET,
                                .len = bytes,
                                .result = (void *)(uintptr_t)origin,
                                .cell = cell};
    if (!nicstride_small_start(m, p->rank, disp, &s))
        return false;
    nicstride_count(NICSTRIDE_METHOD_PACK, bytes);
    return true;
}

/** More of them, if it is settled that single copy is the way. */
static bool copy_as_known(nicstride_module_t *m, nicstride_direction_t dir, const void *origin,
                          size_t bytes, nicstride_peer_t *p, ptrdiff_t disp)
{
    return mca_osc_nicstride_component.params.method == NICSTRIDE_METHOD_AUTO &&
           bytes <= NICSTRIDE_CMA_BYTES_MAX && nicstride_single_copy_works(p) &&
           nicstride_quick_copies(m, p, dir, bytes) &&
           copy_quickly(m, dir, origin, bytes, p, disp, NULL);
}

/** Contiguous bytes to or from private memory need no plan where they are few, unless one is
 *  forced. */
static bool move_quickly(nicstride_module_t *m, nicstride_direction_t dir, const void *origin,
                         size_t bytes, int target, ptrdiff_t disp)
{
    const int forced = mca_osc_nicstride_component.params.method;
    const bool active = nicstride_is_active(m);
    nicstride_peer_t *p = __atomic_load_n(&m->peer[target], __ATOMIC_ACQUIRE);
    nicstride_tune_cell_t *cell = NULL;

    if (p == NULL || target == m->rank)
        return false;
    if (!active && bytes > NICSTRIDE_LONE_MAX && copy_as_known(m, dir, origin, bytes, p, disp))
        return true;
    /* A lone one that is not as short is tried both ways, where it is planned. */
    if (bytes > NICSTRIDE_SMALL_MAX ||
        (!active && bytes > NICSTRIDE_LONE_MAX && nicstride_habit_alone(&m->habit)))
        return false;
    if (forced == NICSTRIDE_METHOD_AUTO && !active) {
        if (bytes <= NICSTRIDE_LONE_MAX && nicstride_single_copy_works(p) &&
            nicstride_quick_method(m, p, dir, &cell) == NICSTRIDE_METHOD_CMA)
            return copy_quickly(m, dir, origin, bytes, p, disp, cell);
        /* Looked at once for all that travel together. */
        if (!nicstride_outbox_waits(p) && nicstride_presence(p) != NICSTRIDE_PRESENT)
            return false;
    }
    return (forced == NICSTRIDE_METHOD_AUTO || forced == NICSTRIDE_METHOD_PACK) &&
           send_quickly(m, dir, origin, bytes, p, disp, cell);
}

/** Contiguous bytes to or from mapped memory, and a few by message, need no plan. */
static inline bool transfer_quickly(nicstride_module_t *m, nicstride_direction_t dir,
                                    const void *origin, int origin_count,
                                    const ompi_datatype_t *origin_dt, int target, ptrdiff_t disp,
                                    int target_count, const ompi_datatype_t *target_dt)
{
    size_t bytes = nicstride_plain_bytes(target_dt, (size_t)target_count);
    void *at;

    if (bytes == 0 || ((origin_dt != target_dt || origin_count != target_count) &&
                       nicstride_plain_bytes(origin_dt, (size_t)origin_count) != bytes))
        return false;
    at = nicstride_mapped_bytes(m, target, disp, bytes);
    if (at == NULL) {
        const bool done = move_quickly(m, dir, origin, bytes, target, disp);
        if (done)
            nicstride_habit_operation(&m->habit);
        return done;
    }
    if (dir == NICSTRIDE_PUT)
        nicstride_copy_plain(at, origin, bytes);
    else
        nicstride_copy_plain((void *)(uintptr_t)origin, at, bytes);
    nicstride_count(NICSTRIDE_METHOD_DIRECT, bytes);
    return true;
}

static int transfer(const char *call, nicstride_direction_t dir, const void *origin,
                    int origin_count, ompi_datatype_t *origin_dt, int target, ptrdiff_t disp,
                    int target_count, ompi_datatype_t *target_dt, ompi_win_t *win)
{
    nicstride_module_t *m = nicstride_module(win);
    nicstride_target_t a;
    bool done;
    int rc = nicstride_target_init(&a, m, call, origin, (size_t)origin_count, origin_dt, target,
                                   disp, (size_t)target_count, target_dt);

    if (rc != OMPI_SUCCESS)
        return rc;
    if (a.target.size > 0)
        rc = move(m, &a, dir, NULL, &done);
    nicstride_target_fini(&a);
    return rc;
}

static int transfer_request(const char *call, nicstride_direction_t dir, const void *origin,
                            int origin_count, ompi_datatype_t *origin_dt, int target,
                            ptrdiff_t disp, int target_count, ompi_datatype_t *target_dt,
                            ompi_win_t *win, ompi_request_t **request_p)
{
    nicstride_module_t *m = nicstride_module(win);
    nicstride_request_t *request;
    nicstride_target_t a;
    bool done = true;
    int rc = nicstride_check_passive(m, call, target);

    if (rc == OMPI_SUCCESS)
        rc = nicstride_target_init(&a, m, call, origin, (size_t)origin_count, origin_dt, target,
                                   disp, (size_t)target_count, target_dt);
    if (rc != OMPI_SUCCESS)
        return rc;
    request = nicstride_request_new(win);
    if (request == NULL)
        rc = OMPI_ERR_OUT_OF_RESOURCE;
    else if (a.target.size > 0)
        rc = move(m, &a, dir, request, &done);
    nicstride_target_fini(&a);
    return nicstride_request_finish(request, rc, done, request_p);
}

int nicstride_put(const void *origin, int origin_count, ompi_datatype_t *origin_dt, int target,
                  ptrdiff_t disp, int target_count, ompi_datatype_t *target_dt, ompi_win_t *win)
{
    if (transfer_quickly(nicstride_module(win), NICSTRIDE_PUT, origin, origin_count, origin_dt,
                         target, disp, target_count, target_dt))
        return OMPI_SUCCESS;
    return transfer("MPI_Put", NICSTRIDE_PUT, origin, origin_count, origin_dt, target, disp,
                    target_count, target_dt, win);
}

int nicstride_get(void *origin, int origin_count, ompi_datatype_t *origin_dt, int target,
                  ptrdiff_t disp, int target_count, ompi_datatype_t *target_dt, ompi_win_t *win)
{
    if (transfer_quickly(nicstride_module(win), NICSTRIDE_GET, origin, origin_count, origin_dt,
                         target, disp, target_count, target_dt))
        return OMPI_SUCCESS;
    return transfer("MPI_Get", NICSTRIDE_GET, origin, origin_count, origin_dt, target, disp,
                    target_count, target_dt, win);
}

int nicstride_rput(const void *origin, int origin_count, ompi_datatype_t *origin_dt, int target,
                   ptrdiff_t disp, int target_count, ompi_datatype_t *target_dt, ompi_win_t *win,
                   ompi_request_t **request)
{
    return transfer_request("MPI_Rput", NICSTRIDE_PUT, origin, origin_count, origin_dt, target,
                            disp, target_count, target_dt, win, request);
}

int nicstride_rget(void *origin, int origin_count, ompi_datatype_t *origin_dt, int target,
                   ptrdiff_t disp, int target_count, ompi_datatype_t *target_dt, ompi_win_t *win,
                   ompi_request_t **request)
{
    return transfer_request("MPI_Rget", NICSTRIDE_GET, origin, origin_count, origin_dt, target,
                            disp, target_count, target_dt, win, request);
}
