/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Cells of the matrix of progress: what a one-sided operation has begun. */
#include "test/mpi/progress_cells.h"
#include "test/mpi/progress_epoch_rules.h"

#include <stdlib.h>
#include <string.h>

enum { TAG_BESIDE = 9 };

/* ---- the origin ---- */

static const tl_window_t *window;

/** That of the family, or one for this cell. */
static tl_window_t window_of(const plan_t *p)
{
    progress_step("MPI_Win_create");
    return p->then == FREES_WINDOW
               ? tl_win_make(window->kind, ACCESS_BYTES, 8, window->comm, MPI_INFO_NULL)
               : *window;
}

static void open_epoch(const plan_t *p, const tl_window_t *w, int target)
{
    MPI_Group group;

    progress_step("the begin of the epoch");
    switch (p->epoch) {
    case LOCK_SHARED:
    case LOCK_EXCLUSIVE:
        TL_MPI(MPI_Win_lock(p->epoch == LOCK_SHARED ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target,
                            0, w->win));
        break;
    case LOCK_ALL:
        TL_MPI(MPI_Win_lock_all(0, w->win));
        break;
    case START:
        group = tl_group_of(w->comm, target);
        TL_MPI(MPI_Win_start(group, 0, w->win));
        MPI_Group_free(&group);
        break;
    default:
        TL_MPI(MPI_Win_fence(0, w->win));
    }
}

static void close_epoch(const plan_t *p, const tl_window_t *w, int target)
{
    progress_step("the end of the epoch");
    switch (p->epoch) {
    case LOCK_SHARED:
    case LOCK_EXCLUSIVE:
        TL_MPI(MPI_Win_unlock(target, w->win));
        break;
    case LOCK_ALL:
        TL_MPI(MPI_Win_unlock_all(w->win));
        break;
    case START:
        TL_MPI(MPI_Win_complete(w->win));
        break;
    default:
        TL_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win));
    }
}

/** The origin's call, which returns while the target holds, or before the origin does. */
static void do_then(const plan_t *p, access_t *a, const tl_window_t *w, int target)
{
    int flag = 0;

    progress_step(plan_then_name(p->then));
    switch (p->then) {
    case WAITS:
        TL_MPI(MPI_Wait(&a->request, MPI_STATUS_IGNORE));
        break;
    case TESTS:
        while (!flag && TL_MPI(MPI_Test(&a->request, &flag, MPI_STATUS_IGNORE))) {
        }
        break;
    case FLUSHES:
        TL_MPI(MPI_Win_flush(target, w->win));
        break;
    case FLUSHES_LOCAL:
        TL_MPI(MPI_Win_flush_local(target, w->win));
        break;
    case FLUSHES_ALL:
        TL_MPI(MPI_Win_flush_all(w->win));
        break;
    case FLUSHES_LOCAL_ALL:
        TL_MPI(MPI_Win_flush_local_all(w->win));
        break;
    case ENDS:
    case FREES_WINDOW:
        close_epoch(p, w, target);
        break;
    default:
        break;
    }
}

static void origin(const progress_cell_t *cell)
{
    const plan_t p = plan_of(cell->index);
    const int target = progress_peer(cell);
    access_t a = access_new(p.op, p.amount, cell->number);
    tl_window_t w = window_of(&p);
    MPI_Comm beside = progress_pair(cell);

    progress_meet_ready(cell);
    if (p.where == LATE && p.epoch != FENCE)
        progress_tell_in(cell);
    open_epoch(&p, &w, target);
    access_begin(&a, &w, target, p.second);
    if (p.where == LATE && p.epoch == FENCE)
        progress_tell_in(cell);
    do_then(&p, &a, &w, target);
    if (plan_target_holds(p.where) && p.epoch != FENCE) {
        progress_tell_seen(cell);
        if (p.where == RECEIVING || p.where == LATE) {
            progress_step("a send to the target");
            TL_MPI(MPI_Send(NULL, 0, MPI_BYTE, target, TAG_BESIDE, beside));
        } else if (p.where == IN_BARRIER) {
            progress_step("MPI_Barrier");
            TL_MPI(MPI_Barrier(beside));
        }
    } else if (p.then == FREES_WINDOW) {
        progress_tell_in(cell);
        progress_step("MPI_Win_free");
        tl_win_free(&w);
        progress_held(cell);
    } else if (p.then == RECEIVES) {
        progress_step("MPI_Recv from a target that waits for the operation");
        /* It need not see any. */
        MPI_Request request;
        int flag = 0;

        TL_MPI(MPI_Irecv(NULL, 0, MPI_BYTE, target, TAG_BESIDE, beside, &request));
        progress_hold(cell, true);
        while (!flag && TL_MPI(MPI_Test(&request, &flag, MPI_STATUS_IGNORE)))
            TL_MPI(MPI_Win_flush(target, w.win));
    } else {
        progress_tell_in(cell);
        progress_hold(cell, p.then == POLLS);
    }
    if (p.then != ENDS && p.then != FREES_WINDOW)
        close_epoch(&p, &w, target);
    progress_meet_end(cell);
    if (a.request != MPI_REQUEST_NULL)
        TL_MPI(MPI_Wait(&a.request, MPI_STATUS_IGNORE));
    access_check_origin(&a, cell->name);
    access_free(&a);
}

