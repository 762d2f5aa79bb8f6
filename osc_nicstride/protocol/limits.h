/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file How long a message may be for each way in which it can travel, and how many may be under
 *  way: all such numbers. What is inline follows from the model's costs. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/** The most that any message carries inline: data behind its header, copied when it is sent and
 *  when it is received. Buffers have room for so much. */
#define NICSTRIDE_INLINE_MAX 4096
/** What may always be inline. */
#define NICSTRIDE_INLINE_MIN 64
/** The most bytes of a layout before inline data. Longer ones travel in slices. */
#define NICSTRIDE_INLINE_LAYOUT 256

/** Most bytes of messages, with their lengths, that travel in one (message.h). */
#define NICSTRIDE_BATCH_MAX 16384
/** The most puts or gets in one message (vector.h), and the bytes of what describes so many. */
#define NICSTRIDE_VECTOR_MAX 32
#define NICSTRIDE_GETV_MAX   (NICSTRIDE_VECTOR_MAX * 12)

/** The most bytes of data in an answer that lies in shared memory (reply_line.h). */
#define NICSTRIDE_REPLY_LINE_DATA 48
/** With more processes of a window on a node there are none: their memory grows with the square. */
#define NICSTRIDE_REPLY_LINE_PROCESSES 64
/** A get is asked for in pieces of at most so many bytes: several share the wire. */
#define NICSTRIDE_GET_PIECE (1u << 20)
/** Room in a fragment for a slice of a layout: a third, as a run of 8 bytes takes 3 to 4 bytes. */
#define NICSTRIDE_SLICE_SHARE 3
/** Bytes of a slice when it is decoded, for each byte of it: two are enough for a run. */
#define NICSTRIDE_SLICE_GROWTH 20
/** Fragments have room for the header, a layout and some data, whatever a transport says. */
#define NICSTRIDE_FRAG_MIN 1024
/** The most bytes that one message fetches: a fragment is small, and more was not made by us. */
#define NICSTRIDE_FETCH_MAX (UINT64_C(8) << 20)
/** Fragments of one answer under way at a time: enough to keep the wire busy. */
#define NICSTRIDE_REPLIES_IN_FLIGHT 4
/** An origin that queues more operations than this for a target waits: memory stays bounded. */
#define NICSTRIDE_QUEUE_MAX 1024

/** Bytes that a message takes up at its target beside its layout and data: where it is put off, or
 *  has a short reply; where it is under way for longer; and the transport's records of an answer in
 *  fragments. */
#define NICSTRIDE_KEPT_RECORD 128
#define NICSTRIDE_KEPT_USE    640
#define NICSTRIDE_KEPT_ANSWER (NICSTRIDE_REPLIES_IN_FLIGHT * NICSTRIDE_KEPT_USE)
/** The most that a message which is not cut has its target keep. An origin always gets credit for
 *  that (common/transport/row/credit.h). */
#define NICSTRIDE_KEPT_MAX 4608

/** Messages to one peer of a window that the transport may keep: others wait in the queue then. */
#define NICSTRIDE_POSTING_MAX 64

typedef struct nicstride_limits {
    size_t near; /**< inline data between processes of a node */
    size_t far;  /**< of puts and accumulates to other nodes in active target */
} nicstride_limits_t;

/** A message that costs `message` nanoseconds is worth so large a part of them for copying what it
 *  carries: then others can travel with it, and nothing has to stay in place for it. */
#define NICSTRIDE_INLINE_PART 0.25

/** How many bytes are inline, a power of two, by what a message costs and copying a byte. */
static inline size_t nicstride_inline_bytes(double message, double copy)
{
    size_t bytes = NICSTRIDE_INLINE_MIN;

    while (bytes < NICSTRIDE_INLINE_MAX &&
           (double)(2 * bytes) * copy <= NICSTRIDE_INLINE_PART * message)
        bytes *= 2;
    return bytes;
}
