/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-3 */
/* windows: dynamic */
/* methods: auto pack pipeline */
/* mpirun: --mca osc_nicstride_area 256 */
/**
 * @file
 * Rank 1 detaches memory and unmaps it while rank 0 still puts to it, gets from it or updates it.
 * That is wrong in a program, and it may be told so; but nobody touches the memory any more, what
 * is under way to other memory of the window is right, and the window stays usable.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "test/mpi/testlib.h"

enum { LONGS = 2 << 20, KEPT = 1 << 19, ROUNDS = 3, TAG = 7 };

typedef enum call { PUT, GET, ACCUMULATE, CALLS } call_t;

static const size_t bytes = LONGS * sizeof(int64_t);

static void *map(void)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    TL_CHECK(at != MAP_FAILED, "no memory");
    memset(at, 0, bytes);
    return at;
}

static void start(const tl_window_t *w, call_t call, int64_t *mine, MPI_Aint there, int n)
{
    switch (call) {
    case PUT:
        TL_MPI(MPI_Put(mine, n, MPI_INT64_T, 1, there, n, MPI_INT64_T, w->win));
        break;
    case GET:
        TL_MPI(MPI_Get(mine, n, MPI_INT64_T, 1, there, n, MPI_INT64_T, w->win));
        break;
    default:
        TL_MPI(MPI_Accumulate(mine, n, MPI_INT64_T, 1, there, n, MPI_INT64_T, MPI_SUM, w->win));
    }
}

static void check(const int64_t *at, int n, int64_t base)
{
    int wrong = 0;

    for (int i = 0; i < n; i++)
        wrong += at[i] != base + i;
    TL_CHECK(wrong == 0, "%d of %d values are wrong", wrong, n);
}

/** Rank 0 has begun all when it says so, and waits for what comes of it. */
static void access_all(const tl_window_t *w, call_t call)
{
    int64_t *kept = tl_alloc(KEPT * sizeof(*kept)), *lost = tl_alloc(bytes);
    MPI_Aint there[2];

    for (int i = 0; i < KEPT; i++)
        kept[i] = call == GET ? -1 : i;
    memset(lost, 0, bytes);
    TL_MPI(MPI_Recv(there, 2, MPI_AINT, 1, TAG, w->comm, MPI_STATUS_IGNORE));
    start(w, call, kept, there[0], KEPT);
    start(w, call, lost, there[1], LONGS);
    TL_MPI(MPI_Send(NULL, 0, MPI_BYTE, 1, TAG, w->comm));
    (void)MPI_Win_flush(1, w->win);
    if (call == GET)
        check(kept, KEPT, 5);
    free(kept);
    free(lost);
}

static void detach_early(const tl_window_t *w, call_t call, int64_t *kept)
{
    void *lost = map();
    MPI_Aint here[2];

    for (int i = 0; i < KEPT; i++)
        kept[i] = call == GET ? 5 + i : 0;
    TL_MPI(MPI_Win_attach(w->win, lost, (MPI_Aint)bytes));
    TL_MPI(MPI_Get_address(kept, &here[0]));
    TL_MPI(MPI_Get_address(lost, &here[1]));
    TL_MPI(MPI_Send(here, 2, MPI_AINT, 0, TAG, w->comm));
    TL_MPI(MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, w->comm, MPI_STATUS_IGNORE));
    TL_MPI(MPI_Win_detach(w->win, lost));
    munmap(lost, bytes);
}

int main(int argc, char **argv)
{
    int64_t *kept = NULL;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 64);
    tl_window_t w = tl_win_make(TL_DYNAMIC, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    TL_MPI(MPI_Win_set_errhandler(w.win, MPI_ERRORS_RETURN));
    if (w.rank == 1) {
        kept = tl_alloc(KEPT * sizeof(*kept));
        TL_MPI(MPI_Win_attach(w.win, kept, KEPT * sizeof(*kept)));
    }
    TL_MPI(MPI_Win_lock_all(0, w.win));
    for (int i = 0; i < ROUNDS * CALLS; i++) {
        if (w.rank == 0)
            access_all(&w, i % CALLS);
        else if (w.rank == 1)
            detach_early(&w, i % CALLS, kept);
        MPI_Barrier(w.comm);
        if (w.rank == 1 && i % CALLS != GET)
            check(kept, KEPT, 0);
        MPI_Barrier(w.comm);
    }
    TL_MPI(MPI_Win_unlock_all(w.win));
    if (w.rank == 1)
        TL_MPI(MPI_Win_detach(w.win, kept));
    tl_win_free(&w);
    free(kept);
    return tl_finish();
}
