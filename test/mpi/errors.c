/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic shared */
/**
 * @file
 * Errors of the program in the use of epochs: the error class of each, and that the window works
 * as before afterwards. Each call is told once that it is wrong where it stands: in which states it
 * is which, test/unit/check_epoch.c has. MPI names the class of these errors but asks nobody to
 * notice them, so nearly all checks are of quality; what MPI itself requires is marked "required".
 * Arguments that name a case run only that case.
 */
#include "test/mpi/rma.h"
#include "test/mpi/testlib.h"

#include <limits.h>
#include <stdlib.h>

#define SYNC_ERROR(call) TL_MPI_ERROR(call, MPI_ERR_RMA_SYNC)

static tl_window_t make_window(tl_kind_t kind)
{
    return tl_win_make(kind, 4 * sizeof(long), sizeof(long), MPI_COMM_WORLD, MPI_INFO_NULL);
}

/** A good put of `value` to the start of `target`'s memory, in whatever epoch is open. */
static int put(const tl_window_t *w, int target, const long *value)
{
    return MPI_Put(value, 1, MPI_LONG, target, tl_disp(w, target, 0), 1, MPI_LONG, w->win);
}

static void locks_work(const tl_window_t *w)
{
    long value = 700 + w->rank, got = -1;
    int next = tl_next(w);

    TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, w->win));
    TL_MPI(put(w, next, &value));
    TL_MPI(MPI_Win_flush(next, w->win));
    TL_MPI(MPI_Get(&got, 1, MPI_LONG, next, tl_disp(w, next, 0), 1, MPI_LONG, w->win));
    TL_MPI(MPI_Win_unlock(next, w->win));
    TL_CHECK(got == value, "put %ld, got %ld", value, got);
}

static void pscw_works(const tl_window_t *w)
{
    long value = 800 + w->rank;

    tl_begin_ring(w);
    TL_MPI(put(w, tl_next(w), &value));
    tl_end_ring(w);
    TL_CHECK(*(long *)w->base == 800 + tl_before(w), "%ld", *(long *)w->base);
}

static void fences_work(const tl_window_t *w)
{
    long value = 900 + w->rank;

    TL_MPI(MPI_Win_fence(MPI_MODE_NOPRECEDE, w->win));
    TL_MPI(put(w, tl_next(w), &value));
    TL_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win));
    TL_CHECK(*(long *)w->base == 900 + tl_before(w), "%ld", *(long *)w->base);
}

/** required: errors that were returned leave a window whose legal use goes on as ever. */
static void still_works(const tl_window_t *w)
{
    MPI_Barrier(w->comm);
    locks_work(w);
    MPI_Barrier(w->comm);
    pscw_works(w);
    fences_work(w);
}

/* ---- communication without an epoch ---- */

static void refuse_from(rma_t first, const tl_window_t *w)
{
    long value = 1, other = 2, result = 3;
    MPI_Request r = MPI_REQUEST_NULL;
    rma_given_t g =
        rma_plain(&value, &result, 1, MPI_LONG, tl_next(w), tl_disp(w, tl_next(w), 0), w->win);

    g.compare = &other;
    for (rma_t call = first; call < RMA_CALLS; call++)
        SYNC_ERROR(rma_call(call, &g, &r));
    TL_CHECK(value == 1 && result == 3, "a refused operation wrote %ld, %ld", value, result);
}

static void case_no_epoch(const tl_window_t *w)
{
    refuse_from(RMA_PUT, w);
    MPI_Barrier(w->comm);
    TL_FILL(w->base, 0, sizeof(long), "a refused operation wrote to the window");
}

/** A target that is not in the epoch, while one is open to another. */
static void case_other_target(const tl_window_t *w)
{
    int locked = tl_next(w), other = w->rank;
    long value = 1;

    if (locked == other)
        return;
    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, locked, 0, w->win));
    SYNC_ERROR(put(w, other, &value));
    SYNC_ERROR(MPI_Win_flush(other, w->win));
    SYNC_ERROR(MPI_Win_unlock(other, w->win));
    TL_MPI(MPI_Win_unlock(locked, w->win));
    MPI_Barrier(w->comm);
    tl_begin_ring(w);
    SYNC_ERROR(put(w, other, &value));
    tl_end_ring(w);
}

