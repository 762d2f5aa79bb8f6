/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* windows: create allocate dynamic shared */
/**
 * @file
 * Passive target progress: rank 0 stays out of MPI, asleep or computing, until the others tell it
 * that a whole epoch on its memory is over. They tell it by what MPI does not carry: a FIFO where
 * all ranks share a node, and in any case a counter in the window, which rank 0 watches by plain
 * loads. Were its help needed, nobody would ever tell; it then gives up and fails the check.
 */
#include "test/mpi/testlib.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/** Seconds after which rank 0 takes it that its help is waited for. */
#define PATIENCE TL_PATIENCE
/** Longs of the largest transfer; rank r has those from r * LONGS on, after the two counters. */
#define LONGS 90000
enum { COUNTER, SUM, FIRST };

/** What the window and the FIFO look like to one rank. */
typedef struct job {
    tl_window_t w;
    int fifo;      /**< -1 where the ranks do not share a node */
    bool computes; /**< rank 0 computes rather than sleeps */
    bool hopeless; /**< progress has failed once: wait for nothing any more */
    long expected; /**< value of the counter when all have told */
    long *data;
} job_t;

static MPI_Aint at(const job_t *j, int index)
{
    return tl_disp(&j->w, 0, (MPI_Aint)index * (MPI_Aint)sizeof(long));
}

/** First long of rank 0's memory that is mine. */
static MPI_Aint mine(const job_t *j)
{
    return at(j, FIRST + (j->w.rank - 1) * LONGS);
}

/* ---- what the origins do: each a whole epoch ---- */

static void lock(const job_t *j, int type)
{
    TL_MPI(MPI_Win_lock(type, 0, 0, j->w.win));
}

static void unlock(const job_t *j)
{
    TL_MPI(MPI_Win_unlock(0, j->w.win));
}

static void put(const job_t *j, int n)
{
    TL_MPI(MPI_Put(j->data, n, MPI_LONG, 0, mine(j), n, MPI_LONG, j->w.win));
}

static void get(const job_t *j, int n)
{
    memset(j->data, 0, (size_t)n * sizeof(long));
    TL_MPI(MPI_Get(j->data, n, MPI_LONG, 0, mine(j), n, MPI_LONG, j->w.win));
}

static void check_got(const job_t *j, int n)
{
    int wrong = 0;

    for (int i = 0; i < n; i++)
        wrong += j->data[i] != i + j->w.rank;
    TL_CHECK(wrong == 0, "%d of %d longs wrong", wrong, n);
}

static void op_lock(job_t *j)
{
    lock(j, MPI_LOCK_EXCLUSIVE);
    unlock(j);
    lock(j, MPI_LOCK_SHARED);
    unlock(j);
    TL_MPI(MPI_Win_lock_all(0, j->w.win));
    TL_MPI(MPI_Win_unlock_all(j->w.win));
}

static void op_put(job_t *j)
{
    lock(j, MPI_LOCK_EXCLUSIVE);
    put(j, 1);
    unlock(j);
    lock(j, MPI_LOCK_SHARED);
    put(j, LONGS);
    unlock(j);
}

static void op_get(job_t *j)
{
    lock(j, MPI_LOCK_EXCLUSIVE);
    get(j, 1);
    unlock(j);
    check_got(j, 1);
    lock(j, MPI_LOCK_SHARED);
    get(j, LONGS);
    unlock(j);
    check_got(j, LONGS);
}

/** Every third long there and back: both sides have holes. */
static void op_strided(job_t *j)
{
    MPI_Datatype third;

    MPI_Type_vector(LONGS / 3, 1, 3, MPI_LONG, &third);
    MPI_Type_commit(&third);
    lock(j, MPI_LOCK_SHARED);
    TL_MPI(MPI_Put(j->data, 1, third, 0, mine(j), 1, third, j->w.win));
    TL_MPI(MPI_Win_flush(0, j->w.win));
    for (int i = 0; i < LONGS; i += 3)
        j->data[i] = -1;
    TL_MPI(MPI_Get(j->data, 1, third, 0, mine(j), 1, third, j->w.win));
    unlock(j);
    check_got(j, LONGS);
    MPI_Type_free(&third);
}

