/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Short contiguous puts and gets by message, the most frequent operations of all. One by
 *  itself is a message; those that follow while something is under way become a vector
 *  (protocol/vector.h), which waits with what else does (send.h) and becomes longer until another
 *  message stands behind it. A vector counts as one message; several gets have one reply. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "osc_nicstride/window/module.h"

/** The way of such an operation (protocol/order.h). */
static inline unsigned nicstride_short_way(bool get)
{
    return get ? NICSTRIDE_WAY_TURN : NICSTRIDE_WAY_COMES;
}

/**
 * Starts one, between `bytes` (1 .. nicstride_inline_max(false)) at `base` and those at `at` of the
 * target's window, or at that address where it is dynamic. A put is locally complete then, a get
 * when its reply is there. False, and nothing was done, where something stands before it: start it
 * as any other. MPI threads, no lock held.
 */
bool nicstride_short_start(nicstride_peer_t *p, bool get, uint64_t at, char *base, size_t bytes);
