/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * How long a message may be for each of the ways in which it can travel. All such lengths stand
 * here, and follow from what a message and a byte cost (common/model).
 *
 * Pure.
 */
#ifndef NICSTRIDE_LIMITS_H
#define NICSTRIDE_LIMITS_H

#include <stddef.h>

/** The most that any message carries inline: data behind its header, copied when it is sent and
 *  when it is received. Buffers have room for so much. */
#define NICSTRIDE_INLINE_MAX 4096
/** The most bytes of a layout before inline data. Longer ones travel in slices. */
#define NICSTRIDE_INLINE_LAYOUT 256

typedef struct nicstride_limits {
    size_t near; /**< inline data between processes of a node */
    size_t far;  /**< of puts and accumulates to other nodes in active target */
} nicstride_limits_t;

/** A message that costs `message` nanoseconds is worth so large a part of them for copying what it
 *  carries: then others can travel with it, and nothing has to stay in place for it. */
#define NICSTRIDE_INLINE_PART 0.25

/** How many bytes are inline where a message costs `message` nanoseconds and a copy of a byte
 *  `copy`: a power of two. */
static inline size_t nicstride_inline_bytes(double message, double copy)
{
    size_t bytes = 64;

    while (bytes < NICSTRIDE_INLINE_MAX &&
           (double)(2 * bytes) * copy <= NICSTRIDE_INLINE_PART * message)
        bytes *= 2;
    return bytes;
}

#endif