static void op_accumulate(job_t *j)
{
    long one = 1, old = -1;

    lock(j, MPI_LOCK_SHARED);
    TL_MPI(MPI_Accumulate(&one, 1, MPI_LONG, 0, at(j, SUM), 1, MPI_LONG, MPI_SUM, j->w.win));
    TL_MPI(MPI_Accumulate(j->data, LONGS, MPI_LONG, 0, mine(j), LONGS, MPI_LONG, MPI_REPLACE,
                          j->w.win));
    TL_MPI(MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, at(j, SUM), MPI_SUM, j->w.win));
    TL_MPI(MPI_Win_flush(0, j->w.win));
    TL_CHECK(old >= 1 && old < 2L * j->w.size, "fetched %ld", old);
    TL_MPI(MPI_Get_accumulate(&one, 1, MPI_LONG, &old, 1, MPI_LONG, 0, at(j, SUM), 1, MPI_LONG,
                              MPI_NO_OP, j->w.win));
    unlock(j);
    TL_CHECK(old >= 2 && old < 2L * j->w.size, "fetched %ld", old);
}

static void op_swap(job_t *j)
{
    long want = -7 - j->w.rank, have = j->w.rank, old = -1;

    lock(j, MPI_LOCK_EXCLUSIVE);
    TL_MPI(MPI_Compare_and_swap(&want, &have, &old, MPI_LONG, 0, mine(j), j->w.win));
    TL_MPI(MPI_Win_flush(0, j->w.win));
    TL_CHECK(old == have, "swapped %ld for %ld", old, want);
    TL_MPI(MPI_Compare_and_swap(&have, &want, &old, MPI_LONG, 0, mine(j), j->w.win));
    unlock(j);
    TL_CHECK(old == want, "swapped %ld back, not %ld", old, want);
}

