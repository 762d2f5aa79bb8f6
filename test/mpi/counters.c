/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-3 */
/* windows: create allocate dynamic shared */
/**
 * @file
 * The performance variables of one-sided communication: each operation that moves something is
 * counted once, with its bytes of target memory, and by the method that does it, where it is known
 * which one that must be.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/mpi/counter.h"
#include "test/mpi/rma.h"
#include "test/mpi/testlib.h"

enum { TIMES = 3, LONGS = 5000 };

/** Elements of the target in one strided operation are so far apart. */
enum { STRIDE = 2 };

typedef struct step {
    rma_t call;
    bool strided;
    int longs;  /**< of target memory, in one operation */
    bool reads; /**< MPI_NO_OP */
} step_t;

static const char *const methods[] = {"direct", "cma", "sieve", "pack", "pipeline", "rdma", "nic"};
enum { METHODS = sizeof(methods) / sizeof(methods[0]) };

static counter_t *ops[METHODS], *bytes[METHODS];

/** What the counters say. */
typedef struct counts {
    unsigned long long ops[METHODS], bytes[METHODS];
} counts_t;

static long from[LONGS], to[LONGS];
static tl_window_t w;
static int target;
static bool same_host, may_copy;

/* ---- operations ----------------------------------------------------------------------------- */

static void run(const step_t *s)
{
    rma_given_t g = rma_plain(from, to, s->longs, MPI_LONG, target, tl_disp(&w, target, 0), w.win);

    if (s->strided) {
        g.n = 1;
        TL_MPI(MPI_Type_vector(s->longs, 1, STRIDE, MPI_LONG, &g.type));
        TL_MPI(MPI_Type_commit(&g.type));
    }
    if (s->reads) {
        g.origin = (rma_data_t){NULL, 0, MPI_LONG};
        g.op = MPI_NO_OP;
    }
    g.compare = from + 1;
    TL_MPI(rma_call_and_wait(s->call, &g));
    if (s->strided)
        TL_MPI(MPI_Type_free(&g.type));
}

/** Nothing, a little, much, and both with gaps, by each call. */
static const struct {
    int longs;
    bool strided;
} amounts[] = {{0, false}, {1, false}, {20, false}, {LONGS, false}, {7, true}, {LONGS / 2, true}};
enum { AMOUNTS = sizeof(amounts) / sizeof(amounts[0]) };

/* ---- which method --------------------------------------------------------------------------- */

static const char *forced_method(void)
{
    const char *method = getenv("OMPI_MCA_osc_nicstride_method");

    return method != NULL ? method : "auto";
}

static bool forced(const char *method)
{
    return strcmp(forced_method(), method) == 0;
}

/** Is a parameter that allows something set to 0, as where all is to go over the network? */
static bool is_off(const char *parameter)
{
    const char *value = getenv(parameter);

    return value != NULL && strcmp(value, "0") == 0;
}

/** May an update go through slots? Not what is short, or gives something back. */
static bool may_move(const step_t *s)
{
    return s->longs > 16 && (forced("auto") || forced("pipeline")) && !rma_fetches(s->call);
}

/** Does it take the way of accumulates? */
static bool is_update(const step_t *s)
{
    return rma_has_op(s->call) || s->call == RMA_COMPARE_AND_SWAP;
}

/** By which method it must be done; NULL where the component is free to choose. */
static const char *method_of(const step_t *s)
{
    const bool one_node = same_host && !is_off("OMPI_MCA_osc_nicstride_node");
    const bool mapped = target == w.rank || (w.kind == TL_ALLOCATE && one_node) ||
                        (w.kind == TL_SHARED && same_host);
    /* Of a dynamic window it is known only by and by what memory there is. */
    const bool copied = may_copy && one_node && !is_off("OMPI_MCA_osc_nicstride_cma") &&
                        w.kind == TL_CREATE && !mapped;

    if (forced("pack"))
        return "pack";
    if (is_update(s))
        return mapped ? "direct" : may_move(s) ? NULL : "pack";
    /* A slot may not be free, and what is short is not worth one. */
    if (forced("pipeline") && same_host && target != w.rank)
        return NULL;
    if (mapped)
        return "direct";
    if (copied && (forced("cma") || (forced("sieve") && !rma_writes(s->call))))
        return forced_method();
    return NULL;
}

