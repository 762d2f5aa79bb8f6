/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* windows: create allocate */
/* methods: nic */
/* Memory is zero when it is new, so that it shows what was not initialised. */
/* mpirun: -x MALLOC_PERTURB_=255 -x GLIBC_TUNABLES=glibc.malloc.tcache_count=0 */
/**
 * @file
 * Method nic of osc_nicstride: the adapter moves strided data by itself. What it is given,
 * requests, doorbells, completions and bytes, is what the algorithm needs; random layouts come out
 * right; memory that was given back and is there again is registered again.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/mpi/adapter.h"
#include "test/mpi/testlib.h"
#include "test/mpi/transfer.h"

enum {
    WINDOW = 1 << 20,
    ROWS = 1000,
    BLOCK = 64,
    ROW = 256,
    SHAPES = 200,
    ELEMENTS = 400,
    /* By the numbers that the model has by default for adapters: requests with one doorbell, and
     * requests of which one is signalled, beside the last of each list. */
    BATCH = 32,
    SIGNAL = 16
};

static int other(const tl_window_t *w)
{
    return 1 - w->rank;
}

/** One after the other, the target being in MPI. False where nothing goes by the method. */
static bool warm_up(const tl_window_t *w)
{
    tr_side_t side = tr_strided(ROWS * BLOCK, BLOCK, ROW);
    unsigned char *buffer = tl_alloc((size_t)side.span);
    bool there = false;

    for (int r = 0; r < 2; r++) {
        if (r == w->rank)
            there = adapter_await(w->win, other(w), tl_disp(w, other(w), 0), buffer, side.type);
        MPI_Barrier(w->comm);
    }
    free(buffer);
    tr_free(&side);
    return there;
}

static unsigned long long needs(unsigned long long n, unsigned long long each)
{
    return (n + each - 1) / each;
}

/** Rows of a matrix, each a request. */
static void count(const tl_window_t *w, bool get)
{
    static const char *const names[] = {"osc_nicstride_nic_requests", "osc_nicstride_nic_doorbells",
                                        "osc_nicstride_nic_completions", "osc_nicstride_nic_bytes"};
    const unsigned long long last = ROWS % BATCH;
    const unsigned long long want[] = {ROWS, needs(ROWS, BATCH),
                                       ROWS / BATCH * needs(BATCH, SIGNAL) + needs(last, SIGNAL),
                                       (unsigned long long)ROWS * BLOCK};
    tr_side_t far = tr_strided(ROWS * BLOCK, BLOCK, ROW), near = tr_plain(MPI_BYTE, ROWS * BLOCK);
    unsigned char *buffer = tl_alloc((size_t)near.span);
    counter_t *c[4];

    for (int i = 0; i < 4; i++)
        c[i] = counter_begin(names[i]);
    if (get)
        TL_MPI(MPI_Get(buffer, near.count, near.type, other(w), tl_disp(w, other(w), 0), far.count,
                       far.type, w->win));
    else
        TL_MPI(MPI_Put(buffer, near.count, near.type, other(w), tl_disp(w, other(w), 0), far.count,
                       far.type, w->win));
    TL_MPI(MPI_Win_flush(other(w), w->win));
    for (int i = 0; i < 4; i++) {
        TL_CHECK(counter_read(c[i]) == want[i], "%s: %s %llu, not %llu", get ? "get" : "put",
                 names[i], counter_read(c[i]), want[i]);
        counter_end(c[i]);
    }
    MPI_Barrier(w->comm);
    free(buffer);
    tr_free(&near);
    tr_free(&far);
}

/** A random put, and a get of the same place back into another layout. */
static void there_and_back(const tl_window_t *w, tl_rng_t *rng, int round)
{
    const tr_element_t element = (tr_element_t)tl_range(rng, 0, TR_RECORD - 1);
    const int n = (int)tl_range(rng, 1, ELEMENTS);
    tr_side_t from = tr_shape(rng, element, n, TR_ORIGIN), far = tr_shape(rng, element, n, 0),
              to = tr_shape(rng, element, n, TR_ORIGIN);
    unsigned char *sent = tl_alloc((size_t)from.span + 1), *got = tl_alloc((size_t)to.span + 1),
                  *want = tl_alloc((size_t)to.span + 1), *there = tl_alloc((size_t)far.span + 1);

    if (far.span <= w->peer_bytes[other(w)]) {
        const MPI_Aint at = tl_disp(w, other(w), 0) + far.start;

        tl_fill_random(sent, (size_t)from.span, (uint64_t)round);
        tr_copy(&from, sent, &far, there);
        tr_copy(&far, there, &to, want);
        TL_MPI(MPI_Put(sent + from.start, from.count, from.type, other(w), at, far.count, far.type,
                       w->win));
        TL_MPI(MPI_Win_flush(other(w), w->win));
        TL_MPI(
            MPI_Get(got + to.start, to.count, to.type, other(w), at, far.count, far.type, w->win));
        TL_MPI(MPI_Win_flush_local(other(w), w->win));
        TL_BYTES(got, want, (size_t)to.span, "round %d, %d elements of kind %d", round, n,
                 (int)element);
    }
    free(sent);
    free(got);
    free(want);
    free(there);
    tr_free(&from);
    tr_free(&far);
    tr_free(&to);
}

