/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The inner loops of pack.c: equal blocks from one stride to another. Addresses are
 *  integers: a loop may step past the last block, and a base may be MPI_BOTTOM. A memcpy of a power
 *  of two up to 16 becomes one plain move.
 *
 *  Tearing. Single moves never split an aligned element. Longer blocks are moved in units of at
 *  least 8 bytes if they begin at a multiple of 8, and are else first brought to one by small
 *  units. `by_src` tells which side counts; where both sides of an element are aligned, they agree.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/layout/copy.h"

#define ONIC_NOINLINE __attribute__((noinline)) /* keeps registers out of the short paths */

/** Bytes; longer blocks are loops enough by themselves. */
#define ONIC_UNROLL_BELOW 32

/** Moves exactly `bytes`, a constant. The units are spelled out, because the compiler is free to
 *  make one memcpy of 12 or 24 bytes out of moves that overlap. */
ONIC_INLINE void onic_move_const(uintptr_t dst, uintptr_t src, size_t bytes)
{
    size_t words = bytes & ~(size_t)15;

    for (size_t at = 0; at < words; at += 16)
        ONIC_MOVE_UNIT(dst + at, src + at, 16);
    if (bytes & 8)
        ONIC_MOVE_UNIT(dst + words, src + words, 8);
    if (bytes & 4)
        ONIC_MOVE_UNIT(dst + words + (bytes & 8), src + words + (bytes & 8), 4);
    if (bytes & 2)
        ONIC_MOVE_UNIT(dst + words + (bytes & 12), src + words + (bytes & 12), 2);
    if (bytes & 1)
        ONIC_MOVE_UNIT(dst + bytes - 1, src + bytes - 1, 1);
}

/** `n` blocks of any length. */
static ONIC_NOINLINE void onic_blocks_any(uintptr_t dst, uintptr_t dst_stride, uintptr_t src,
                                          uintptr_t src_stride, uint64_t n, uint64_t block,
                                          bool by_src)
{
    for (; n > 0; n--) {
        onic_move(dst, src, block, by_src ? src : dst);
        dst += dst_stride;
        src += src_stride;
    }
}

/** `n` blocks of a constant length. */
ONIC_INLINE void onic_blocks_const(uintptr_t dst, uintptr_t dst_stride, uintptr_t src,
                                   uintptr_t src_stride, uint64_t n, size_t block)
{
    if (block < ONIC_UNROLL_BELOW && n >= 4) {
        uintptr_t dst_2 = 2 * dst_stride;
        uintptr_t src_2 = 2 * src_stride;
        uintptr_t dst_3 = 3 * dst_stride;
        uintptr_t src_3 = 3 * src_stride;

        /* Hidden from the compiler, which would make the four addresses a chain of additions. */
        __asm__("" : "+r"(dst_2), "+r"(src_2), "+r"(dst_3), "+r"(src_3));
        for (; n >= 4; n -= 4) {
            onic_move_const(dst, src, block);
            onic_move_const(dst + dst_stride, src + src_stride, block);
            onic_move_const(dst + dst_2, src + src_2, block);
            onic_move_const(dst + dst_3, src + src_3, block);
            dst += 2 * dst_2;
            src += 2 * src_2;
        }
    }
    for (; n > 0; n--) {
        onic_move_const(dst, src, block);
        dst += dst_stride;
        src += src_stride;
    }
}

/** Addresses that are so many bytes apart fall into one set of the first cache. */
#define ONIC_SET_STRIDE 4096
/** Lines that a set holds at least. */
#define ONIC_SET_WAYS 8
/** Strides whose places fall into few sets, and the longest blocks for which that counts. */
#define ONIC_FEW_SETS_STRIDE 1024
#define ONIC_FEW_SETS_BLOCK  32

/** Do short blocks go to places that fall into few sets of the first cache, and are more than fit
 *  there? Then stores that wait ask for their lines too early on processors of AMD. Those of Intel
 *  gain from asking for many lines at a time. */
ONIC_INLINE bool onic_blocks_collide(uintptr_t dst_stride, uint64_t n, uint64_t block)
{
#if defined(__x86_64__)
    const uintptr_t power = dst_stride & (0 - dst_stride);

    return power >= ONIC_FEW_SETS_STRIDE && block <= ONIC_FEW_SETS_BLOCK &&
           n * (power < ONIC_SET_STRIDE ? power : ONIC_SET_STRIDE) >
               ONIC_SET_WAYS * ONIC_SET_STRIDE &&
           __builtin_cpu_is("amd");
#else
    (void)dst_stride;
    (void)n;
    (void)block;
    return false;
#endif
}

