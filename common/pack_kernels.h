/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The inner loops of pack.c: equal blocks from one stride to another. Internal to pack.c.
 *
 * Addresses are integers: a loop may step past the last block, and a base may be MPI_BOTTOM, which
 * pointer arithmetic does not allow. Every memcpy of a constant size becomes plain moves.
 *
 * Tearing. An aligned element lies within a block, and is split only where the moves that make up
 * the block begin or end inside it. Single moves (blocks of 1, 2, 4, 8, 16 bytes) never do that.
 * Longer blocks are moved in units of at least 8 bytes if they begin at a multiple of 8, and are
 * else first brought to one by small units. Which side must be aligned is told by `by_src`; where
 * both are, they agree.
 */
#ifndef ONIC_PACK_KERNELS_H
#define ONIC_PACK_KERNELS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define ONIC_INLINE static inline __attribute__((always_inline))

/** Moves exactly `bytes`, a constant. */
ONIC_INLINE void onic_move_const(uintptr_t dst, uintptr_t src, size_t bytes)
{
    memcpy((void *)dst, (const void *)src, bytes);
}

/** Moves `n` bytes in units that split no element that is aligned at address `key` on. */
static inline void onic_move_careful(uintptr_t dst, uintptr_t src, uint64_t n, uintptr_t key)
{
    while (n > 0) {
        if ((key & 7) == 0 && n >= 8) {
            uint64_t words = n & ~(uint64_t)7;

            if (words >= 64) {
                memcpy((void *)dst, (const void *)src, words);
            } else {
                words = 8;
                onic_move_const(dst, src, 8);
            }
            dst += words, src += words, key += words, n -= words;
        } else if ((key & 3) == 0 && n >= 4) {
            onic_move_const(dst, src, 4);
            dst += 4, src += 4, key += 4, n -= 4;
        } else if ((key & 1) == 0 && n >= 2) {
            onic_move_const(dst, src, 2);
            dst += 2, src += 2, key += 2, n -= 2;
        } else {
            onic_move_const(dst, src, 1);
            dst += 1, src += 1, key += 1, n -= 1;
        }
    }
}

/** One block or piece of any length. */
ONIC_INLINE void onic_move(uintptr_t dst, uintptr_t src, uint64_t n, bool by_src)
{
    uintptr_t key = by_src ? src : dst;

    if (n < 16 || (key & 7) != 0) {
        onic_move_careful(dst, src, n, key);
    } else {
        memcpy((void *)dst, (const void *)src, n);
    }
}

/** `n` blocks of a constant length; four at a time, so that the loop costs little beside them. */
ONIC_INLINE void onic_blocks_const(uintptr_t dst, int64_t dst_stride, uintptr_t src,
                                   int64_t src_stride, uint64_t n, size_t block)
{
    uintptr_t ds = (uintptr_t)dst_stride;
    uintptr_t ss = (uintptr_t)src_stride;

    for (; n >= 4; n -= 4) {
        onic_move_const(dst, src, block);
        onic_move_const(dst + ds, src + ss, block);
        onic_move_const(dst + 2 * ds, src + 2 * ss, block);
        onic_move_const(dst + 3 * ds, src + 3 * ss, block);
        dst += 4 * ds;
        src += 4 * ss;
    }
    for (; n > 0; n--) {
        onic_move_const(dst, src, block);
        dst += ds;
        src += ss;
    }
}

#endif
