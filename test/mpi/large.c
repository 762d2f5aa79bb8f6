/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* windows: create allocate dynamic shared */
/* arguments: node */
/* arguments: tcp */
/* timeout: 600 */
/**
 * @file
 * Large transfers: put, sum and get of 48 MiB in one call (6 MiB where all is slow), with gaps at
 * the target and without; on a node, and over TCP as between hosts. Where ONIC_TEST_LARGE is in the
 * environment it is more than 4 GiB, and of bytes more than 2^32 elements: that needs so much
 * memory. And a window and a datatype with displacements beyond 32 bits, although little memory is
 * touched.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "test/mpi/testlib.h"

#define BLOCK  ((MPI_Aint)1 << 20)
#define GAP    ((MPI_Aint)4096)
#define STRIDE (BLOCK + GAP)
#define GIBI   ((MPI_Aint)1 << 30)

static MPI_Aint blocks;

/** Every block of the target's, of words that say which it is. */
static uint64_t word(MPI_Aint block, MPI_Aint i)
{
    return (uint64_t)(block << 20 | i);
}

static void *map(MPI_Aint bytes)
{
    void *at = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (at == MAP_FAILED)
        tl_die("no memory");
    return at;
}

/** Looks at each page of each block, and at the gap behind it. */
static void check(const unsigned char *memory, MPI_Aint stride, uint64_t factor, const char *what)
{
    static const unsigned char zeros[GAP];
    long wrong = 0;

    for (MPI_Aint b = 0; b < blocks; b++) {
        for (MPI_Aint i = 0; i < BLOCK / 8; i += i % 512 == 0 ? 511 : 1) {
            uint64_t got;

            memcpy(&got, memory + b * stride + 8 * i, 8);
            wrong += got != factor * word(b, i);
        }
        wrong += memcmp(memory + b * stride + BLOCK, zeros, (size_t)(stride - BLOCK)) != 0;
    }
    TL_CHECK(wrong == 0, "%s, blocks %td apart: %ld words or gaps are wrong", what, stride, wrong);
}

/** The blocks of one side, made of so many elements. */
static MPI_Datatype blocks_of(MPI_Datatype element, MPI_Aint bytes, MPI_Aint stride)
{
    MPI_Datatype block, all;

    MPI_Type_contiguous((int)(BLOCK / bytes), element, &block);
    MPI_Type_create_hvector((int)blocks, 1, stride, block, &all);
    MPI_Type_commit(&all);
    MPI_Type_free(&block);
    return all;
}

/** Rank 0 and the memory of the last one, with blocks so far apart. */
static void move_large(const tl_window_t *w, MPI_Aint stride)
{
    const int target = w->size - 1;
    const MPI_Aint at = tl_disp(w, target, 0);
    unsigned char *data = map(STRIDE * blocks);
    MPI_Datatype there = blocks_of(MPI_BYTE, 1, stride), here = blocks_of(MPI_BYTE, 1, BLOCK);
    MPI_Datatype words_there = blocks_of(MPI_UINT64_T, 8, stride);
    MPI_Datatype words_here = blocks_of(MPI_UINT64_T, 8, BLOCK);

    memset(w->base, 0, (size_t)w->bytes);
    for (MPI_Aint b = 0; b < blocks && w->rank == 0; b++)
        for (MPI_Aint i = 0; i < BLOCK / 8; i++)
            ((uint64_t *)(void *)data)[b * (BLOCK / 8) + i] = word(b, i);
    TL_MPI(MPI_Win_fence(0, w->win));
    if (w->rank == 0)
        TL_MPI(MPI_Put(data, 1, here, target, at, 1, there, w->win));
    TL_MPI(MPI_Win_fence(0, w->win));
    if (w->rank == target)
        check(w->base, stride, 1, "put");
    TL_MPI(MPI_Win_fence(0, w->win));
    if (w->rank == 0)
        TL_MPI(MPI_Accumulate(data, 1, words_here, target, at, 1, words_there, MPI_SUM, w->win));
    TL_MPI(MPI_Win_fence(0, w->win));
    if (w->rank == target)
        check(w->base, stride, 2, "sum");
    memset(data, 0, w->rank == 0 ? (size_t)(STRIDE * blocks) : 0);
    TL_MPI(MPI_Win_fence(0, w->win));
    if (w->rank == 0)
        TL_MPI(MPI_Get(data, 1, there, target, at, 1, there, w->win));
    TL_MPI(MPI_Win_fence(0, w->win));
    if (w->rank == 0)
        check(data, stride, 2, "get");
    MPI_Type_free(&words_there);
    MPI_Type_free(&words_here);
    MPI_Type_free(&there);
    MPI_Type_free(&here);
    munmap(data, (size_t)(STRIDE * blocks));
}