static unsigned char *map_at(void *at, size_t bytes)
{
    void *there = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (there == MAP_FAILED)
        tl_die("no memory");
    return there;
}

/** The heap grows by so much and shrinks again, unless something else has made it grow meanwhile.
 */
static unsigned char *grow_heap(void *at, size_t bytes)
{
    void *there = sbrk((intptr_t)bytes);

    (void)at;
    if (there == (void *)-1)
        tl_die("no memory");
    return there;
}

static int shrink_heap(void *at, size_t bytes)
{
    return sbrk(0) == (unsigned char *)at + bytes && sbrk(-(intptr_t)bytes) != (void *)-1 ? 0 : -1;
}

/** What was registered, by the method or for messages, may be other memory when it is there again.
 */
static void given_back(const tl_window_t *w, unsigned char *(*take)(void *, size_t),
                       int (*give)(void *, size_t))
{
    enum { BYTES = 256 << 10, TIMES = 5 };
    unsigned char *at = NULL, *got = tl_alloc(BYTES);
    int again = 0;

    for (int i = 0; i < TIMES; i++) {
        unsigned char *buffer = take(at, BYTES);

        again += buffer == at;
        at = buffer;
        memset(buffer, i + 1, BYTES);
        TL_MPI(MPI_Put(buffer, BYTES, MPI_BYTE, other(w), tl_disp(w, other(w), 0), BYTES, MPI_BYTE,
                       w->win));
        TL_MPI(MPI_Win_flush(other(w), w->win));
        TL_MPI(MPI_Sendrecv(buffer, BYTES, MPI_BYTE, other(w), 0, got, BYTES, MPI_BYTE, other(w), 0,
                            w->comm, MPI_STATUS_IGNORE));
        (void)give(buffer, BYTES);
        MPI_Barrier(w->comm);
        TL_FILL(w->base, (unsigned char)(i + 1), BYTES, "memory that is there for the %d. time",
                i + 1);
        TL_FILL(got, (unsigned char)(i + 1), BYTES, "a message from there, time %d", i + 1);
        MPI_Barrier(w->comm);
    }
    TL_CHECK(again > 0, "no memory came back to its place");
    free(got);
}

static void test(tl_kind_t kind)
{
    tl_window_t w = tl_win_make(kind, WINDOW, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    tl_rng_t rng = tl_rng(tl_seed(), (uint64_t)w.rank);

    TL_MPI(MPI_Win_lock_all(0, w.win));
    if (TL_CHECK(warm_up(&w), "%s: no transfer went by method nic", tl_kind_name(kind))) {
        count(&w, false);
        count(&w, true);
        for (int i = 0; i < SHAPES * tl_factor(); i++)
            there_and_back(&w, &rng, i);
        MPI_Barrier(w.comm);
        given_back(&w, map_at, munmap);
        given_back(&w, grow_heap, shrink_heap);
    }
    TL_MPI(MPI_Win_unlock_all(w.win));
    tl_win_free(&w);
}

int main(int argc, char **argv)
{
    /* Nobody but the adapter helps a target that is away, and each process is a node. */
    setenv("OMPI_MCA_osc_nicstride_server", "0", 1);
    setenv("OMPI_MCA_osc_nicstride_node", "0", 1);
    setenv("OMPI_MCA_osc_nicstride_cma", "0", 1);
    setenv("OMPI_MCA_osc_nicstride_method", "nic", 1);
    /* UCX registers messages, too. */
    setenv("OMPI_MCA_pml_superpipe_protocol", "rendezvous", 0);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 2);
    adapter_need();
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind))
        test(kind);
    MPI_T_finalize();
    return tl_finish();
}
