/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* windows: create dynamic */
/* methods: auto pack */
/**
 * @file
 * Who waits for a process that computes wakes its helper thread: the timer by which that thread
 * would take over by itself is set to a second, and yet a whole flush, and the wait for a request,
 * end while the target computes for a small part of that. A target that waits in MPI is not woken.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <unistd.h>

#include "test/mpi/counter.h"

/** Seconds for which rank 0 computes at first. It is the last that any origin may need. */
#define COMPUTES (tl_slow() ? 0.4 : 0.2)
/** The most: half of it is less than the timer. */
#define COMPUTES_MOST 1.6
/** One try may fail because a process did not get a processor; the next takes twice the time. */
#define TRIES  12
#define ROUNDS 20
/** Longs of a transfer: one, and some with holes, so that they go by message. */
enum { FEW = 1, MANY = 2000 };

typedef struct job {
    tl_window_t w;
    long *data;
    MPI_Datatype holes;
} job_t;

static MPI_Aint mine(const job_t *j)
{
    return tl_disp(&j->w, 0, (MPI_Aint)j->w.rank * 2 * MANY * (MPI_Aint)sizeof(long));
}

static void op_put(job_t *j)
{
    TL_MPI(MPI_Put(j->data, FEW, MPI_LONG, 0, mine(j), FEW, MPI_LONG, j->w.win));
    TL_MPI(MPI_Win_flush(0, j->w.win));
}

static void op_put_holes(job_t *j)
{
    TL_MPI(MPI_Put(j->data, 1, j->holes, 0, mine(j), 1, j->holes, j->w.win));
    TL_MPI(MPI_Win_flush(0, j->w.win));
}

static void op_accumulate(job_t *j)
{
    TL_MPI(MPI_Accumulate(j->data, 1, j->holes, 0, mine(j), 1, j->holes, MPI_REPLACE, j->w.win));
    TL_MPI(MPI_Win_flush(0, j->w.win));
}

static void op_fetch(job_t *j)
{
    long old, one = 1;

    TL_MPI(MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, mine(j), MPI_SUM, j->w.win));
    TL_MPI(MPI_Win_flush(0, j->w.win));
}

/** The wait is in a loop of MPI's own. */
static void op_request(job_t *j)
{
    long got[MANY * 2], one = 1;
    MPI_Request request;

    TL_MPI(MPI_Rget_accumulate(&one, 1, MPI_LONG, got, 1, MPI_LONG, 0, mine(j), 1, MPI_LONG,
                               MPI_NO_OP, j->w.win, &request));
    TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    TL_MPI(MPI_Rget(got, 1, j->holes, 0, mine(j), 1, j->holes, j->w.win, &request));
    TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

static const struct {
    const char *name;
    void (*run)(job_t *);
} ops[] = {{"put", op_put},
           {"put with holes", op_put_holes},
           {"accumulate", op_accumulate},
           {"fetch", op_fetch},
           {"request", op_request}};
enum { OPS = sizeof(ops) / sizeof(ops[0]) };

static void compute(double seconds)
{
    const double end = MPI_Wtime() + seconds;

    for (volatile double x = 1; MPI_Wtime() < end;)
        for (int i = 0; i < 1000; i++)
            x = x * 1.0000001 + 1e-9;
}

/** How long it took the slowest origin. */
static double try_once(job_t *j, int op, double computes)
{
    double took = 0, slowest;

    MPI_Barrier(j->w.comm);
    if (j->w.rank == 0) {
        compute(computes);
    } else {
        compute(computes / 10);
        took = MPI_Wtime();
        ops[op].run(j);
        took = MPI_Wtime() - took;
    }
    MPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, j->w.comm);
    return slowest;
}

