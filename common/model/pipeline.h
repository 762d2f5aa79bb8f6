/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The model of the pipeline and of the superpipeline (superpipeline paper, sections 3 and 4,
 *  with its equation numbers). Bytes are copied into buffers, moved, and copied out, chunk by
 *  chunk, all three concurrently. The paper assumes that copying is faster than the network (q >=
 *  1). In shared memory it often is not; so each total time is the longest of three: all moves in
 *  sequence, all copies of the sender, or all copies of the receiver. If q >= 1 the first is the
 *  paper's equation. Pure. Nanoseconds; lengths and numbers of chunks are doubles, as in the paper.
 */
#pragma once

#include <stdint.h>

#include "common/model/link.h"
#include "common/support/export.h"

/** Sizes of the chunks of a superpipeline: first, first * ratio, first * ratio^2 ..., within
 *  bounds: a buffer holds at most `most`, and chunks that shrink without a bound would never reach
 *  the end of a long transfer. 0 < least <= first <= most, ratio > 0. */
typedef struct onic_chunks {
    double first; /**< C_0 */
    double ratio; /**< q; at most 1 if copying is no faster than moving */
    double least;
    double most;
} onic_chunks_t;

/** The chunks for a link, with buffers of `most` bytes and blocks of `least`: C_0 = B_copy 2
 *  lambda, which is copied during the handshake, and q = B_copy / B_net (equation 5). */
ONIC_EXPORT onic_chunks_t onic_superpipeline_chunks(const onic_link_t *link, double least,
                                                    double most);

/** Equation (6): the bytes of the first `n` chunks; `n` is a whole number. */
ONIC_EXPORT double onic_chunks_sum(const onic_chunks_t *c, double n);

/** Equation (7): how many chunks `bytes` >= 0 take. Not a whole number, unless the last is full. */
ONIC_EXPORT double onic_chunks_count(const onic_chunks_t *c, double bytes);

/** Equation (9): the time for L > 0 bytes from the end of the handshake, during which the first
 *  chunk was copied, if chunks are consumed in blocks of `block` bytes while they arrive. The last
 *  chunk has the remaining bytes. Equations (4) and (8) are in the test. */
ONIC_EXPORT double onic_superpipeline_time_blocks(const onic_link_t *link, const onic_chunks_t *c,
                                                  double bytes, double block);