/** Request-based operations belong to passive epochs only. */
static void case_request_in_fence(const tl_window_t *w)
{
    TL_MPI(MPI_Win_fence(0, w->win));
    refuse_from(RMA_RPUT, w);
    TL_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win));
}

/* ---- ends without a beginning ---- */

static void case_unlock(const tl_window_t *w)
{
    SYNC_ERROR(MPI_Win_unlock(tl_next(w), w->win));
    SYNC_ERROR(MPI_Win_unlock_all(w->win));
    locks_work(w);
    SYNC_ERROR(MPI_Win_unlock(tl_next(w), w->win));
}

static void case_flush(const tl_window_t *w)
{
    int t = tl_next(w);

    SYNC_ERROR(MPI_Win_flush(t, w->win));
    SYNC_ERROR(MPI_Win_flush_all(w->win));
    SYNC_ERROR(MPI_Win_flush_local(t, w->win));
    SYNC_ERROR(MPI_Win_flush_local_all(w->win));
}

/** MPI itself does not look at the rank of a flush. */
static void flush_nobody(const tl_window_t *w)
{
    const int nobody[] = {w->size, -1, MPI_PROC_NULL, INT_MAX, INT_MIN};

    for (size_t i = 0; i < sizeof(nobody) / sizeof(nobody[0]); i++) {
        SYNC_ERROR(MPI_Win_flush(nobody[i], w->win));
        SYNC_ERROR(MPI_Win_flush_local(nobody[i], w->win));
    }
}

static void case_flush_nobody(const tl_window_t *w)
{
    int t = tl_next(w);

    flush_nobody(w);
    TL_MPI(MPI_Win_lock_all(0, w->win));
    flush_nobody(w);
    TL_MPI(MPI_Win_unlock_all(w->win));
    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, t, 0, w->win));
    flush_nobody(w);
    TL_MPI(MPI_Win_unlock(t, w->win));
}

static void case_complete(const tl_window_t *w)
{
    SYNC_ERROR(MPI_Win_complete(w->win));
    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, tl_next(w), 0, w->win));
    SYNC_ERROR(MPI_Win_complete(w->win));
    TL_MPI(MPI_Win_unlock(tl_next(w), w->win));
}

static void case_wait(const tl_window_t *w)
{
    int flag = 0;

    SYNC_ERROR(MPI_Win_wait(w->win));
    SYNC_ERROR(MPI_Win_test(w->win, &flag));
}

/* ---- beginnings within ---- */

/** Locks and fences within a started epoch, which then is of use all the same. */
static void case_lock_in_start(const tl_window_t *w)
{
    MPI_Group to = tl_group_of(w->comm, tl_next(w));
    long value = 60 + w->rank;

    tl_begin_ring(w);
    SYNC_ERROR(MPI_Win_lock(MPI_LOCK_SHARED, tl_next(w), 0, w->win));
    SYNC_ERROR(MPI_Win_lock_all(0, w->win));
    SYNC_ERROR(MPI_Win_start(to, 0, w->win));
    SYNC_ERROR(MPI_Win_fence(0, w->win));
    TL_MPI(put(w, tl_next(w), &value));
    tl_end_ring(w);
    TL_CHECK(*(long *)w->base == 60 + tl_before(w), "%ld", *(long *)w->base);
    MPI_Group_free(&to);
}

/** What an exposure epoch forbids; it is of use all the same. */
static void case_in_post(const tl_window_t *w)
{
    MPI_Win win = w->win;
    MPI_Group to = tl_group_of(w->comm, tl_next(w)), from = tl_group_of(w->comm, tl_before(w));

    TL_MPI(MPI_Win_post(from, 0, w->win));
    SYNC_ERROR(MPI_Win_post(from, 0, w->win));
    SYNC_ERROR(MPI_Win_fence(0, w->win));
    SYNC_ERROR(MPI_Win_free(&win));
    TL_MPI(MPI_Win_start(to, 0, w->win));
    tl_end_ring(w);
    MPI_Group_free(&to);
    MPI_Group_free(&from);
}

/* ---- how errors are told ---- */

static int handler_calls, handler_class;

