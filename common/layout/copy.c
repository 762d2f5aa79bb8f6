/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/layout/copy.h"

#if defined(__x86_64__)

#include <emmintrin.h>

typedef uint64_t vector_t __attribute__((vector_size(32), aligned(1), may_alias));

/** Moves up to 4 vectors, a constant number; does all loads before the stores. */
ONIC_INLINE void move_vectors(uintptr_t dst, uintptr_t src, int n)
{
    vector_t held[4];

    for (int i = 0; i < n; i++)
        held[i] = ((const vector_t *)src)[i];
    for (int i = 0; i < n; i++)
        ((vector_t *)dst)[i] = held[i];
}

/** The first and the last vector may have any address. Those between them begin at a multiple of
 *  the vector length at the destination, or as near to one as steps of 8 bytes allow. */
__attribute__((target("avx2"))) static void copy_by_vectors(uintptr_t dst, uintptr_t src,
                                                            uint64_t bytes)
{
    const uintptr_t size = sizeof(vector_t), last = dst + bytes - size, ahead = src - dst;
    uintptr_t to = dst + ((size - dst % size) & ~(uintptr_t)7);

    move_vectors(dst, src, 1);
    for (; to + 4 * size <= last; to += 4 * size)
        move_vectors(to, to + ahead, 4);
    for (; to < last; to += size)
        move_vectors(to, to + ahead, 1);
    move_vectors(last, last + ahead, 1);
}

void onic_copy_words(uintptr_t dst, uintptr_t src, uint64_t bytes)
{
    const bool string =
        bytes >= ONIC_STRING_FROM && bytes <= ONIC_STRING_TO && onic_string_is_fast(dst, src);

    if (!string && __builtin_cpu_supports("avx2"))
        copy_by_vectors(dst, src, bytes);
    else
        memcpy((void *)dst, (const void *)src, bytes);
}

/** Copies a cache line at a time: the processor combines its stores and writes the line as a whole.
 */
void onic_copy_streaming(void *to, const void *from, size_t bytes)
{
    uintptr_t dst = (uintptr_t)to, src = (uintptr_t)from;
    const size_t begin = (0 - dst) % 64;

    if (bytes < begin + 64) {
        onic_copy_bytes(to, from, bytes);
        return;
    }
    onic_copy_bytes(to, from, begin);
    dst += begin;
    src += begin;
    for (bytes -= begin; bytes >= 64; bytes -= 64) {
        for (int i = 0; i < 4; i++)
            _mm_stream_si128((__m128i *)dst + i, _mm_loadu_si128((const __m128i *)src + i));
        dst += 64;
        src += 64;
    }
    onic_copy_bytes((void *)dst, (const void *)src, bytes);
    _mm_sfence();
}

#else

void onic_copy_streaming(void *to, const void *from, size_t bytes)
{
    onic_copy_bytes(to, from, bytes);
}

void onic_copy_words(uintptr_t dst, uintptr_t src, uint64_t bytes)
{
    memcpy((void *)dst, (const void *)src, bytes);
}

#endif

void onic_copy_any(void *to, const void *from, size_t bytes)
{
    onic_move((uintptr_t)to, (uintptr_t)from, bytes, (uintptr_t)to);
}

void onic_copy_out_any(void *to, const void *from, size_t bytes)
{
    onic_move((uintptr_t)to, (uintptr_t)from, bytes, (uintptr_t)from);
}