static void op_request(job_t *j)
{
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    long zero = 0;

    TL_MPI(MPI_Win_lock_all(0, j->w.win));
    TL_MPI(MPI_Rput(j->data, 100, MPI_LONG, 0, mine(j), 100, MPI_LONG, j->w.win, &requests[0]));
    TL_MPI(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    TL_MPI(MPI_Win_flush_all(j->w.win));
    TL_MPI(MPI_Rget(j->data, LONGS, MPI_LONG, 0, mine(j), LONGS, MPI_LONG, j->w.win, &requests[0]));
    TL_MPI(MPI_Raccumulate(&zero, 1, MPI_LONG, 0, at(j, SUM), 1, MPI_LONG, MPI_SUM, j->w.win,
                           &requests[1]));
    TL_MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    TL_MPI(MPI_Win_unlock_all(j->w.win));
    check_got(j, LONGS);
}

/** Under an exclusive lock a flush alone, seen through the window itself. */
static void op_flush(job_t *j)
{
    lock(j, MPI_LOCK_EXCLUSIVE);
    put(j, 1000);
    TL_MPI(MPI_Win_flush_local(0, j->w.win));
    TL_MPI(MPI_Win_flush(0, j->w.win));
    get(j, 1000);
    TL_MPI(MPI_Win_flush(0, j->w.win));
    check_got(j, 1000);
    unlock(j);
}

static const struct {
    const char *name;
    void (*run)(job_t *);
} ops[] = {{"lock", op_lock},
           {"put", op_put},
           {"get", op_get},
           {"strided", op_strided},
           {"accumulate", op_accumulate},
           {"swap", op_swap},
           {"request", op_request},
           {"flush", op_flush}};
enum { OPS = sizeof(ops) / sizeof(ops[0]) };

/* ---- telling and watching ---- */

/** An origin has finished: one byte, and one more in the counter. */
static void tell(const job_t *j)
{
    long one = 1;

    if (j->fifo >= 0)
        TL_CHECK(write(j->fifo, "x", 1) == 1, "cannot write to the FIFO");
    lock(j, MPI_LOCK_SHARED);
    TL_MPI(MPI_Accumulate(&one, 1, MPI_LONG, 0, at(j, COUNTER), 1, MPI_LONG, MPI_SUM, j->w.win));
    TL_MPI(MPI_Win_flush(0, j->w.win));
    unlock(j);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/** A while outside MPI. */
static void pass_time(const job_t *j)
{
    volatile double x = 1.0;

    if (!j->computes) {
        usleep(500);
        return;
    }
    for (int i = 0; i < 50000; i++)
        x = sqrt(x + (double)i);
}

/** Stays out of MPI until all origins have told by both ways; false where they never do. */
static bool watch(const job_t *j)
{
    const long *counter = (const long *)j->w.base + COUNTER;
    int missing = j->fifo >= 0 ? j->w.size - 1 : 0;
    double begin = now();
    char byte;

    while (missing > 0 || __atomic_load_n(counter, __ATOMIC_RELAXED) != j->expected) {
        if (j->hopeless || now() - begin > PATIENCE)
            return false;
        while (missing > 0 && read(j->fifo, &byte, 1) == 1)
            missing--;
        pass_time(j);
    }
    return true;
}

/** All ranks enter together; from then on rank 0 makes no MPI call until it has been told. */
static void round_of(job_t *j, int op)
{
    MPI_Barrier(j->w.comm);
    j->expected += j->w.size - 1;
    if (j->w.rank > 0) {
        ops[op].run(j);
        tell(j);
    } else if (!watch(j) && !j->hopeless) {
        TL_CHECK(false, "%s did not complete while the target %s", ops[op].name,
                 j->computes ? "computed" : "slept");
        j->hopeless = true;
    }
}

/* ---- setup ---- */

/** Opens a FIFO by a name that rank 0 makes; -1 on all ranks where one of them cannot. */
static int open_fifo(MPI_Comm comm, int rank)
{
    const char *tmp = getenv("TMPDIR");
    char path[512] = "", directory[480];
    int fd = -1, good, all_good;

    if (rank == 0) {
        snprintf(directory, sizeof(directory), "%.400s/onic-progress-XXXXXX", tmp ? tmp : "/tmp");
        if (mkdtemp(directory) != NULL) {
            snprintf(path, sizeof(path), "%s/fifo", directory);
            mkfifo(path, 0600);
        }
    }
    MPI_Bcast(path, sizeof(path), MPI_CHAR, 0, comm);
    fd = open(path, O_RDWR | O_NONBLOCK);
    good = fd >= 0;
    MPI_Allreduce(&good, &all_good, 1, MPI_INT, MPI_LAND, comm);
    if (rank == 0 && path[0] != '\0') {
        unlink(path);
        rmdir(directory);
    }
    if (!all_good && fd >= 0) {
        close(fd);
        fd = -1;
    }
    return all_good ? fd : -1;
}

static void set_up(job_t *j, tl_kind_t kind)
{
    MPI_Aint longs = tl_rank() == 0 ? FIRST + (MPI_Aint)(tl_size() - 1) * LONGS : 0;

    *j = (job_t){.data = tl_alloc(LONGS * sizeof(long))};
    j->w = tl_win_make(kind, longs * (MPI_Aint)sizeof(long), sizeof(long), MPI_COMM_WORLD,
                       MPI_INFO_NULL);
    j->fifo = open_fifo(j->w.comm, j->w.rank);
    for (int i = 0; i < LONGS; i++)
        j->data[i] = i + j->w.rank;
}

static void test_progress(tl_kind_t kind)
{
    job_t j;

    set_up(&j, kind);
    for (int round = 0; round < 2 * OPS; round++) {
        j.computes = round >= OPS;
        if (round % OPS == 0 && j.w.rank == 0) {
            TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, j.w.win));
            ((long *)j.w.base)[SUM] = 0;
            TL_MPI(MPI_Win_unlock(0, j.w.win));
        }
        round_of(&j, round % OPS);
    }
    MPI_Barrier(j.w.comm);
    if (j.w.rank == 0) {
        TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, j.w.win));
        long got = ((long *)j.w.base)[SUM];
        TL_MPI(MPI_Win_unlock(0, j.w.win));
        TL_CHECK(got == 2L * (j.w.size - 1), "sum %ld", got);
    }
    if (j.fifo >= 0)
        close(j.fifo);
    free(j.data);
    tl_win_free(&j.w);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 64);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind))
        test_progress(kind);
    return tl_finish();
}