static void handler(MPI_Win *win, int *code, ...)
{
    (void)win;
    handler_calls++;
    handler_class = tl_class(*code);
}

/** required: the window's own error handler is called, with the code that has a text. */
static void case_handler(const tl_window_t *w)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    MPI_Errhandler mine;
    int length = 0, code;

    MPI_Win_create_errhandler(handler, &mine);
    MPI_Win_set_errhandler(w->win, mine);
    handler_calls = handler_class = 0;
    code = MPI_Win_unlock(tl_next(w), w->win);
    TL_CHECK(handler_calls == 1 && handler_class == MPI_ERR_RMA_SYNC, "%d calls, class %d",
             handler_calls, handler_class);
    MPI_Error_string(code, text, &length);
    TL_CHECK(length > 0, "the error has no text");
    MPI_Win_set_errhandler(w->win, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&mine);
}

/** What only windows of another kind can. required: the class of the query. */
static void case_flavor(const tl_window_t *w)
{
    MPI_Aint bytes;
    void *base;
    int unit;

    if (w->kind == TL_DYNAMIC)
        TL_MPI_ERROR(MPI_Win_shared_query(w->win, 0, &bytes, &unit, &base), MPI_ERR_RMA_FLAVOR);
    if (w->kind != TL_DYNAMIC) {
        TL_MPI_ERROR(MPI_Win_attach(w->win, &unit, sizeof(unit)), MPI_ERR_RMA_FLAVOR);
        TL_MPI_ERROR(MPI_Win_detach(w->win, &unit), MPI_ERR_RMA_FLAVOR);
    }
}

/** A window that was promised to have no locks, and works by other means. */
static void case_no_locks(const tl_window_t *w)
{
    MPI_Info info;

    MPI_Info_create(&info);
    MPI_Info_set(info, "no_locks", "true");
    tl_window_t bare = tl_win_make(w->kind, sizeof(long), 1, MPI_COMM_WORLD, info);
    SYNC_ERROR(MPI_Win_lock(MPI_LOCK_SHARED, tl_next(w), 0, bare.win));
    SYNC_ERROR(MPI_Win_lock_all(0, bare.win));
    fences_work(&bare);
    pscw_works(&bare);
    MPI_Info_free(&info);
    tl_win_free(&bare);
}

/** Groups that are not part of the window's. */
static void case_group(const tl_window_t *w)
{
    MPI_Group other = tl_group_of(w->comm, tl_next(w));

    if (w->size > 1) {
        tl_window_t mine = tl_win_make(w->kind, sizeof(long), 1, MPI_COMM_SELF, MPI_INFO_NULL);
        TL_MPI_ERROR(MPI_Win_start(other, 0, mine.win), MPI_ERR_GROUP);
        TL_MPI_ERROR(MPI_Win_post(other, 0, mine.win), MPI_ERR_GROUP);
        tl_win_free(&mine);
    }
    MPI_Group_free(&other);
}

/** A window that is locked is not freed, and goes on being one. */
static void case_free(const tl_window_t *w)
{
    MPI_Win win = w->win;

    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, tl_next(w), 0, win));
    SYNC_ERROR(MPI_Win_free(&win));
    TL_CHECK(win == w->win, "the handle has changed");
    TL_MPI(MPI_Win_unlock(tl_next(w), win));
}

static const struct {
    const char *name;
    void (*run)(const tl_window_t *);
} cases[] = {{"no_epoch", case_no_epoch},
             {"other_target", case_other_target},
             {"request_in_fence", case_request_in_fence},
             {"unlock", case_unlock},
             {"flush", case_flush},
             {"flush_nobody", case_flush_nobody},
             {"complete", case_complete},
             {"wait", case_wait},
             {"lock_in_start", case_lock_in_start},
             {"in_post", case_in_post},
             {"handler", case_handler},
             {"flavor", case_flavor},
             {"no_locks", case_no_locks},
             {"group", case_group},
             {"free", case_free}};

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            if (tl_asked_for(cases[i].name, argc, argv)) {
                tl_window_t w = make_window(kind);

                cases[i].run(&w);
                still_works(&w);
                tl_win_free(&w);
            }
        }
    }
    return tl_finish();
}
