/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Windows of every kind behind one face, and epochs on them by every synchronisation. */
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>

/** Bytes before and after memory of ours that no transfer may touch; keeps base page aligned. */
#define GUARD_BYTES 4096
#define GUARD_VALUE 0xA5

/* ---- windows ---- */

/** Page-aligned memory between guard zones. */
static void guarded_alloc(tl_window_t *w)
{
    size_t bytes = (size_t)w->bytes + 2 * GUARD_BYTES;
    void *region;

    if (posix_memalign(&region, GUARD_BYTES, bytes) != 0)
        tl_die("out of memory");
    w->region = region;
    w->base = w->region + GUARD_BYTES;
    memset(w->region, GUARD_VALUE, bytes);
    memset(w->base, 0, (size_t)w->bytes);
}

static int create_dynamic(tl_window_t *w, MPI_Info info)
{
    int code = MPI_Win_create_dynamic(info, w->comm, &w->win);

    if (code == MPI_SUCCESS) {
        MPI_Win_set_errhandler(w->win, MPI_ERRORS_RETURN);
        if (w->bytes > 0)
            code = MPI_Win_attach(w->win, w->base, w->bytes);
    }
    return code;
}

/** Makes the window proper; memory of create and dynamic exists already. */
static int create_window(tl_window_t *w, int disp_unit, MPI_Info info)
{
    switch (w->kind) {
    case TL_CREATE:
        return MPI_Win_create(w->base, w->bytes, disp_unit, info, w->comm, &w->win);
    case TL_ALLOCATE:
        return MPI_Win_allocate(w->bytes, disp_unit, info, w->comm, &w->base, &w->win);
    case TL_SHARED:
        return MPI_Win_allocate_shared(w->bytes, disp_unit, info, w->comm, &w->base, &w->win);
    default:
        return create_dynamic(w, info);
    }
}

/** Tells everybody where and how large everybody's memory is. */
static void exchange_addresses(tl_window_t *w, int disp_unit)
{
    MPI_Aint address = 0;

    if (w->kind == TL_DYNAMIC) {
        disp_unit = 1;
        MPI_Get_address(w->base, &address);
    }
    w->peer_bytes = tl_alloc((size_t)w->size * sizeof(*w->peer_bytes));
    w->peer_base = tl_alloc((size_t)w->size * sizeof(*w->peer_base));
    w->peer_unit = tl_alloc((size_t)w->size * sizeof(*w->peer_unit));
    MPI_Allgather(&w->bytes, 1, MPI_AINT, w->peer_bytes, 1, MPI_AINT, w->comm);
    MPI_Allgather(&address, 1, MPI_AINT, w->peer_base, 1, MPI_AINT, w->comm);
    MPI_Allgather(&disp_unit, 1, MPI_INT, w->peer_unit, 1, MPI_INT, w->comm);
}

tl_window_t tl_win_make(tl_kind_t kind, MPI_Aint bytes, int disp_unit, MPI_Comm comm, MPI_Info info)
{
    tl_window_t w = {.win = MPI_WIN_NULL, .kind = kind, .bytes = bytes};

    MPI_Comm_dup(comm, &w.comm);
    MPI_Comm_rank(w.comm, &w.rank);
    MPI_Comm_size(w.comm, &w.size);
    if (kind == TL_CREATE || kind == TL_DYNAMIC)
        guarded_alloc(&w);
    if (!TL_MPI(create_window(&w, disp_unit, info)))
        tl_die("no window");
    TL_MPI(MPI_Win_set_errhandler(w.win, MPI_ERRORS_RETURN));
    if (w.region == NULL && bytes > 0)
        memset(w.base, 0, (size_t)bytes);
    exchange_addresses(&w, disp_unit);
    MPI_Barrier(w.comm);
    return w;
}

void tl_win_free(tl_window_t *w)
{
    MPI_Barrier(w->comm);
    if (w->region != NULL) {
        TL_FILL(w->region, GUARD_VALUE, GUARD_BYTES, "guard below a window");
        TL_FILL(w->base + w->bytes, GUARD_VALUE, GUARD_BYTES, "guard above a window");
    }
    if (w->kind == TL_DYNAMIC && w->bytes > 0)
        TL_MPI(MPI_Win_detach(w->win, w->base));
    TL_MPI(MPI_Win_free(&w->win));
    MPI_Comm_free(&w->comm);
    free(w->region);
    free(w->peer_bytes);
    free(w->peer_base);
    free(w->peer_unit);
    *w = (tl_window_t){.win = MPI_WIN_NULL, .comm = MPI_COMM_NULL};
}

MPI_Aint tl_disp(const tl_window_t *w, int target, MPI_Aint offset)
{
    if (w->kind == TL_DYNAMIC)
        return MPI_Aint_add(w->peer_base[target], offset);
    return offset / w->peer_unit[target];
}

/* ---- epochs ---- */

const char *tl_sync_name(tl_sync_t sync)
{
    static const char *const names[] = {"fence", "lock", "lock_all", "pscw"};

    return names[sync];
}

/** Makes local loads and stores meet what remote ranks did and will do. */
static void meet_locally(const tl_window_t *w, int lock)
{
    TL_MPI(MPI_Win_lock(lock, w->rank, 0, w->win));
    TL_MPI(MPI_Win_unlock(w->rank, w->win));
}

static void post_and_start(const tl_window_t *w)
{
    MPI_Group all;

    MPI_Comm_group(w->comm, &all);
    TL_MPI(MPI_Win_post(all, 0, w->win));
    TL_MPI(MPI_Win_start(all, 0, w->win));
    MPI_Group_free(&all);
}

void tl_begin(const tl_window_t *w, tl_sync_t sync)
{
    if (sync == TL_LOCK || sync == TL_LOCK_ALL) {
        meet_locally(w, MPI_LOCK_EXCLUSIVE);
        MPI_Barrier(w->comm);
    }
    switch (sync) {
    case TL_FENCE:
        TL_MPI(MPI_Win_fence(MPI_MODE_NOPRECEDE, w->win));
        break;
    case TL_LOCK:
        for (int t = 0; t < w->size; t++)
            TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, t, 0, w->win));
        break;
    case TL_LOCK_ALL:
        TL_MPI(MPI_Win_lock_all(0, w->win));
        break;
    default:
        post_and_start(w);
        break;
    }
}

void tl_end(const tl_window_t *w, tl_sync_t sync)
{
    switch (sync) {
    case TL_FENCE:
        TL_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win));
        break;
    case TL_LOCK:
        for (int t = 0; t < w->size; t++)
            TL_MPI(MPI_Win_unlock(t, w->win));
        break;
    case TL_LOCK_ALL:
        TL_MPI(MPI_Win_unlock_all(w->win));
        break;
    default:
        TL_MPI(MPI_Win_complete(w->win));
        TL_MPI(MPI_Win_wait(w->win));
        break;
    }
    if (sync == TL_LOCK || sync == TL_LOCK_ALL) {
        MPI_Barrier(w->comm);
        meet_locally(w, MPI_LOCK_SHARED);
    }
}

void tl_begin_ring(const tl_window_t *w)
{
    MPI_Group from = tl_group_of(w->comm, tl_before(w)), to = tl_group_of(w->comm, tl_next(w));

    TL_MPI(MPI_Win_post(from, 0, w->win));
    TL_MPI(MPI_Win_start(to, 0, w->win));
    MPI_Group_free(&from);
    MPI_Group_free(&to);
}

void tl_end_ring(const tl_window_t *w)
{
    TL_MPI(MPI_Win_complete(w->win));
    TL_MPI(MPI_Win_wait(w->win));
}