static void test_away(job_t *j)
{
    for (int op = 0; op < OPS; op++) {
        double computes = COMPUTES, took = try_once(j, op, computes);

        /* Before the target is back: half of its time is enough to tell. */
        for (int i = 1; i < TRIES && took > computes / 2; i++) {
            computes = computes * 2 < COMPUTES_MOST ? computes * 2 : COMPUTES_MOST;
            took = try_once(j, op, computes);
        }
        TL_CHECK(j->w.rank != 0 || took <= computes / 2,
                 "%s took %g s while the target computed for %g s", ops[op].name, took, computes);
    }
}

/** Rank 0 waits in MPI meanwhile, in one of several calls. How often rank 1 has woken it. */
static unsigned long long wakeups_of_round(job_t *j, const counter_t *wakeups, int how)
{
    const unsigned long long before = counter_read(wakeups);
    unsigned long long n;
    MPI_Request request;

    MPI_Barrier(j->w.comm);
    for (int i = 0; i < ROUNDS * OPS && j->w.rank == 1; i++)
        ops[i % OPS].run(j);
    n = counter_read(wakeups) - before;
    if (how % 3 != 0 && j->w.rank == 1) {
        TL_MPI(MPI_Send(NULL, 0, MPI_BYTE, 0, 7, j->w.comm));
    } else if (how % 3 == 1 && j->w.rank == 0) {
        TL_MPI(MPI_Recv(NULL, 0, MPI_BYTE, 1, 7, j->w.comm, MPI_STATUS_IGNORE));
    } else if (how % 3 == 2 && j->w.rank == 0) {
        TL_MPI(MPI_Irecv(NULL, 0, MPI_BYTE, 1, 7, j->w.comm, &request));
        TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    TL_MPI(MPI_Bcast(&n, 1, MPI_UNSIGNED_LONG_LONG, 1, j->w.comm));
    return n;
}

/** One that has lost its processor to others looks as if it computed: so one round in several is
 *  enough, and the later ones are further apart. */
static void test_present(job_t *j)
{
    counter_t *wakeups = counter_begin("osc_nicstride_wakeups");
    /* With more ranks, and where processors are emulated, nothing can be said of it. */
    const bool counts = j->w.size <= 2 && !tl_slow();

    for (int how = 0; how < 3; how++) {
        unsigned long long n = ROUNDS * OPS;

        for (int i = 0; i < (counts ? 5 * TRIES : 1) && n > ROUNDS * OPS / 2; i++) {
            usleep(10000 * (unsigned)i);
            n = wakeups_of_round(j, wakeups, how);
        }
        TL_CHECK(j->w.rank != 1 || !counts || n <= ROUNDS * OPS / 2,
                 "%llu wakeups in %d operations, though the target waits in MPI", n, ROUNDS * OPS);
    }
    MPI_Barrier(j->w.comm);
    counter_end(wakeups);
}

int main(int argc, char **argv)
{
    setenv("OMPI_MCA_osc_nicstride_server_idle", "1000000", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 16);
    for (int rank = 0; rank < tl_size(); rank++)
        if (!tl_same_host(rank))
            tl_skip("processes of other hosts cannot be woken");
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        const MPI_Aint longs = tl_rank() == 0 ? (MPI_Aint)tl_size() * 2 * MANY : 0;
        job_t j = {.data = tl_alloc(2 * MANY * sizeof(long))};

        for (int i = 0; i < 2 * MANY; i++)
            j.data[i] = i;
        MPI_Type_vector(MANY, 1, 2, MPI_LONG, &j.holes);
        MPI_Type_commit(&j.holes);
        j.w = tl_win_make(kind, longs * (MPI_Aint)sizeof(long), 1, MPI_COMM_WORLD, MPI_INFO_NULL);
        TL_MPI(MPI_Win_lock_all(0, j.w.win));
        test_away(&j);
        test_present(&j);
        TL_MPI(MPI_Win_unlock_all(j.w.win));
        tl_win_free(&j.w);
        MPI_Type_free(&j.holes);
        free(j.data);
    }
    return tl_finish();
}
