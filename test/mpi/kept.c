/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* windows: create allocate dynamic */
/**
 * @file
 * What a process keeps back leaves when it waits for anything: operations that wait for
 * company. Each call with a request, as the first, second and third of
 * its epoch, then the wait for that request; and calls after which the process waits for a message
 * that is sent when their effect is seen. On one host each process is made a node of its own.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>

enum { CELLS = 8 };

typedef enum epoch { EPOCH_SHARED, EPOCH_EXCLUSIVE, EPOCH_ALL, EPOCHS } epoch_t;
typedef enum call { RGET, RGET_ACCUMULATE, RPUT, RACCUMULATE, CALLS } call_t;
typedef enum way { WAIT, TEST, FREE, WAYS } way_t;

static MPI_Aint at(const tl_window_t *w, int target, int index)
{
    return tl_disp(w, target, (MPI_Aint)index * (MPI_Aint)sizeof(long));
}

static tl_window_t make(tl_kind_t kind)
{
    tl_window_t w = tl_win_make(kind, CELLS * (MPI_Aint)sizeof(long), sizeof(long), MPI_COMM_WORLD,
                                MPI_INFO_NULL);

    memset(w.base, 0, CELLS * sizeof(long));
    MPI_Barrier(w.comm);
    return w;
}

static int next(const tl_window_t *w)
{
    return (w->rank + 1) % w->size;
}

static void begin(const tl_window_t *w, epoch_t epoch)
{
    TL_MPI(epoch == EPOCH_ALL
               ? MPI_Win_lock_all(0, w->win)
               : MPI_Win_lock(epoch == EPOCH_SHARED ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, next(w),
                              0, w->win));
}

static void end(const tl_window_t *w, epoch_t epoch)
{
    TL_MPI(epoch == EPOCH_ALL ? MPI_Win_unlock_all(w->win) : MPI_Win_unlock(next(w), w->win));
}

static void wait(MPI_Request *r, way_t way)
{
    int flag = 0;

    switch (way) {
    case WAIT:
        TL_MPI(MPI_Wait(r, MPI_STATUS_IGNORE));
        break;
    case TEST:
        while (!flag)
            TL_MPI(MPI_Test(r, &flag, MPI_STATUS_IGNORE));
        break;
    default:
        TL_MPI(MPI_Request_free(r));
    }
}

/** The call on a cell of the next rank. */
static void start(const tl_window_t *w, call_t call, const long *value, long *old, MPI_Request *r)
{
    const int t = next(w);

    switch (call) {
    case RGET:
        TL_MPI(MPI_Rget(old, 1, MPI_LONG, t, at(w, t, 0), 1, MPI_LONG, w->win, r));
        break;
    case RGET_ACCUMULATE:
        TL_MPI(MPI_Rget_accumulate(value, 1, MPI_LONG, old, 1, MPI_LONG, t, at(w, t, 0), 1,
                                   MPI_LONG, MPI_REPLACE, w->win, r));
        break;
    case RPUT:
        TL_MPI(MPI_Rput(value, 1, MPI_LONG, t, at(w, t, 0), 1, MPI_LONG, w->win, r));
        break;
    default:
        TL_MPI(MPI_Raccumulate(value, 1, MPI_LONG, t, at(w, t, 0), 1, MPI_LONG, MPI_REPLACE, w->win,
                               r));
    }
}

/** The last of `before` + 1 calls of a kind in an epoch ends by waiting for its request. */
static void test_request(const tl_window_t *w, epoch_t epoch, call_t call, way_t way, int before)
{
    long value[3], old[3] = {-1, -1, -1}, got = -1;
    MPI_Request r[3];
    bool any = false;

    begin(w, epoch);
    for (int i = 0; i <= before; i++) {
        value[i] = 100 * w->rank + 10 * call + i;
        start(w, call, &value[i], &old[i], &r[i]);
    }
    for (int i = before; i >= 0; i--)
        wait(&r[i], way);
    end(w, epoch);
    if (call == RGET || call == RGET_ACCUMULATE)
        TL_CHECK(old[0] != -1, "nothing was fetched");
    if (call == RGET)
        return;
    begin(w, epoch);
    TL_MPI(MPI_Rget(&got, 1, MPI_LONG, next(w), at(w, next(w), 0), 1, MPI_LONG, w->win, &r[0]));
    TL_MPI(MPI_Wait(&r[0], MPI_STATUS_IGNORE));
    end(w, epoch);
    /* Puts of an epoch have no order. */
    for (int i = call == RPUT ? 0 : before; i <= before; i++)
        any |= got == value[i];
    TL_CHECK(any, "%ld, not %ld", got, value[before]);
}

/** What was put is seen by its target, who then lets the origin go on, which is not in any call of
 *  the window. One rank at a time, or the lock would be the next one's. */
static void test_other_wait(const tl_window_t *w, epoch_t epoch, bool accumulate)
{
    static long round;
    const long value = ++round;

    for (int origin = 0; origin < w->size; origin++) {
        const int target = (origin + 1) % w->size;

        if (w->rank == origin) {
            begin(w, epoch);
            if (accumulate)
                TL_MPI(MPI_Accumulate(&value, 1, MPI_LONG, target, at(w, target, 1), 1, MPI_LONG,
                                      MPI_REPLACE, w->win));
            else
                TL_MPI(MPI_Put(&value, 1, MPI_LONG, target, at(w, target, 1), 1, MPI_LONG, w->win));
            TL_MPI(MPI_Recv(NULL, 0, MPI_BYTE, target, 7, w->comm, MPI_STATUS_IGNORE));
            end(w, epoch);
        } else if (w->rank == target) {
            int flag;

            while (((const volatile long *)w->base)[1] != value)
                TL_MPI(MPI_Iprobe(MPI_ANY_SOURCE, 8, w->comm, &flag, MPI_STATUS_IGNORE));
            TL_MPI(MPI_Send(NULL, 0, MPI_BYTE, origin, 7, w->comm));
        }
        MPI_Barrier(w->comm);
    }
}

/** As mpirun says; before MPI is there. */
static bool alone_on_host(void)
{
    const char *all = getenv("OMPI_COMM_WORLD_SIZE"), *here = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");

    return all != NULL && here != NULL && strcmp(all, here) == 0;
}

int main(int argc, char **argv)
{
    if (alone_on_host())
        setenv("OMPI_MCA_osc_nicstride_node", "0", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 64);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        tl_window_t w = make(kind);

        for (int i = 0; i < EPOCHS * CALLS * WAYS * 3; i++)
            test_request(&w, i % EPOCHS, i / EPOCHS % CALLS, i / (EPOCHS * CALLS) % WAYS,
                         i / (EPOCHS * CALLS * WAYS));
        MPI_Barrier(w.comm);
        for (int i = 0; i < EPOCHS * 2; i++)
            test_other_wait(&w, i % EPOCHS, i >= EPOCHS);
        tl_win_free(&w);
    }
    return tl_finish();
}
