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
#include "test/mpi/adapter.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/mpi/rma.h"
#include "test/mpi/testlib.h"

enum { BYTES = 64 << 10, ROUNDS = 40, BLOCK = 64 };

/** Without one method rdma goes by messages of UCX's. */
static bool has_adapter;

typedef struct job {
    tl_window_t w;
    int target;
    unsigned char *data, *back;
    MPI_Datatype rows;
} job_t;

static const struct {
    rma_t call;
    bool rows; /**< with gaps: of that only nic knows */
    bool by_method;
} ops[] = {{RMA_PUT, false, true},        {RMA_GET, false, true}, {RMA_RPUT, false, true},
           {RMA_RGET, false, true},       {RMA_PUT, true, true},  {RMA_GET, true, true},
           {RMA_ACCUMULATE, false, false}};
enum { OPS = sizeof(ops) / sizeof(ops[0]) };

static MPI_Aint mine(const job_t *j)
{
    return tl_disp(&j->w, j->target, (MPI_Aint)j->w.rank * BYTES);
}

/** Waits for the request in a loop of MPI's own. */
static void run(job_t *j, int op)
{
    rma_given_t g = rma_plain(j->data, j->back, BYTES, MPI_BYTE, j->target, mine(j), j->w.win);

    if (ops[op].rows) {
        g.origin = (rma_data_t){j->data, 1, j->rows};
        g.result = (rma_data_t){j->back, 1, j->rows};
        g.n = 1;
        g.type = j->rows;
    }
    g.op = MPI_REPLACE;
    TL_MPI(rma_call_and_wait(ops[op].call, &g));
    TL_MPI(rma_writes(ops[op].call) ? MPI_Win_flush(j->target, j->w.win)
                                    : MPI_Win_flush_all(j->w.win));
}

/** Returns how often it has woken the target. */
static unsigned long long origin(job_t *j, int op)
{
    counter_t *wakeups = counter_begin("osc_nicstride_wakeups"), *moved = adapter_counter("ops");
    unsigned long long n, woken;

    /* Until the target is surely away. */
    usleep(20000);
    for (int i = 0; i < ROUNDS; i++)
        run(j, op);
    n = counter_read(moved);
    woken = counter_read(wakeups);
    TL_CHECK(n == (ops[op].by_method ? ROUNDS : 0), "%s: %llu of %d by the method",
             rma_names[ops[op].call], n, ROUNDS);
    TL_CHECK(woken == 0 || !ops[op].by_method || !has_adapter, "%s: %llu wakeups in %d",
             rma_names[ops[op].call], woken, ROUNDS);
    if (rma_fetches(ops[op].call))
        for (int i = 0; i < BYTES; i += 2 * BLOCK)
            TL_BYTES(j->back + i, j->data + i, BLOCK, "got back");
    counter_end(wakeups);
    counter_end(moved);
    /* The target may come back now. */
    memset(j->data, op + 1, BYTES);
    run(j, 0);
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
    TL_FILL(j->w.base, value, (size_t)j->target * BYTES, "what came to who was away");
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
             rma_names[ops[op].call]);
}

static void test(tl_kind_t kind)
{
    job_t j = {.target = tl_size() - 1, .data = tl_alloc(BYTES), .back = tl_alloc(BYTES)};
    const MPI_Aint bytes = tl_rank() == j.target ? (MPI_Aint)j.target * BYTES : 0;
    bool there = true;

    j.w = tl_win_make(kind, bytes, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    TL_MPI(MPI_Type_vector(BYTES / BLOCK / 2, BLOCK, 2 * BLOCK, MPI_BYTE, &j.rows));
    TL_MPI(MPI_Type_commit(&j.rows));
    TL_MPI(MPI_Win_lock_all(0, j.w.win));
    if (j.w.rank != j.target)
        there = adapter_await(j.w.win, j.target, mine(&j), j.data, MPI_BYTE);
    MPI_Allreduce(MPI_IN_PLACE, &there, 1, MPI_C_BOOL, MPI_LAND, j.w.comm);
    TL_CHECK(there, "%s: no transfer went by the method", tl_kind_name(kind));
    for (int op = 0; op < OPS && there; op++)
        if (!ops[op].rows || adapter_is_nic())
            try_op(&j, op);
    TL_MPI(MPI_Win_unlock_all(j.w.win));
    tl_win_free(&j.w);
    MPI_Type_free(&j.rows);
    free(j.data);
    free(j.back);
}

static bool has_device(void)
{
    DIR *devices = opendir("/sys/class/infiniband");
    int n = 0;

    while (devices != NULL && readdir(devices) != NULL)
        n++;
    if (devices != NULL)
        closedir(devices);
    return n > 2;
}

int main(int argc, char **argv)
{
    /* Each process is a node; the target's thread does not come by itself. */
    setenv("OMPI_MCA_osc_nicstride_server_idle", "1000000", 1);
    setenv("OMPI_MCA_osc_nicstride_node", "0", 1);
    setenv("OMPI_MCA_osc_nicstride_cma", "0", 1);
    has_adapter = adapter_is_nic() || has_device();
    if (!has_adapter)
        setenv("UCX_TLS", "tcp,self", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 3);
    if (!tl_one_host())
        tl_skip("processes of other hosts cannot be woken");
    adapter_need();
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind))
        test(kind);
    MPI_T_finalize();
    return tl_finish();
}
