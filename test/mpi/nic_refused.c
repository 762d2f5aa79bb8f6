/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* windows: create dynamic */
/* methods: nic */
/* mpirun: --mca osc_nicstride_key_piece 1 */
/**
 * @file
 * Method nic where memory can be registered in part only, by the adapter of the tests' own: the
 * target has room for some pieces of its window, and the origin for none of its own memory. What
 * has keys goes by the adapter, all else by message, and everything to its place.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "test/mpi/counter.h"
#include "test/mpi/nic_device.h"
#include "test/mpi/testlib.h"

enum { PIECE = 1 << 20, PIECES = 6, ROOM = 3 * PIECE, BLOCK = 1024, TURNS = 400 };

/** Bytes that the process may still register, a number of the adapter's; SIZE_MAX: any number. */
static size_t *room;

/** Puts blocks at random places, and gets them back; `shadow` is what is there. */
static void exchange(const tl_window_t *w, tl_rng_t *rng, unsigned char *shadow)
{
    const size_t bytes = (size_t)BLOCK * (size_t)tl_range(rng, 1, PIECE / BLOCK),
                 at = (size_t)tl_range(rng, 0, PIECES * PIECE - (int)bytes);
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

static void test(tl_kind_t kind)
{
    tl_window_t w = tl_win_make(kind, PIECES * PIECE, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    tl_rng_t rng = tl_rng(tl_seed(), (uint64_t)kind);
    unsigned char *shadow = tl_alloc(PIECES * PIECE);
    counter_t *nic = counter_begin("osc_nicstride_ops_nic"),
              *message = counter_begin("osc_nicstride_ops_pack");

    memset(shadow, 0, PIECES * PIECE);
    memset(w.base, 0, PIECES * PIECE);
    *room = w.rank == 1 ? ROOM : SIZE_MAX;
    MPI_Barrier(w.comm);
    TL_MPI(MPI_Win_lock_all(0, w.win));
    if (w.rank == 0) {
        for (int i = 0; i < TURNS; i++)
            exchange(&w, &rng, shadow);
        TL_CHECK(counter_read(nic) > 0, "%s: none goes by the adapter", tl_kind_name(kind));
        TL_CHECK(counter_read(message) > 0, "%s: none goes by message", tl_kind_name(kind));
        *room = 0;
        for (int i = 0; i < TURNS / 10; i++)
            exchange(&w, &rng, shadow);
        *room = SIZE_MAX;
        for (int i = 0; i < TURNS / 10; i++)
            exchange(&w, &rng, shadow);
    }
    TL_MPI(MPI_Win_unlock_all(w.win));
    MPI_Bcast(shadow, PIECES * PIECE, MPI_BYTE, 0, w.comm);
    if (w.rank == 1)
        TL_BYTES(w.base, shadow, PIECES * PIECE, "%s: the window", tl_kind_name(kind));
    tl_win_free(&w);
    *room = SIZE_MAX;
    counter_end(nic);
    counter_end(message);
    free(shadow);
}

int main(int argc, char **argv)
{
    int provided;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 2);
    nic_need_device();
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    if (!counter_loaded("osc_nicstride_messages"))
        tl_skip("osc/nicstride is not loaded");
    room = dlsym(RTLD_DEFAULT, "adapter_room");
    if (room == NULL)
        tl_skip("a device has room for all");
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind))
        test(kind);
    MPI_T_finalize();
    return tl_finish();
}
