/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* windows: create allocate */
/* methods: auto pack */
/* arguments: node tcp */
/* timeout: 600 */
/**
 * @file
 * One call that moves more than 4 GiB, with gaps at the target: put and get of more than 2^32
 * elements, and sum; on a node, and over TCP as between hosts. It needs so much memory, and is
 * skipped where ONIC_TEST_LARGE is not in the environment.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "test/mpi/testlib.h"

#define BLOCK  ((MPI_Aint)1 << 20)
#define STRIDE (BLOCK + 4096)
#define BLOCKS ((MPI_Aint)4200)
#define WINDOW (STRIDE * BLOCKS)

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

/** Looks at a few words of each block, and at the gap behind it. */
static long wrong_in(const unsigned char *memory, MPI_Aint stride, uint64_t factor, bool gaps)
{
    long wrong = 0;

    for (MPI_Aint b = 0; b < BLOCKS; b++)
        for (MPI_Aint i = 0; i < BLOCK / 8; i += BLOCK / 8 / 5) {
            uint64_t got, gap = 0;

            memcpy(&got, memory + b * stride + 8 * i, 8);
            if (gaps)
                memcpy(&gap, memory + b * stride + BLOCK, 8);
            wrong += got != factor * word(b, i) || gap != 0;
        }
    return wrong;
}

/** The blocks of one side, made of so many elements. */
static MPI_Datatype blocks_of(MPI_Datatype element, MPI_Aint bytes, MPI_Aint stride)
{
    MPI_Datatype block, all;

    MPI_Type_contiguous((int)(BLOCK / bytes), element, &block);
    MPI_Type_create_hvector((int)BLOCKS, 1, stride, block, &all);
    MPI_Type_commit(&all);
    MPI_Type_free(&block);
    return all;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "tcp") == 0 && (setenv("OMPI_MCA_osc_nicstride_node", "0", 1) != 0 ||
                                            setenv("UCX_TLS", "tcp,self", 1) != 0))
            return TL_EXIT_FAILED;
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 2);
    if (getenv("ONIC_TEST_LARGE") == NULL)
        tl_skip("more than 4 GiB are moved only where ONIC_TEST_LARGE is set");
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        tl_window_t w =
            tl_win_make(kind, tl_rank() == 1 ? WINDOW : 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
        unsigned char *data = map(BLOCK * BLOCKS);
        MPI_Datatype there = blocks_of(MPI_BYTE, 1, STRIDE), here = blocks_of(MPI_BYTE, 1, BLOCK);
        MPI_Datatype words_there = blocks_of(MPI_UINT64_T, 8, STRIDE);
        MPI_Datatype words_here = blocks_of(MPI_UINT64_T, 8, BLOCK);

        for (MPI_Aint b = 0; b < BLOCKS && w.rank == 0; b++)
            for (MPI_Aint i = 0; i < BLOCK / 8; i++)
                ((uint64_t *)(void *)data)[b * (BLOCK / 8) + i] = word(b, i);
        TL_MPI(MPI_Win_fence(0, w.win));
        if (w.rank == 0)
            TL_MPI(MPI_Put(data, 1, here, 1, 0, 1, there, w.win));
        TL_MPI(MPI_Win_fence(0, w.win));
        if (w.rank == 1)
            TL_CHECK(wrong_in(w.base, STRIDE, 1, true) == 0, "put");
        TL_MPI(MPI_Win_fence(0, w.win));
        if (w.rank == 0)
            TL_MPI(MPI_Accumulate(data, 1, words_here, 1, 0, 1, words_there, MPI_SUM, w.win));
        TL_MPI(MPI_Win_fence(0, w.win));
        if (w.rank == 1)
            TL_CHECK(wrong_in(w.base, STRIDE, 2, true) == 0, "sum");
        memset(data, 0, w.rank == 0 ? (size_t)(BLOCK * BLOCKS) : 0);
        TL_MPI(MPI_Win_fence(0, w.win));
        if (w.rank == 0)
            TL_MPI(MPI_Get(data, 1, here, 1, 0, 1, there, w.win));
        TL_MPI(MPI_Win_fence(0, w.win));
        if (w.rank == 0)
            TL_CHECK(wrong_in(data, BLOCK, 2, false) == 0, "get");
        MPI_Type_free(&words_there);
        MPI_Type_free(&words_here);
        MPI_Type_free(&there);
        MPI_Type_free(&here);
        munmap(data, (size_t)(BLOCK * BLOCKS));
        tl_win_free(&w);
    }
    return tl_finish();
}
