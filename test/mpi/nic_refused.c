/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* windows: create */
/* methods: nic */
/**
 * @file
 * Method nic where memory cannot be registered, by the adapter of the tests' own: the target has no
 * room for its window, or the origin none for its own memory. Then all goes by message, otherwise
 * by the adapter, and everything to its place.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "test/mpi/adapter.h"
#include "test/mpi/testlib.h"

enum { MOST = 1 << 20, WINDOW = 6 * MOST, BLOCK = 1024 };

#define TURNS (tl_large() ? 100 : tl_slow() ? 10 : 40)

/** Bytes that the process may still register, a number of the adapter's; SIZE_MAX: any number. */
static size_t *room;

/** Puts blocks at random places, and gets them back; `shadow` is what is there. */
static void exchange(const tl_window_t *w, tl_rng_t *rng, unsigned char *shadow)
{
    const size_t bytes = (size_t)BLOCK * (size_t)tl_range(rng, 1, MOST / BLOCK),
                 at = (size_t)tl_range(rng, 0, WINDOW - (int)bytes);
    MPI_Datatype type;
    unsigned char *got = tl_alloc(bytes);

    /* Every second block. */
    TL_MPI(
        MPI_Type_create_hvector((int)(bytes / BLOCK + 1) / 2, BLOCK, 2 * BLOCK, MPI_BYTE, &type));
    TL_MPI(MPI_Type_commit(&type));
    for (size_t i = 0; i < bytes; i++)
        shadow[at + i] = i / BLOCK % 2 == 0 ? (unsigned char)tl_range(rng, 0, 255) : shadow[at + i];
    TL_MPI(MPI_Put(shadow + at, 1, type, 1, tl_disp(w, 1, (MPI_Aint)at), 1, type, w->win));
    TL_MPI(MPI_Win_flush(1, w->win));
    TL_MPI(MPI_Get(got, (int)bytes, MPI_BYTE, 1, tl_disp(w, 1, (MPI_Aint)at), (int)bytes, MPI_BYTE,
                   w->win));
    TL_MPI(MPI_Win_flush(1, w->win));
    TL_BYTES(got, shadow + at, bytes, "%zu bytes at %zu", bytes, at);
    MPI_Type_free(&type);
    free(got);
}

/** With room in the target for its window, or too little of it. */
static void test(tl_kind_t kind, bool fits)
{
    tl_window_t w = tl_win_make(kind, WINDOW, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    tl_rng_t rng = tl_rng(tl_seed(), (uint64_t)kind);
    unsigned char *shadow = tl_alloc(WINDOW);
    counter_t *nic = counter_begin("osc_nicstride_ops_nic");

    memset(shadow, 0, WINDOW);
    memset(w.base, 0, WINDOW);
    *room = w.rank == 1 ? (fits ? WINDOW : WINDOW / 2) : SIZE_MAX;
    MPI_Barrier(w.comm);
    TL_MPI(MPI_Win_lock_all(0, w.win));
    if (w.rank == 0) {
        unsigned long long before;

        for (int i = 0; i < TURNS; i++)
            exchange(&w, &rng, shadow);
        before = counter_read(nic);
        TL_CHECK((before > 0) == fits, "%s: %llu go by the adapter", tl_kind_name(kind), before);
        *room = 0;
        for (int i = 0; i < TURNS; i++)
            exchange(&w, &rng, shadow);
        *room = SIZE_MAX;
        for (int i = 0; i < TURNS; i++)
            exchange(&w, &rng, shadow);
        TL_CHECK((counter_read(nic) > before) == fits, "%s: %llu go by the adapter then",
                 tl_kind_name(kind), counter_read(nic) - before);
    }
    TL_MPI(MPI_Win_unlock_all(w.win));
    MPI_Bcast(shadow, WINDOW, MPI_BYTE, 0, w.comm);
    if (w.rank == 1)
        TL_BYTES(w.base, shadow, WINDOW, "%s: the window", tl_kind_name(kind));
    tl_win_free(&w);
    *room = SIZE_MAX;
    counter_end(nic);
    free(shadow);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 2);
    adapter_need();
    room = dlsym(RTLD_DEFAULT, "adapter_room");
    if (room == NULL)
        tl_skip("a device has room for all");
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        test(kind, true);
        test(kind, false);
    }
    MPI_T_finalize();
    return tl_finish();
}
