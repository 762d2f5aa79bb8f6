/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The optimal schedule of A. Denis (2011), section 4, to compare others with. */
#pragma once

#include <stdint.h>

#include "common/model/link.h"
#include "common/pipeline/core/chunks.h"

/** Most chunks of an optimal schedule. */
#define SIM_OPTIMAL_MAX 1024

/** The fastest chunks for `bytes` >= 1, a whole number, by dynamic programming over the prefixes of
 * the transfer: a prefix can leave the sender when the best shorter one has left and its last chunk
 *  is copied. Chunks hold at most `most` (more if over SIM_OPTIMAL_MAX / 2 would be needed), and
 *  end at some multiples of `unit` >= 1, a whole number, counted from the end of the transfer.
 * `begun`: nanoseconds of copying before the first may leave, as in a handshake; `block`: bytes
 * that the receiver takes at once while a chunk arrives. May take a millisecond. Returns how many;
 * `size` gets their bytes. */
unsigned sim_chunks_optimal(const onic_link_t *link, double bytes, double unit, double most,
                            double begun, double block, uint32_t size[SIM_OPTIMAL_MAX]);

/** Chunks of these sizes, `sizes` >= 1 of them, each rounded and bounded as in chunks.h; all others
 *  are like the last. The array must stay valid. */
static inline void sim_schedule_listed(onic_schedule_t *s, const uint32_t *size, unsigned sizes,
                                       uint32_t unit, uint32_t buffer)
{
    onic_schedule_growing(s, size[0], 1, unit, buffer);
    s->size = size + 1;
    s->sizes = sizes - 1;
}
