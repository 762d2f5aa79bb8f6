/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* windows: create allocate */
/* methods: nic rdma */
/**
 * @file
 * Keys of a method that an adapter serves: with a key contiguous puts and gets go by it, all of
 * them, short and long, with and without a request; a target is asked once for each window. So it
 * is in hundreds of windows.
 */
#include <stdlib.h>
#include <string.h>

#include "test/mpi/adapter.h"
#include "test/mpi/rma.h"
#include "test/mpi/testlib.h"

enum { BYTES = 7 << 19 };

#define WINDOWS (tl_large() ? 1000 : tl_slow() ? 100 : 300)

static counter_t *ops, *bytes, *asked, *refused;

static unsigned char *pattern(size_t n, unsigned char from)
{
    unsigned char *p = tl_alloc(n);

    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)(from + i * 7 + i / 256);
    return p;
}

/** Puts a byte until that goes by the method: then there is a key. */
static void await_key(const tl_window_t *w, MPI_Aint at)
{
    const unsigned char byte = 0;

    TL_CHECK(adapter_await(w->win, 1, tl_disp(w, 1, at), &byte, MPI_BYTE), "no key for byte %ld",
             (long)at);
}

static void put_and_get(const tl_window_t *w, MPI_Aint at, int n, bool by_request)
{
    const unsigned long long n_before = counter_read(ops), b_before = counter_read(bytes);
    unsigned char *sent = pattern((size_t)n, (unsigned char)at), *got = tl_alloc((size_t)n);
    const rma_given_t g = rma_plain(sent, got, n, MPI_BYTE, 1, tl_disp(w, 1, at), w->win);

    TL_MPI(rma_call_and_wait(by_request ? RMA_RPUT : RMA_PUT, &g));
    TL_MPI(MPI_Win_flush(1, w->win));
    TL_MPI(rma_call_and_wait(by_request ? RMA_RGET : RMA_GET, &g));
    TL_MPI(MPI_Win_flush_local(1, w->win));
    TL_BYTES(got, sent, (size_t)n, "put and got back");
    TL_CHECK(counter_read(ops) - n_before == 2, "%llu operations of %d bytes at %ld",
             counter_read(ops) - n_before, n, (long)at);
    TL_CHECK(counter_read(bytes) - b_before == 2 * (unsigned long long)n, "%llu bytes of 2 * %d",
             counter_read(bytes) - b_before, n);
    free(sent);
    free(got);
}

static void test_lengths(tl_kind_t kind)
{
    static const int lengths[] = {1, 8, 100, 5000, 70000, BYTES / 2, BYTES};
    tl_window_t w = tl_win_make(kind, BYTES, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    const unsigned long long before = counter_read(asked);

    TL_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, w.win));
    if (w.rank == 0)
        await_key(&w, BYTES - 1);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]) && w.rank == 0; i++) {
        put_and_get(&w, 0, lengths[i], i % 2 == 1);
        put_and_get(&w, BYTES - lengths[i], lengths[i], i % 2 == 0);
    }
    TL_CHECK(w.rank != 0 || counter_read(asked) - before == 1, "%llu keys were asked for",
             counter_read(asked) - before);
    TL_MPI(MPI_Win_unlock_all(w.win));
    tl_win_free(&w);
}

/** A put of its own to each of many windows, which are there at the same time. */
static void test_many(tl_kind_t kind)
{
    const unsigned long long before = counter_read(ops);
    tl_window_t *w = tl_alloc(WINDOWS * sizeof(*w));
    int *numbers = tl_alloc(WINDOWS * sizeof(*numbers));

    for (int i = 0; i < WINDOWS; i++) {
        w[i] = tl_win_make(kind, 64, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
        TL_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, w[i].win));
    }
    for (int i = 0; i < WINDOWS && w[i].rank == 0; i++) {
        await_key(&w[i], 0);
        numbers[i] = i;
        TL_MPI(MPI_Put(&numbers[i], 1, MPI_INT, 1, tl_disp(&w[i], 1, 0), 1, MPI_INT, w[i].win));
    }
    for (int i = 0; i < WINDOWS; i++)
        TL_MPI(MPI_Win_unlock_all(w[i].win));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < WINDOWS; i++)
        TL_CHECK(w[i].rank == 0 || memcmp(w[i].base, &i, sizeof(i)) == 0, "window %d", i);
    if (w[0].rank == 0) {
        TL_CHECK(counter_read(ops) - before == 2 * WINDOWS, "%llu puts by the method",
                 counter_read(ops) - before);
    }
    for (int i = 0; i < WINDOWS; i++)
        tl_win_free(&w[i]);
    free(numbers);
    free(w);
}

/** Of a dynamic window, whose memory may be given back, no keys are asked for. */
static void test_dynamic(void)
{
    const unsigned long long before = counter_read(asked);
    tl_window_t w = tl_win_make(TL_DYNAMIC, BYTES, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    unsigned char *sent = pattern(BYTES, 5), *got = tl_alloc(BYTES);

    TL_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, w.win));
    if (w.rank == 0) {
        TL_MPI(MPI_Put(sent, BYTES, MPI_BYTE, 1, tl_disp(&w, 1, 0), BYTES, MPI_BYTE, w.win));
        TL_MPI(MPI_Win_flush(1, w.win));
        TL_MPI(MPI_Get(got, BYTES, MPI_BYTE, 1, tl_disp(&w, 1, 0), BYTES, MPI_BYTE, w.win));
        TL_MPI(MPI_Win_flush(1, w.win));
        TL_BYTES(got, sent, BYTES, "put and got back");
    }
    TL_CHECK(counter_read(asked) == before, "keys of a dynamic window were asked for");
    TL_MPI(MPI_Win_unlock_all(w.win));
    tl_win_free(&w);
    free(sent);
    free(got);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 2);
    adapter_need();
    ops = adapter_counter("ops");
    bytes = adapter_counter("bytes");
    asked = counter_begin("osc_nicstride_keys_asked");
    refused = counter_begin("osc_nicstride_keys_refused");
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        test_lengths(kind);
        test_many(kind);
    }
    test_dynamic();
    TL_CHECK(counter_read(refused) == 0, "%llu keys were refused", counter_read(refused));
    counter_end(ops);
    counter_end(bytes);
    counter_end(asked);
    counter_end(refused);
    TL_MPI(MPI_T_finalize());
    return tl_finish();
}