/* ---- far apart ---- */

/** Two doubles 4 GiB apart, one 3 GiB in; everybody to and from rank 0. */
static void access_far(MPI_Win win, int rank)
{
    double sent[] = {1.0 + rank, 2.0 + rank}, got[2] = {0, 0};
    MPI_Aint at = (MPI_Aint)64 * (rank + 1);
    MPI_Datatype far;

    MPI_Type_create_hvector(2, 1, 4 * GIBI, MPI_DOUBLE, &far);
    MPI_Type_commit(&far);
    TL_MPI(MPI_Win_lock_all(0, win));
    TL_MPI(MPI_Put(sent, 2, MPI_DOUBLE, 0, at, 1, far, win));
    TL_MPI(MPI_Put(sent, 1, MPI_DOUBLE, 0, 3 * GIBI + at, 1, MPI_DOUBLE, win));
    TL_MPI(MPI_Win_flush(0, win));
    TL_MPI(MPI_Accumulate(sent, 2, MPI_DOUBLE, 0, at, 1, far, MPI_SUM, win));
    TL_MPI(MPI_Win_flush(0, win));
    TL_MPI(MPI_Get(got, 2, MPI_DOUBLE, 0, at, 1, far, win));
    TL_MPI(MPI_Win_unlock_all(win));
    TL_CHECK(got[0] == 2 * sent[0] && got[1] == 2 * sent[1], "%g and %g from afar", got[0], got[1]);
    MPI_Type_free(&far);
}

/** A window of 5 GiB of addresses, almost none of it memory: displacements beyond 32 bits. */
static void move_far(void)
{
    size_t bytes = tl_rank() == 0 ? (size_t)(5 * GIBI) : 0;
    unsigned char *memory = NULL;
    int have = 1;
    MPI_Win win;

    if (bytes > 0) {
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        have = memory != MAP_FAILED;
    }
    MPI_Bcast(&have, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!have)
        return;
    TL_MPI(MPI_Win_create(memory, (MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    access_far(win, tl_rank());
    MPI_Barrier(MPI_COMM_WORLD);
    for (int r = 0; bytes > 0 && r < tl_size(); r++) {
        double value;

        memcpy(&value, memory + 3 * GIBI + (ptrdiff_t)64 * (r + 1), sizeof(value));
        TL_CHECK(value == 1.0 + r, "%g at 3 GiB, not %g", value, 1.0 + r);
    }
    TL_MPI(MPI_Win_free(&win));
    if (bytes > 0)
        munmap(memory, bytes);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "tcp") == 0 && (setenv("OMPI_MCA_osc_nicstride_node", "0", 1) != 0 ||
                                            setenv("UCX_TLS", "tcp,self", 1) != 0))
            return TL_EXIT_FAILED;
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 64);
    blocks = tl_large() ? 4200 : tl_slow() ? 6 : 24;
    tl_shared_needs(STRIDE * blocks / tl_size() + 1);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        tl_window_t w = tl_win_make(kind, tl_rank() == tl_size() - 1 ? STRIDE * blocks : 0, 1,
                                    MPI_COMM_WORLD, MPI_INFO_NULL);

        move_large(&w, STRIDE);
        move_large(&w, BLOCK);
        tl_win_free(&w);
        if (kind == TL_CREATE)
            move_far();
    }
    return tl_finish();
}
