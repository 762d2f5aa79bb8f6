/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The strided shapes of strided_rma: datatypes, contents, and copies by a plain loop.
 */
#pragma once

#include "perf/bench.h"

/** `count` blocks of `block` bytes, `stride` >= `block` bytes apart. Both are multiples of 4. */
typedef struct bench_shape {
    size_t block;
    size_t stride;
    size_t count;
} bench_shape_t;

/** Bytes from the first to the last byte of the shape. */
size_t bench_shape_extent(const bench_shape_t *s);

/** Bytes of data in the shape. */
size_t bench_shape_size(const bench_shape_t *s);

/** MPI_DOUBLE if blocks are multiples of 8 bytes, else MPI_FLOAT. */
MPI_Datatype bench_shape_element(const bench_shape_t *s);

/**
 * The (datatype, count) of the shape: a committed vector type to be freed by the caller, or the
 * element type itself where the shape has no gaps (`*derived_p` is false then).
 */
MPI_Datatype bench_shape_type(const bench_shape_t *s, int *count_p, bool *derived_p);

/** Overwrites the whole extent, gaps included, with bytes that no pattern contains. */
void bench_shape_clear(const bench_shape_t *s, void *base);

/**
 * Writes element number i of pattern `seed`, a small integer, to each element. Two patterns can be
 * added exactly in either element type.
 */
void bench_shape_fill(const bench_shape_t *s, void *base, unsigned seed);

/**
 * Counts wrong elements and changed gap bytes. An element must be the sum of the patterns `seed`
 * and, if `added` is not negative, `added`; a gap byte must be as bench_shape_clear has left it.
 */
size_t bench_shape_errors(const bench_shape_t *s, const void *base, unsigned seed, int added);

/** Reads every word of the shape's data, as a consumer of the data does. Returns their sum. */
uint64_t bench_shape_read(const bench_shape_t *s, const void *base);

/**
 * Copies between two shapes of the same blocks with a plain loop: the speed of a process with both
 * sides in its own memory. Compile this file with -O3.
 */
void bench_shape_copy(void *dst, const bench_shape_t *d, const void *src, const bench_shape_t *s);
