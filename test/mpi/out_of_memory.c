/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* windows: create */
/* methods: cma */
/**
 * @file
 * A target that has no memory to put accumulates off: their origins get an error at the flush or
 * the call, nobody waits for ever, and afterwards everything works again.
 *
 * Rank 0 has its lock of accumulates meanwhile (busy_lock.h), and malloc of this program gives it
 * nothing of some KiB.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "test/mpi/busy_lock.h"
#include "test/mpi/testlib.h"

enum { LONGS = 1 << 16, OWN = 1 << 15, HELD_MS = 700, FROM = 2048, TO = 1 << 20 };

#define WINDOW_BYTES ((MPI_Aint)(LONGS + OWN) * (MPI_Aint)sizeof(int64_t))

static atomic_bool armed;
static atomic_int refusals;

#ifndef __SANITIZE_ADDRESS__
/** The one of the C library, but for what is refused. */
__attribute__((visibility("default"))) void *malloc(size_t bytes)
{
    static void *(*_Atomic next)(size_t);
    void *(*f)(size_t) = atomic_load(&next);

    if (f == NULL) {
        *(void **)&f = dlsym(RTLD_NEXT, "malloc");
        atomic_store(&next, f);
    }
    if (atomic_load(&armed) && bytes >= FROM && bytes < TO) {
        atomic_fetch_add(&refusals, 1);
        errno = ENOMEM;
        return NULL;
    }
    return f(bytes);
}
#endif

/** With the lock there is no memory. */
static void arm(bool held)
{
    atomic_store(&armed, held);
}

/** With the lock of accumulates of rank 0 for a while. */
static void hold(const tl_window_t *w)
{
    busy_lock_hold(w, LONGS * (MPI_Aint)sizeof(int64_t), OWN, HELD_MS, arm);
}

/** Are errors reported while the target has no memory, and none afterwards? */
static void send(const tl_window_t *w, bool fetches)
{
    int64_t *ones = tl_alloc(LONGS * sizeof(*ones)), *got = tl_alloc(LONGS * sizeof(*got));
    const struct timespec time = {0, 50 * 1000000L};
    int rc, class = MPI_SUCCESS;

    nanosleep(&time, NULL);
    if (fetches) {
        rc = MPI_Get_accumulate(ones, LONGS, MPI_INT64_T, got, LONGS, MPI_INT64_T, 0,
                                tl_disp(w, 0, 0), LONGS, MPI_INT64_T, MPI_SUM, w->win);
    } else {
        rc = MPI_Accumulate(ones, LONGS, MPI_INT64_T, 0, tl_disp(w, 0, 0), LONGS, MPI_INT64_T,
                            MPI_SUM, w->win);
    }
    if (rc == MPI_SUCCESS)
        rc = MPI_Win_flush(0, w->win);
    MPI_Error_class(rc, &class);
    TL_CHECK(class == MPI_ERR_NO_MEM || class == MPI_ERR_OTHER, "class %d without memory", class);
    free(ones);
    free(got);
}

static void try_calls(bool fetches)
{
    const int64_t one = 1;
    int64_t old = -1;
    tl_window_t w =
        tl_win_make(TL_CREATE, tl_rank() == 0 ? WINDOW_BYTES : 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL);

    TL_MPI(MPI_Win_lock_all(0, w.win));
    /* Connections are made before. */
    TL_MPI(MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, tl_disp(&w, 0, 0), MPI_SUM, w.win));
    TL_MPI(MPI_Win_flush(0, w.win));
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    atomic_store(&refusals, 0);
    if (tl_rank() == 0) {
        hold(&w);
        TL_CHECK(atomic_load(&refusals) > 0, "no memory was asked for");
    } else {
        send(&w, fetches);
    }
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    TL_MPI(MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, tl_disp(&w, 0, 0), MPI_SUM, w.win));
    TL_MPI(MPI_Win_unlock_all(w.win));
    TL_CHECK(old >= tl_size(), "%ld afterwards", (long)old);
    tl_win_free(&w);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 64);
#ifdef __SANITIZE_ADDRESS__
    tl_skip("malloc belongs to the sanitizer");
#endif
    try_calls(false);
    try_calls(true);
    return tl_finish();
}
