/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-3 */
/* windows: create allocate */
/* methods: nic rdma */
/**
 * @file
 * What an adapter moves takes no work of the target: who waits for it wakes no target that is away
 * from MPI, in flushes as in waits for requests. What goes by message does wake it, and what UCX
 * does by messages in place of an adapter. The target, the last rank, makes no call of MPI until
 * all has come.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/mpi/counter.h"
#include "test/mpi/nic_device.h"

enum { WINDOW = 1 << 20, BYTES = 64 << 10, ROUNDS = 40, WARM_UP = 1000 };

/** The method: without an adapter it is rdma, which is forced. */
static bool has_adapter;

typedef struct job {
    tl_window_t w;
    int target;
    unsigned char *data;
} job_t;

static MPI_Aint mine(const job_t *j)
{
    return tl_disp(&j->w, j->target, (MPI_Aint)j->w.rank * BYTES);
}

static void op_put(job_t *j)
{
    TL_MPI(MPI_Put(j->data, BYTES, MPI_BYTE, j->target, mine(j), BYTES, MPI_BYTE, j->w.win));
    TL_MPI(MPI_Win_flush(j->target, j->w.win));
}

static void op_get(job_t *j)
{
    TL_MPI(MPI_Get(j->data, BYTES, MPI_BYTE, j->target, mine(j), BYTES, MPI_BYTE, j->w.win));
    TL_MPI(MPI_Win_flush_local(j->target, j->w.win));
    TL_MPI(MPI_Win_flush_all(j->w.win));
}

/** The wait is in a loop of MPI's own. */
static void op_rput(job_t *j)
{
    MPI_Request request;

    TL_MPI(MPI_Rput(j->data, BYTES, MPI_BYTE, j->target, mine(j), BYTES, MPI_BYTE, j->w.win,
                    &request));
    TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    TL_MPI(MPI_Win_flush(j->target, j->w.win));
}

static void op_rget(job_t *j)
{
    MPI_Request request;

    TL_MPI(MPI_Rget(j->data, BYTES, MPI_BYTE, j->target, mine(j), BYTES, MPI_BYTE, j->w.win,
                    &request));
    TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

static void op_accumulate(job_t *j)
{
    const int one = 1;

    TL_MPI(MPI_Accumulate(&one, 1, MPI_INT, j->target, mine(j), 1, MPI_INT, MPI_SUM, j->w.win));
    TL_MPI(MPI_Win_flush(j->target, j->w.win));
}

static const struct {
    const char *name;
    void (*run)(job_t *);
    bool by_method;
} ops[] = {{"put", op_put, true},
           {"get", op_get, true},
           {"put with a request", op_rput, true},
           {"get with a request", op_rget, true},
           {"accumulate", op_accumulate, false}};
enum { OPS = sizeof(ops) / sizeof(ops[0]) };

static const char *moves(void)
{
    return has_adapter ? "osc_nicstride_ops_nic" : "osc_nicstride_ops_rdma";
}

/** Transfers until the target's keys have come, and a connection. False where they do not. */
static bool warm_up(job_t *j)
{
    counter_t *c = counter_begin(moves());
    int there = 0, all = 0;

    for (int i = 0; i < WARM_UP && !all; i++) {
        if (j->w.rank != j->target)
            op_put(j);
        there = j->w.rank == j->target || counter_read(c) > 0;
        MPI_Allreduce(&there, &all, 1, MPI_INT, MPI_MIN, j->w.comm);
    }
    counter_end(c);
    return all;
}

/** Returns how often it has woken the target. */
static unsigned long long origin(job_t *j, int op)
{
    counter_t *wakeups = counter_begin("osc_nicstride_wakeups"), *moved = counter_begin(moves());
    unsigned long long n, woken;

    /* Until the target is surely away. */
    usleep(20000);
    for (int i = 0; i < ROUNDS; i++)
        ops[op].run(j);
    n = counter_read(moved);
    woken = counter_read(wakeups);
    TL_CHECK(n == (ops[op].by_method ? ROUNDS : 0), "%s: %llu of %d by the method", ops[op].name, n,
             ROUNDS);
    TL_CHECK(woken == 0 || !ops[op].by_method || !has_adapter, "%s: %llu wakeups in %d",
             ops[op].name, woken, ROUNDS);
    counter_end(wakeups);
    counter_end(moved);
    /* The target may come back now. */
    memset(j->data, op + 1, BYTES);
    op_put(j);
    return woken;
}

/** Of each origin the last byte. */
static bool is_there(const job_t *j, unsigned char value)
{
    bool there = true;

    for (int i = 0; i < j->target; i++)
        there = there &&
                __atomic_load_n(j->w.base + (size_t)(i + 1) * BYTES - 1, __ATOMIC_ACQUIRE) == value;
    return there;
}

static unsigned long long target(const job_t *j, unsigned char value)
{
    for (int i = 0; i < TL_PATIENCE * 1000 && !is_there(j, value); i++)
        usleep(1000);
    TL_CHECK(is_there(j, value), "nothing came to who was away");
    return 0;
}

static void try_op(job_t *j, int op)
{
    unsigned long long woken, all;

    MPI_Barrier(j->w.comm);
    woken = j->w.rank == j->target ? target(j, (unsigned char)(op + 1)) : origin(j, op);
    MPI_Allreduce(&woken, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, j->w.comm);
    /* One origin may have woken it for all. */
    TL_CHECK(all > 0 || (ops[op].by_method && has_adapter), "%s: nobody has woken the target",
             ops[op].name);
}

static void test(tl_kind_t kind)
{
    job_t j = {.target = tl_size() - 1, .data = tl_alloc(BYTES)};

    j.w = tl_win_make(kind, WINDOW, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    TL_MPI(MPI_Win_lock_all(0, j.w.win));
    if (TL_CHECK(warm_up(&j), "%s: no transfer went by the method", tl_kind_name(kind)))
        for (int op = 0; op < OPS; op++)
            try_op(&j, op);
    TL_MPI(MPI_Win_unlock_all(j.w.win));
    tl_win_free(&j.w);
    free(j.data);
}

int main(int argc, char **argv)
{
    const char *method = getenv("OMPI_MCA_osc_nicstride_method");
    int provided;

    /* Each process is a node; the target's thread does not come by itself. */
    setenv("OMPI_MCA_osc_nicstride_server_idle", "1000000", 1);
    setenv("OMPI_MCA_osc_nicstride_node", "0", 1);
    setenv("OMPI_MCA_osc_nicstride_cma", "0", 1);
    has_adapter = method != NULL && strcmp(method, "nic") == 0;
    if (!has_adapter)
        setenv("UCX_TLS", "tcp,self", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 3);
    if (has_adapter)
        nic_need_device();
    if (!tl_one_host())
        tl_skip("processes of other hosts cannot be woken");
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    if (!counter_loaded("osc_nicstride_messages"))
        tl_skip("osc/nicstride is not loaded");
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind))
        test(kind);
    MPI_T_finalize();
    return tl_finish();
}
