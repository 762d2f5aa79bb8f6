/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic */
/**
 * @file
 * Puts and gets of few bytes, each flushed by itself and in company: all ways must be right, and
 * change from one operation to the next.
 */
#include <stdlib.h>
#include <string.h>

#include "test/mpi/testlib.h"

#define LOOPS 600
#define MOST  160
/** Bytes of the longer blocks, and between them. */
#define BLOCK  1000
#define MARGIN 16
/** Bytes of the window that belong to one origin, but for the longer blocks. */
#define SLOT (3 * (MPI_Aint)MOST)

static unsigned char byte_of(int loop, int i)
{
    return (unsigned char)(loop * 7 + i * 13 + tl_rank() * 29 + 1);
}

static void fill(unsigned char *memory, int loop, int bytes)
{
    for (int i = 0; i < bytes; i++)
        memory[i] = byte_of(loop, i);
}

/** Writes some bytes, reads them with what stands around them, and clears them. */
static void write_and_read(const tl_window_t *w, int target, int loop, int at, int bytes)
{
    unsigned char out[MOST], in[SLOT], none[MOST] = {0};
    const MPI_Aint slot = SLOT * w->rank;
    int wrong = 0;

    fill(out, loop, bytes);
    TL_MPI(MPI_Put(out, bytes, MPI_BYTE, target, tl_disp(w, target, slot + at), bytes, MPI_BYTE,
                   w->win));
    TL_MPI(MPI_Win_flush(target, w->win));
    memset(out, 0xEE, sizeof(out));
    TL_MPI(MPI_Get(out, bytes, MPI_BYTE, target, tl_disp(w, target, slot + at), bytes, MPI_BYTE,
                   w->win));
    TL_MPI(MPI_Win_flush(target, w->win));
    for (int i = 0; i < bytes; i++)
        wrong += out[i] != byte_of(loop, i);
    /* A long one, not alone: two halves of a slot. */
    for (int half = 0; half < 2; half++) {
        const int begin = half * (int)(SLOT / 2);
        TL_MPI(MPI_Get(in + begin, SLOT / 2, MPI_BYTE, target, tl_disp(w, target, slot + begin),
                       SLOT / 2, MPI_BYTE, w->win));
    }
    TL_MPI(MPI_Win_flush(target, w->win));
    for (int i = 0; i < SLOT; i++)
        wrong += in[i] != (i >= at && i < at + bytes ? byte_of(loop, i - at) : 0);
    TL_CHECK(wrong == 0, "%s: loop %d, %d bytes at %d: %d are wrong", tl_kind_name(w->kind), loop,
             bytes, at, wrong);
    TL_MPI(MPI_Put(none, bytes, MPI_BYTE, target, tl_disp(w, target, slot + at), bytes, MPI_BYTE,
                   w->win));
    TL_MPI(MPI_Win_flush(target, w->win));
}

/** Longer ones, again and again: until it is settled which way they go, and beyond. */
static void lone_blocks(const tl_window_t *w, int target)
{
    static unsigned char out[BLOCK], in[BLOCK + 2 * MARGIN];
    const MPI_Aint at = SLOT * w->size + (BLOCK + 2 * MARGIN) * w->rank;
    for (int i = 0; i < LOOPS; i++) {
        int wrong = 0;
        fill(out, i, BLOCK);
        TL_MPI(MPI_Put(out, BLOCK, MPI_BYTE, target, tl_disp(w, target, at + MARGIN), BLOCK,
                       MPI_BYTE, w->win));
        TL_MPI(MPI_Win_flush(target, w->win));
        TL_MPI(MPI_Get(in, sizeof(in), MPI_BYTE, target, tl_disp(w, target, at), sizeof(in),
                       MPI_BYTE, w->win));
        TL_MPI(MPI_Win_flush(target, w->win));
        for (int k = 0; k < (int)sizeof(in); k++) {
            const bool inside = k >= MARGIN && k < MARGIN + BLOCK;
            wrong += in[k] != (inside ? byte_of(i, k - MARGIN) : 0);
        }
        TL_CHECK(wrong == 0, "%s: block %d: %d bytes are wrong", tl_kind_name(w->kind), i, wrong);
    }
}

/** One put, one flush: nothing travels with anything else. */
static void lone_words(const tl_window_t *w, int target)
{
    const MPI_Aint at = SLOT * w->rank;
    for (uint64_t i = 1, got; i <= LOOPS; i++) {
        TL_MPI(MPI_Put(&i, 8, MPI_BYTE, target, tl_disp(w, target, at), 8, MPI_BYTE, w->win));
        TL_MPI(MPI_Win_flush(target, w->win));
        got = 0;
        TL_MPI(MPI_Get(&got, 8, MPI_BYTE, target, tl_disp(w, target, at), 8, MPI_BYTE, w->win));
        TL_MPI(MPI_Win_flush(target, w->win));
        TL_CHECK(got == i, "word %llu came back as %llu", (unsigned long long)i,
                 (unsigned long long)got);
    }
    const uint64_t none = 0;
    TL_MPI(MPI_Put(&none, 8, MPI_BYTE, target, tl_disp(w, target, at), 8, MPI_BYTE, w->win));
    TL_MPI(MPI_Win_flush(target, w->win));
}

int main(int argc, char **argv)
{
    tl_rng_t rng;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    rng = tl_rng(tl_seed(), (uint64_t)tl_rank());
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        tl_window_t w = tl_win_make(kind, (SLOT + BLOCK + 2 * MARGIN) * tl_size(), 1,
                                    MPI_COMM_WORLD, MPI_INFO_NULL);
        const int target = (w.rank + 1) % w.size;
        TL_MPI(MPI_Win_lock_all(0, w.win));
        /* One after the other, while the others are in MPI: who is away would be copied from by the
         * kernel anyway. */
        for (int turn = 0; turn < w.size; turn++) {
            if (turn == w.rank)
                lone_words(&w, target);
            TL_MPI(MPI_Barrier(w.comm));
        }
        lone_blocks(&w, target);
        for (int i = 0; i < LOOPS; i++) {
            const int bytes = (int)tl_range(&rng, 1, MOST);
            write_and_read(&w, target, i, (int)tl_range(&rng, 0, SLOT - bytes), bytes);
        }
        TL_MPI(MPI_Win_unlock_all(w.win));
        tl_win_free(&w);
    }
    return tl_finish();
}
