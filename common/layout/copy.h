/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Copies of contiguous bytes. All user data goes through these. Pure; any thread.
 *
 *  From about 2 KiB on, glibc's memcpy uses `rep movsb` on most current processors. On some of them
 *  that is 15 to 30 times slower than vector moves if the destination lies a few bytes further in
 *  its page than the source. So long copies here move vectors of 32 bytes (perf/copy). Elsewhere
 *  memcpy is still used for copies that just fit into the caches: it takes a quarter less time, and
 *  half of it if another processor reads the destination next. It is also used below 1 KiB; very
 *  short copies are single moves.
 *
 *  Tearing. An aligned element is split only where moves begin or end inside it. So all moves begin
 * at multiples of 8, from the first such address on. A `key` tells which side's addresses count; if
 *  an element is aligned on both sides, they agree. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/support/export.h"

#define ONIC_INLINE static inline __attribute__((always_inline))

/** Bytes from which on memcpy is faster than moves of 16 bytes, and vectors faster than memcpy. */
#define ONIC_LIBC_FROM 160
#define ONIC_LONG_FROM 1024
/** Between these lengths `rep movsb`, which writes whole lines without fetching them first, is a
 *  quarter faster than vectors; longer data does not stay in the caches. */
#define ONIC_STRING_FROM (32 << 10)
#define ONIC_STRING_TO   (256 << 10)

/** Streaming stores do not pay for shorter pieces. */
#define ONIC_STREAM_FROM 4096

/** False if the destination lies up to a line further in its page than the source. */
static inline bool onic_string_is_fast(uintptr_t dst, uintptr_t src)
{
    return ((dst - src) & 4095) - 1 >= 63;
}

/** Copies `bytes`, a multiple of 8 and at least 32, by vectors if the processor has long ones.
 *  Moves begin at multiples of 8 from `dst` on; some bytes may be moved twice. */
void onic_copy_words(uintptr_t dst, uintptr_t src, uint64_t bytes);

/** One move of 1, 2, 4, 8 or 16 bytes. */
#define ONIC_MOVE_UNIT(dst, src, bytes) memcpy((void *)(dst), (const void *)(src), bytes)

/** Moves `n` bytes, front to back, in the largest units that are aligned for an address `key`. */
ONIC_INLINE void onic_move(uintptr_t dst, uintptr_t src, uint64_t n, uintptr_t key)
{
#define STEP(bytes)                                                                                \
    do {                                                                                           \
        ONIC_MOVE_UNIT(dst, src, bytes);                                                           \
        dst += (bytes);                                                                            \
        src += (bytes);                                                                            \
        n -= (bytes);                                                                              \
    } while (0)

    /* If the rest is too short for a unit of the head, the tail moves it in smaller ones. */
    if ((key & 7) != 0) {
        if ((key & 1) && n >= 1) {
            STEP(1);
            key += 1;
        }
        if ((key & 2) && n >= 2) {
            STEP(2);
            key += 2;
        }
        if ((key & 4) && n >= 4)
            STEP(4);
    }
    if (n >= ONIC_LIBC_FROM) {
        const uint64_t words = n & ~(uint64_t)7;

        if (words >= ONIC_LONG_FROM)
            onic_copy_words(dst, src, words);
        else
            memcpy((void *)dst, (const void *)src, words);
        dst += words;
        src += words;
        n -= words;
    }
    while (n >= 16)
        STEP(16);
    if (n >= 8)
        STEP(8);
    if (n >= 4)
        STEP(4);
    if (n >= 2)
        STEP(2);
    if (n >= 1)
        STEP(1);
#undef STEP
}

/** onic_copy_bytes for any number of bytes, including none. */
ONIC_EXPORT void onic_copy_any(void *to, const void *from, size_t bytes);

/** Copies contiguous bytes, which must not overlap, without tearing elements that are aligned on
 *  both sides. One word is by far the most frequent case. */
static inline void onic_copy_bytes(void *to, const void *from, size_t bytes)
{
    if (bytes == sizeof(uint64_t))
        memcpy(to, from, sizeof(uint64_t));
    else
        onic_copy_any(to, from, bytes);
}

/** onic_copy_out for any number of bytes, including none. */
ONIC_EXPORT void onic_copy_out_any(void *to, const void *from, size_t bytes);

/** The same if others may be writing to the source: its aligned elements are read whole, wherever
 *  they are copied to. */
static inline void onic_copy_out(void *to, const void *from, size_t bytes)
{
    if (bytes == sizeof(uint64_t))
        memcpy(to, from, sizeof(uint64_t));
    else
        onic_copy_out_any(to, from, bytes);
}

/** The same for a long destination that another processor is to read next: by streaming stores, if
 *  the processor has them. They are complete before any later store. A plain store takes its line
 *  from the reader's cache, which is 5 to 8 times as slow between processors that share no
 *  cache. Between nearer processors streaming stores are faster, too, but whole
 *  transfers are slower, since the data is then read from memory. */
ONIC_EXPORT void onic_copy_streaming(void *to, const void *from, size_t bytes);
