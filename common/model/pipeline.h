/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The model of the pipeline and of the superpipeline (superpipeline paper, sections 3 and 4,
 *  with its equation numbers). Bytes are copied into buffers, moved, and copied out, chunk by
 *  chunk, all three at once. The paper takes the copy to be faster than the network (q >= 1). In
 *  shared memory it often is not; so each total time is the longest of three ways: all moving
 *  behind one another, all copies of the sender, or all copies of the receiver. Where q >= 1 the
 *  first is the paper's equation. Pure. Nanoseconds; lengths and numbers of chunks are doubles, as
 *  in the paper. */
#pragma once

#include <stdint.h>

#include "common/model/link.h"
#include "common/support/export.h"

/** Sizes of the chunks of a superpipeline: first, first * ratio, first * ratio^2 ..., but within
 *  bounds: a buffer holds no more than `most`, and chunks that shrink would never get to the end of
 *  a long transfer. 0 < least <= first <= most, ratio > 0. */
typedef struct onic_chunks {
    double first; /**< C_0 */
    double ratio; /**< q; 1 or below where copying is no faster than moving */
    double least;
    double most;
} onic_chunks_t;

/** Those of a link, for buffers of `most` bytes and blocks of `least`: C_0 = B_copy 2 lambda, which
 *  is copied while the handshake is under way, and q = B_copy / B_net (equation 5). */
ONIC_EXPORT onic_chunks_t onic_superpipeline_chunks(const onic_link_t *link, double least,
                                                    double most);

/** Equation (6): the bytes of the first `n` chunks, a whole number of them. */
ONIC_EXPORT double onic_chunks_sum(const onic_chunks_t *c, double n);

/** Equation (7): how many chunks `bytes` >= 0 make. Not a whole number, unless the last is full. */
ONIC_EXPORT double onic_chunks_count(const onic_chunks_t *c, double bytes);

/** Equation (9): L > 0 bytes from the end of the handshake, during which the first chunk was
 * copied, with chunks that are consumed in blocks of `block` bytes while they arrive. The last
 * chunk is as long as what is left for it. Equations (1) to (4) and (8) stand in the test. */
ONIC_EXPORT double onic_superpipeline_time_blocks(const onic_link_t *link, const onic_chunks_t *c,
                                                  double bytes, double block);

/** Most chunks of an optimal schedule. */
#define ONIC_OPTIMAL_MAX 1024

/** The chunks of `bytes` >= 1, a whole number, that take least of all, by dynamic programming over
 *  the beginnings of the transfer: each has left the sender at the earliest when the best shorter
 *  one has, and when it has been copied. Chunks hold no more than `most` (where more than
 *  ONIC_OPTIMAL_MAX / 2 would be needed they may), and end at some multiples of `unit` >= 1, a
 * whole number, counted from the last end. `begun`: nanoseconds of copying before the first may
 * leave, as in a handshake; `block`: as above. May take a millisecond. Returns how many; `size`
 * gets their bytes. */
ONIC_EXPORT unsigned onic_chunks_optimal(const onic_link_t *link, double bytes, double unit,
                                         double most, double begun, double block,
                                         uint32_t size[ONIC_OPTIMAL_MAX]);
