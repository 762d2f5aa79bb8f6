/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "perf/shape.h"

enum { CLEAR_BYTE = 0xa5, PATTERN_MASK = 0xfffff };

size_t bench_shape_extent(const bench_shape_t *s)
{
    return (s->count - 1) * s->stride + s->block;
}

size_t bench_shape_size(const bench_shape_t *s)
{
    return s->count * s->block;
}

static size_t element_size(const bench_shape_t *s)
{
    return s->block % sizeof(double) == 0 && s->stride % sizeof(double) == 0 ? sizeof(double)
                                                                             : sizeof(float);
}

MPI_Datatype bench_shape_element(const bench_shape_t *s)
{
    return element_size(s) == sizeof(double) ? MPI_DOUBLE : MPI_FLOAT;
}

MPI_Datatype bench_shape_type(const bench_shape_t *s, int *count_p, bool *derived_p)
{
    MPI_Datatype element = bench_shape_element(s), type;
    size_t bytes = element_size(s);
    *derived_p = s->stride != s->block;
    if (!*derived_p) {
        *count_p = (int)(bench_shape_size(s) / bytes);
        return element;
    }
    MPI_Type_vector((int)s->count, (int)(s->block / bytes), (int)(s->stride / bytes), element,
                    &type);
    MPI_Type_commit(&type);
    *count_p = 1;
    return type;
}

void bench_shape_clear(const bench_shape_t *s, void *base)
{
    memset(base, CLEAR_BYTE, bench_shape_extent(s));
}

static double pattern(size_t element, unsigned seed)
{
    return (double)((element * 7 + (size_t)seed * 10007) & PATTERN_MASK);
}

static void store(void *p, size_t bytes, double value)
{
    if (bytes == sizeof(double)) {
        memcpy(p, &value, sizeof(value));
    } else {
        float narrow = (float)value;
        memcpy(p, &narrow, sizeof(narrow));
    }
}

void bench_shape_fill(const bench_shape_t *s, void *base, unsigned seed)
{
    size_t bytes = element_size(s), n = 0;
    for (size_t i = 0; i < s->count; i++) {
        char *block = (char *)base + i * s->stride;
        for (size_t at = 0; at < s->block; at += bytes)
            store(block + at, bytes, pattern(n++, seed));
    }
}

static size_t wrong_gap_bytes(const char *gap, size_t bytes)
{
    size_t wrong = 0;
    for (size_t i = 0; i < bytes; i++)
        wrong += (unsigned char)gap[i] != CLEAR_BYTE;
    return wrong;
}

size_t bench_shape_errors(const bench_shape_t *s, const void *base, unsigned seed, int added)
{
    size_t bytes = element_size(s), n = 0, wrong = 0;
    for (size_t i = 0; i < s->count; i++) {
        const char *block = (const char *)base + i * s->stride;
        for (size_t at = 0; at < s->block; at += bytes, n++) {
            char expected[sizeof(double)];
            store(expected, bytes,
                  pattern(n, seed) + (added < 0 ? 0.0 : pattern(n, (unsigned)added)));
            wrong += memcmp(block + at, expected, bytes) != 0;
        }
        if (i + 1 < s->count)
            wrong += wrong_gap_bytes(block + s->block, s->stride - s->block);
    }
    return wrong;
}

#define READ_LOOP(word_t)                                                                          \
    for (size_t i = 0; i < s->count; i++) {                                                        \
        const char *block = (const char *)base + i * s->stride;                                    \
        for (size_t at = 0; at < s->block; at += sizeof(word_t)) {                                 \
            word_t word;                                                                           \
            memcpy(&word, block + at, sizeof(word));                                               \
            sum += word;                                                                           \
        }                                                                                          \
    }

uint64_t bench_shape_read(const bench_shape_t *s, const void *base)
{
    uint64_t sum = 0;
    if (element_size(s) == sizeof(uint64_t))
        READ_LOOP(uint64_t)
    else
        READ_LOOP(uint32_t)
    return sum;
}

/* A block size known to the compiler turns each block into a few moves instead of a call. */
#define COPY_LOOP(bytes)                                                                           \
    for (size_t i = 0; i < s->count; i++)                                                          \
        memcpy(to + i * d->stride, from + i * s->stride, (bytes));

void bench_shape_copy(void *dst, const bench_shape_t *d, const void *src, const bench_shape_t *s)
{
    char *restrict to = dst;
    const char *restrict from = src;
    switch (s->block) {
    case 4:
        COPY_LOOP(4)
        break;
    case 8:
        COPY_LOOP(8)
        break;
    case 16:
        COPY_LOOP(16)
        break;
    case 32:
        COPY_LOOP(32)
        break;
    case 64:
        COPY_LOOP(64)
        break;
    case 128:
        COPY_LOOP(128)
        break;
    default:
        COPY_LOOP(s->block)
        break;
    }
    /* Without this the compiler may drop a copy whose result the program never reads. */
    __asm__ volatile("" : : "r"(dst) : "memory");
}