/* ---- the target ---- */

static void lock_self(const tl_window_t *w)
{
    progress_step("a lock of its own memory");
    TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, w->rank, 0, w->win));
}

static void unlock_self(const tl_window_t *w)
{
    TL_MPI(MPI_Win_unlock(w->rank, w->win));
}

/** Until the origin's call has returned. */
static void hold(const progress_cell_t *cell, const plan_t *p, MPI_Comm beside)
{
    switch (p->where) {
    case LATE:
    case RECEIVING:
        progress_step("MPI_Recv while the origin accesses");
        TL_MPI(MPI_Recv(NULL, 0, MPI_BYTE, progress_peer(cell), TAG_BESIDE, beside,
                        MPI_STATUS_IGNORE));
        progress_held(cell);
        break;
    case IN_BARRIER:
        progress_step("MPI_Barrier while the origin accesses");
        TL_MPI(MPI_Barrier(beside));
        progress_held(cell);
        break;
    default:
        progress_hold(cell, p->where == POLLING);
    }
}

static void post(const progress_cell_t *cell, const tl_window_t *w)
{
    MPI_Group group = tl_group_of(w->comm, progress_peer(cell));

    progress_step("MPI_Win_post");
    TL_MPI(MPI_Win_post(group, 0, w->win));
    MPI_Group_free(&group);
}

/** Its own part of the epoch, at whose end the data are there. */
static void end(const progress_cell_t *cell, const plan_t *p, const tl_window_t *w)
{
    int flag = 0;

    if (plan_passive(p)) {
        progress_await_in(cell, true);
        lock_self(w);
        return;
    }
    progress_step("MPI_Win_wait or MPI_Win_fence");
    if (p->epoch == FENCE) {
        TL_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win));
    } else if (p->where != TESTING) {
        TL_MPI(MPI_Win_wait(w->win));
    } else {
        while (!flag && TL_MPI(MPI_Win_test(w->win, &flag))) {
        }
    }
}

static void watch(const progress_cell_t *cell, const plan_t *p, const access_t *a,
                  const tl_window_t *w, MPI_Comm beside)
{
    int flag;

    progress_step("look at its memory");
    while (!access_arrived(a, (volatile long *)(void *)w->base))
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
    progress_tell_seen(cell);
    if (p->then == RECEIVES)
        TL_MPI(MPI_Send(NULL, 0, MPI_BYTE, progress_peer(cell), TAG_BESIDE, beside));
}

static void target(const progress_cell_t *cell)
{
    const plan_t p = plan_of(cell->index);
    access_t a = access_new(p.op, p.amount, cell->number);
    tl_window_t w = window_of(&p);
    MPI_Comm beside = progress_pair(cell);

    lock_self(&w);
    access_prepare(&a, (long *)(void *)w.base);
    unlock_self(&w);
    if (p.epoch == START && p.where != LATE)
        post(cell, &w);
    progress_tell_ready(cell);
    if (p.epoch == FENCE) {
        progress_step("MPI_Win_fence");
        TL_MPI(MPI_Win_fence(0, w.win));
    }
    if (p.where == LATE)
        progress_await_in(cell, false);
    if (p.epoch == START && p.where == LATE)
        post(cell, &w);
    if (p.where == WATCHING) {
        watch(cell, &p, &a, &w, beside);
    } else if (plan_target_holds(p.where) && p.epoch != FENCE) {
        hold(cell, &p, beside);
        if (p.epoch == START)
            end(cell, &p, &w);
    } else {
        end(cell, &p, &w);
        access_check_target(&a, (long *)(void *)w.base, p.second, cell->name);
        if (plan_passive(&p))
            unlock_self(&w);
        progress_tell_seen(cell);
    }
    if (p.then == FREES_WINDOW) {
        progress_step("MPI_Win_free");
        tl_win_free(&w);
    }
    progress_meet_end(cell);
    if (p.then != FREES_WINDOW) {
        lock_self(&w);
        access_check_target(&a, (long *)(void *)w.base, p.second, cell->name);
        unlock_self(&w);
    }
    access_free(&a);
}

const progress_family_t progress_accesses = {
    "rma", RMA_CALLS *EPOCHS *AMOUNTS * 2 * WHERES *THENS, 40, plan_describe, origin, target};

void progress_run_accesses(MPI_Comm pair, int a, int b)
{
    const char *method = getenv("OMPI_MCA_osc_nicstride_method");
    const char *node = getenv("OMPI_MCA_osc_nicstride_node");
    const bool copies =
        (method == NULL || strcmp(method, "auto") == 0 || strcmp(method, "direct") == 0) &&
        (node == NULL || strcmp(node, "0") != 0);

    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        if (pair == MPI_COMM_NULL) {
            progress_run(&progress_accesses, tl_kind_name(kind), a, b);
            continue;
        }
        tl_window_t w = tl_win_make(kind, ACCESS_BYTES, 8, pair, MPI_INFO_NULL);

        window = &w;
        progress_context.mapped = progress_context.ours_rma && copies &&
                                  (kind == TL_ALLOCATE || kind == TL_SHARED) &&
                                  progress_one_host(pair);
        progress_run(&progress_accesses, tl_kind_name(kind), a, b);
        tl_win_free(&w);
    }
}
