/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* windows: create allocate dynamic shared */
/* mpirun: --mca coll_nicbarrier_priority 90 */
/**
 * @file
 * Random steps, one after the other, which all ranks draw from the same numbers: puts, gets and
 * sums of random layouts under every way to synchronise, messages, barriers, windows and
 * communicators that come and go. The data of each step is checked. At the end there are as many
 * descriptors as behind the beginning, and no more memory. test/soak runs it for an hour, with a
 * new seed each time, and beside that with `-n`, which multiplies the steps.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/mpi/testlib.h"

#define STEPS   240
#define WARM_UP 90
#define BYTES   ((MPI_Aint)256 << 10)
/** A thread's stack or a table may come late. */
#define GROWTH_MAX ((size_t)1 << 20)

static tl_rng_t rng;
static tl_window_t window;
static unsigned char *buffer, *got;

/** Byte `i` of what a rank gives in a step. */
static unsigned char byte_of(int step, int rank, MPI_Aint i)
{
    return (unsigned char)((uint64_t)(i + 1) * (uint64_t)(2 * rank + 3) + (uint64_t)step * 29);
}

static void fill(int step, int rank, MPI_Aint bytes)
{
    for (MPI_Aint i = 0; i < bytes; i++)
        buffer[i] = byte_of(step, rank, i);
}

/** Blocks at a distance, within a buffer. */
typedef struct blocks {
    int count, len, stride;
    MPI_Aint at;
    MPI_Datatype type;
} blocks_t;

static blocks_t draw_blocks(void)
{
    static const int lens[] = {1, 4, 8, 24, 64, 1000, 8192, 60000};
    blocks_t b = {.len = lens[tl_range(&rng, 0, 7)]};
    b.stride = b.len + (int)tl_range(&rng, 0, 2) * 8;
    b.count =
        (int)tl_range(&rng, 1, (BYTES - 4096) / b.stride > 400 ? 400 : (BYTES - 4096) / b.stride);
    b.at = (MPI_Aint)tl_range(&rng, 0, 4096);
    TL_MPI(MPI_Type_vector(b.count, b.len, b.stride, MPI_BYTE, &b.type));
    TL_MPI(MPI_Type_commit(&b.type));
    return b;
}

/** What lies in the blocks at `base` is what `rank` gave. */
static void check_blocks(const blocks_t *b, const unsigned char *base, int step, int rank)
{
    for (int i = 0; i < b->count; i++) {
        for (int k = 0; k < b->len; k++)
            got[k] = byte_of(step, rank, (MPI_Aint)i * b->len + k);
        TL_BYTES(base + b->at + (MPI_Aint)i * b->stride, got, (size_t)b->len, "step %d, block %d",
                 step, i);
    }
}

static int right(void)
{
    return (tl_rank() + 1) % tl_size();
}