/* ---- counts --------------------------------------------------------------------------------- */

static counts_t read_counts(void)
{
    counts_t c;

    for (int m = 0; m < METHODS; m++) {
        c.ops[m] = counter_read(ops[m]);
        c.bytes[m] = counter_read(bytes[m]);
    }
    return c;
}

static void check_step(const step_t *s)
{
    const unsigned long long want = s->longs > 0 ? TIMES : 0;
    const unsigned long long want_bytes = want * (unsigned long long)s->longs * sizeof(long);
    const char *method = method_of(s);
    unsigned long long all = 0, all_bytes = 0;
    const counts_t before = read_counts();

    for (int i = 0; i < TIMES; i++) {
        run(s);
        TL_MPI(MPI_Win_flush(target, w.win));
    }

    const counts_t after = read_counts();
    for (int m = 0; m < METHODS; m++) {
        const unsigned long long n = after.ops[m] - before.ops[m];
        const unsigned long long b = after.bytes[m] - before.bytes[m];

        all += n;
        all_bytes += b;
        if (method != NULL && strcmp(method, methods[m]) == 0) {
            TL_CHECK(n == want && b == want_bytes,
                     "%s, %d longs: %llu of %llu operations and %llu of %llu bytes by %s",
                     rma_names[s->call], s->longs, n, want, b, want_bytes, method);
        }
    }
    TL_CHECK(all == want && all_bytes == want_bytes,
             "%s, %d longs: %llu of %llu operations and %llu of %llu bytes", rma_names[s->call],
             s->longs, all, want, all_bytes, want_bytes);
}

static counter_t *begin(const char *what, const char *method)
{
    char name[64];

    snprintf(name, sizeof(name), "osc_nicstride_%s%s", what, method);
    return counter_begin(name);
}

/** Skips where other components serve windows. */
static void begin_counters(void)
{
    const char *osc = getenv("OMPI_MCA_osc");

    if (osc == NULL || strcmp(osc, "nicstride") != 0)
        tl_skip("not with --mca osc nicstride alone");
    for (int m = 0; m < METHODS; m++) {
        ops[m] = begin("ops_", methods[m]);
        bytes[m] = begin("bytes_", methods[m]);
        TL_CHECK(ops[m] != NULL && bytes[m] != NULL, "no counters for %s", methods[m]);
    }
}

static void end_counters(void)
{
    for (int m = 0; m < METHODS; m++) {
        counter_end(ops[m]);
        counter_end(bytes[m]);
    }
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    begin_counters();
    target = (tl_rank() + 1) % tl_size();
    same_host = tl_same_host(target);
    may_copy = tl_may_copy();
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        w = tl_win_make(kind, LONGS * sizeof(long), sizeof(long), MPI_COMM_WORLD, MPI_INFO_NULL);
        TL_MPI(MPI_Win_lock_all(0, w.win));
        for (int i = 0; i < RMA_CALLS * AMOUNTS * 2; i++) {
            const step_t s = {.call = (rma_t)(i % RMA_CALLS),
                              .longs = amounts[i / RMA_CALLS % AMOUNTS].longs,
                              .strided = amounts[i / RMA_CALLS % AMOUNTS].strided,
                              .reads = i >= RMA_CALLS * AMOUNTS};

            if ((!rma_is_single(s.call) || s.longs == 1) &&
                (!s.reads || (rma_fetches(s.call) && rma_has_op(s.call))))
                check_step(&s);
        }
        TL_MPI(MPI_Win_unlock_all(w.win));
        tl_win_free(&w);
    }
    end_counters();
    return tl_finish();
}