/** Such blocks, of a constant length, no more at a time than a set has room for. On an EPYC of the
 *  fifth generation columns of grids whose rows are 1, 2 and 4 KiB long take 1.5 to 3 times less
 *  time so. A fence that is no locked operation takes longer, or does not wait. */
ONIC_INLINE void onic_blocks_in_groups(uintptr_t dst, uintptr_t dst_stride, uintptr_t src,
                                       uintptr_t src_stride, uint64_t n, size_t block)
{
    uint32_t all_written = 0;

    for (uint64_t i = 1; i <= n; i++) {
        onic_move_const(dst, src, block);
        if (i % ONIC_SET_WAYS == 0)
            (void)__atomic_exchange_n(&all_written, 0, __ATOMIC_SEQ_CST);
        dst += dst_stride;
        src += src_stride;
    }
}

/** `n` blocks of `head` bytes (0 or 4), then some times 16 bytes, then `tail` bytes. Head and tail
 *  are constants; a head is for blocks that begin in the middle of an aligned element. */
ONIC_INLINE void onic_blocks_words(uintptr_t dst, uintptr_t dst_stride, uintptr_t src,
                                   uintptr_t src_stride, uint64_t n, uint64_t block, size_t head,
                                   size_t tail)
{
    uint64_t body = block - head - tail;

    for (; n > 0; n--) {
        if (head > 0)
            ONIC_MOVE_UNIT(dst, src, 4);
        for (uint64_t at = head; at < head + body; at += 16)
            ONIC_MOVE_UNIT(dst + at, src + at, 16);
        if (tail & 8)
            ONIC_MOVE_UNIT(dst + head + body, src + head + body, 8);
        if (tail & 4)
            ONIC_MOVE_UNIT(dst + block - 4, src + block - 4, 4);
        dst += dst_stride;
        src += src_stride;
    }
}

/** Blocks of whole words of 4 bytes, of which all begin at a multiple of 8, or none (`odd`). */
static ONIC_NOINLINE void onic_blocks_4(uintptr_t dst, uintptr_t dst_stride, uintptr_t src,
                                        uintptr_t src_stride, uint64_t n, uint64_t block, bool odd)
{
#define KERNEL(head, tail)                                                                         \
    case (head) << 8 | (tail):                                                                     \
        onic_blocks_words(dst, dst_stride, src, src_stride, n, block, head, tail);                 \
        return

    switch (odd ? 4 << 8 | ((block - 4) & 12) : block & 12) {
        KERNEL(0, 0);
        KERNEL(0, 4);
        KERNEL(0, 8);
        KERNEL(0, 12);
        KERNEL(4, 0);
        KERNEL(4, 4);
        KERNEL(4, 8);
        KERNEL(4, 12);
    default:
        return;
    }
#undef KERNEL
}

/** `n` equal blocks, in their order. */
static void onic_blocks(uintptr_t dst, int64_t dst_step, uintptr_t src, int64_t src_step,
                        uint64_t block, uint64_t n, bool by_src)
{
    uintptr_t dst_stride = (uintptr_t)dst_step;
    uintptr_t src_stride = (uintptr_t)src_step;
    uintptr_t begin = by_src ? src : dst;
    uintptr_t stride = by_src ? src_stride : dst_stride;
    bool words = ((begin | stride) & 7) == 0;

#define KERNEL(bytes)                                                                              \
    case bytes:                                                                                    \
        onic_blocks_in_groups(dst, dst_stride, src, src_stride, n, bytes);                         \
        return

    if (onic_blocks_collide(dst_stride, n, block) && (block <= 16 || words)) {
        switch (block) {
            KERNEL(4);
            KERNEL(8);
            KERNEL(16);
            KERNEL(24);
            KERNEL(32);
        default:
            break;
        }
    }
#undef KERNEL

#define KERNEL(bytes)                                                                              \
    case bytes:                                                                                    \
        onic_blocks_const(dst, dst_stride, src, src_stride, n, bytes);                             \
        return

    switch (block) {
        KERNEL(1);
        KERNEL(2);
        KERNEL(4);
        KERNEL(8);
        KERNEL(16);
    default:
        break;
    }
    if (words) {
        switch (block) {
            KERNEL(12);
            KERNEL(24);
            KERNEL(32);
            KERNEL(64);
            KERNEL(128);
        default:
            break;
        }
    }
#undef KERNEL
    if (((begin | block) & 3) == 0 && (stride & 7) == 0 && block < ONIC_LIBC_FROM)
        onic_blocks_4(dst, dst_stride, src, src_stride, n, block, (begin & 4) != 0);
    else
        onic_blocks_any(dst, dst_stride, src, src_stride, n, block, by_src);
}