static int left(void)
{
    return (tl_rank() + tl_size() - 1) % tl_size();
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void put(int step)
{
    const tl_sync_t sync = (tl_sync_t)tl_range(&rng, 0, TL_SYNCS - 1);
    blocks_t b = draw_blocks();
    fill(step, tl_rank(), (MPI_Aint)b.count * b.len);
    tl_begin(&window, sync);
    TL_MPI(MPI_Put(buffer, b.count * b.len, MPI_BYTE, right(), tl_disp(&window, right(), b.at), 1,
                   b.type, window.win));
    tl_end(&window, sync);
    check_blocks(&b, window.base, step, left());
    TL_MPI(MPI_Type_free(&b.type));
}

static void get(int step)
{
    const tl_sync_t sync = (tl_sync_t)tl_range(&rng, 0, TL_SYNCS - 1);
    blocks_t b = draw_blocks();
    for (int i = 0; i < b.count; i++)
        for (int k = 0; k < b.len; k++)
            window.base[b.at + (MPI_Aint)i * b.stride + k] =
                byte_of(step, tl_rank(), (MPI_Aint)i * b.len + k);
    memset(buffer, 0, (size_t)(b.count * b.len));
    tl_begin(&window, sync);
    TL_MPI(MPI_Get(buffer, b.count * b.len, MPI_BYTE, right(), tl_disp(&window, right(), b.at), 1,
                   b.type, window.win));
    tl_end(&window, sync);
    for (MPI_Aint i = 0; i < (MPI_Aint)b.count * b.len; i++)
        got[i] = byte_of(step, right(), i);
    TL_BYTES(buffer, got, (size_t)(b.count * b.len), "step %d", step);
    TL_MPI(MPI_Type_free(&b.type));
}

/** All add to the same numbers of one rank. */
static void sum(int step)
{
    const tl_sync_t sync = (tl_sync_t)tl_range(&rng, 0, TL_SYNCS - 1);
    const int root = (int)tl_range(&rng, 0, tl_size() - 1), n = (int)tl_range(&rng, 1, 3000);
    int64_t *numbers = (int64_t *)(void *)buffer;
    memset(window.base, 0, (size_t)n * sizeof(*numbers));
    for (int i = 0; i < n; i++)
        numbers[i] = (int64_t)step * i + tl_rank();
    tl_begin(&window, sync);
    TL_MPI(MPI_Accumulate(numbers, n, MPI_INT64_T, root, tl_disp(&window, root, 0), n, MPI_INT64_T,
                          MPI_SUM, window.win));
    tl_end(&window, sync);
    const int64_t *sums = (const int64_t *)(const void *)window.base;
    const int all = tl_size();
    for (int i = 0; i < n && tl_rank() == root; i++)
        if (!TL_CHECK(sums[i] == (int64_t)step * i * all + all * (all - 1) / 2, "step %d: %lld",
                      step, (long long)sums[i]))
            break;
}

static void message(int step)
{
    const bool synchronous = tl_range(&rng, 0, 3) == 0, early = tl_range(&rng, 0, 1) == 0;
    blocks_t b = draw_blocks();
    MPI_Request receive;
    fill(step, tl_rank(), (MPI_Aint)b.count * b.len);
    if (!early)
        TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    TL_MPI(MPI_Irecv(window.base + b.at, 1, b.type, left(), step, MPI_COMM_WORLD, &receive));
    TL_MPI((synchronous ? MPI_Ssend : MPI_Send)(buffer, b.count * b.len, MPI_BYTE, right(), step,
                                                MPI_COMM_WORLD));
    TL_MPI(MPI_Wait(&receive, MPI_STATUS_IGNORE));
    check_blocks(&b, window.base, step, left());
    TL_MPI(MPI_Type_free(&b.type));
}

/** Communicators that come and go, and barriers in them. */
static void meet(int step)
{
    MPI_Comm comm;
    MPI_Request request;
    int number = step + tl_rank(), least = -1;
    TL_MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, (int)tl_range(&rng, 0, 1) * -tl_rank(), &comm));
    for (int i = (int)tl_range(&rng, 0, 12); i > 0; i--)
        TL_MPI(MPI_Barrier(comm));
    TL_MPI(MPI_Ibarrier(comm, &request));
    TL_MPI(MPI_Allreduce(&number, &least, 1, MPI_INT, MPI_MIN, comm));
    TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    TL_CHECK(least == step, "step %d: %d", step, least);
    TL_MPI(MPI_Comm_free(&comm));
}

static void new_window(tl_kind_t kind)
{
    tl_win_free(&window);
    window = tl_win_make(kind, BYTES, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
}

/* ---- what is left ---------------------------------------------------------------------------- */

static int descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;
    while (dir != NULL && readdir(dir) != NULL)
        n++;
    if (dir != NULL)
        closedir(dir);
    return n;
}

static void soak(tl_kind_t kind)
{
    static void (*const steps[])(int) = {put, get, sum, message, meet};
    const int n = STEPS * tl_factor();
    tl_growth_t growth = {0};
    size_t memory = 0;
    int open = 0;
    window = tl_win_make(kind, BYTES, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    for (int i = 0; i < n; i++) {
        tl_growth_step(&growth, i, WARM_UP, n);
        if (i == WARM_UP) {
            memory = tl_private();
            open = descriptors();
        }
        const int step = (int)tl_range(&rng, 0, 5);
        if (step == 5)
            new_window(kind);
        else
            steps[step](i);
    }
    tl_growth_step(&growth, n, WARM_UP, n);
    TL_CHECK(growth.least < GROWTH_MAX, "%zu bytes more in %d steps", growth.least, n / 3);
    TL_CHECK(descriptors() <= open, "%d descriptors, and %d before", descriptors(), open);
    if (tl_factor() > 1)
        printf("soak, rank %d: %zu KiB and %d descriptors after %d steps, %zu and %d after %d\n",
               tl_rank(), memory >> 10, open, WARM_UP, tl_private() >> 10, descriptors(), n);
    tl_win_free(&window);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 64);
    rng = tl_rng(tl_seed(), 0);
    buffer = tl_alloc((size_t)BYTES);
    got = tl_alloc((size_t)BYTES);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind))
        soak(kind);
    free(buffer);
    free(got);
    return tl_finish();
}
