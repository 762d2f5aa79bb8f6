/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic shared */
/**
 * @file
 * Large transfers: 48 MiB in one call (6 MiB where all is slow), contiguous and strided; and a
 * window and a datatype with displacements beyond 32 bits, although little memory is touched.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "test/mpi/testlib.h"

#define PART   (tl_slow() ? 8 : 1)
#define WINDOW (((MPI_Aint)64 << 20) / PART)
#define MOVED  (((MPI_Aint)48 << 20) / PART)
#define BLOCK  ((MPI_Aint)6144)
#define STRIDE ((MPI_Aint)8192)
#define BLOCKS ((int)(MOVED / BLOCK))
#define GIBI   ((MPI_Aint)1 << 30)

/** Everything of one run. */
typedef struct run {
    const tl_window_t *w;
    int origin, target;
    unsigned char *buffer; /**< origin only */
    unsigned char *want;   /**< what the origin sends, without gaps */
    MPI_Datatype strided;
} run_t;

static void check_blocks(const run_t *r, const unsigned char *memory, MPI_Aint stride,
                         const char *what)
{
    long wrong = 0;

    for (MPI_Aint b = 0; b < BLOCKS; b++)
        wrong += memcmp(memory + b * stride, r->want + b * BLOCK, (size_t)BLOCK) != 0;
    TL_CHECK(wrong == 0, "%s window: %s: %ld of %d blocks wrong", tl_kind_name(r->w->kind), what,
             wrong, BLOCKS);
}

/** The bytes between the blocks are as before. */
static void check_gaps(const run_t *r, const unsigned char *memory, const char *what)
{
    static const unsigned char zeros[STRIDE - BLOCK];
    long wrong = 0;

    for (MPI_Aint b = 0; b < BLOCKS; b++)
        wrong += memcmp(memory + b * STRIDE + BLOCK, zeros, sizeof(zeros)) != 0;
    TL_CHECK(wrong == 0, "%s window: %s: %ld gaps touched", tl_kind_name(r->w->kind), what, wrong);
}

/** Contiguous to strided, and back strided to strided. */
static void origin_strided(const run_t *r)
{
    const tl_window_t *w = r->w;
    MPI_Aint disp = tl_disp(w, r->target, 0);

    memcpy(r->buffer, r->want, (size_t)MOVED);
    TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, r->target, 0, w->win));
    TL_MPI(MPI_Put(r->buffer, (int)MOVED, MPI_BYTE, r->target, disp, 1, r->strided, w->win));
    TL_MPI(MPI_Win_flush_local(r->target, w->win));
    memset(r->buffer, 0, (size_t)WINDOW);
    TL_MPI(MPI_Win_flush(r->target, w->win));
    TL_MPI(MPI_Get(r->buffer, 1, r->strided, r->target, disp, 1, r->strided, w->win));
    TL_MPI(MPI_Win_unlock(r->target, w->win));
    check_blocks(r, r->buffer, STRIDE, "strided get");
    check_gaps(r, r->buffer, "strided get");
}

static void origin_contiguous(const run_t *r)
{
    const tl_window_t *w = r->w;
    MPI_Aint disp = tl_disp(w, r->target, 0);
    int n = (int)MOVED;

    memcpy(r->buffer, r->want, (size_t)MOVED);
    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, r->target, 0, w->win));
    TL_MPI(MPI_Put(r->buffer, n, MPI_BYTE, r->target, disp, n, MPI_BYTE, w->win));
    TL_MPI(MPI_Win_flush(r->target, w->win));
    memset(r->buffer, 0, (size_t)WINDOW);
    TL_MPI(MPI_Get(r->buffer, n, MPI_BYTE, r->target, disp, n, MPI_BYTE, w->win));
    TL_MPI(MPI_Win_unlock(r->target, w->win));
    check_blocks(r, r->buffer, BLOCK, "contiguous put and get");
}

static void target_check(const run_t *r)
{
    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, r->target, 0, r->w->win));
    check_blocks(r, r->w->base, STRIDE, "put");
    check_gaps(r, r->w->base, "put");
    TL_MPI(MPI_Win_unlock(r->target, r->w->win));
}

/** One rank at a time works on the next one, so that memory stays within bounds. */
static void move_large(const tl_window_t *w, int origin)
{
    run_t r = {.w = w, .origin = origin, .target = (origin + 1) % w->size};

    MPI_Type_create_hvector(BLOCKS, (int)BLOCK, STRIDE, MPI_BYTE, &r.strided);
    MPI_Type_commit(&r.strided);
    if (w->rank == origin || w->rank == r.target) {
        r.want = tl_alloc((size_t)MOVED);
        tl_fill_random(r.want, (size_t)MOVED, tl_seed() + (uint64_t)origin);
    }
    if (w->rank == r.target) {
        TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, w->rank, 0, w->win));
        memset(w->base, 0, (size_t)w->bytes);
        TL_MPI(MPI_Win_unlock(w->rank, w->win));
    }
    MPI_Barrier(w->comm);
    if (w->rank == origin) {
        r.buffer = tl_alloc((size_t)WINDOW);
        origin_strided(&r);
    }
    MPI_Barrier(w->comm);
    if (w->rank == r.target)
        target_check(&r);
    MPI_Barrier(w->comm);
    if (w->rank == origin) {
        origin_contiguous(&r);
        free(r.buffer);
    }
    MPI_Type_free(&r.strided);
    free(r.want);
    MPI_Barrier(w->comm);
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
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_shared_needs(WINDOW);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        tl_window_t w = tl_win_make(kind, WINDOW, 1, MPI_COMM_WORLD, MPI_INFO_NULL);

        move_large(&w, 0);
        move_large(&w, w.size - 1);
        tl_win_free(&w);
        if (kind == TL_CREATE)
            move_far();
    }
    return tl_finish();
}
