/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file All limits on the length of messages, for each way they can travel, and on how many may be
 *  under way. The limit for inline data follows from the model's costs. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/** The most data that any message carries inline, behind its header. It is copied by sender and
 *  receiver; buffers have room for this much. */
#define NICSTRIDE_INLINE_MAX 4096
/** Data up to this size may always be inline. */
#define NICSTRIDE_INLINE_MIN 64
/** The most bytes of a layout before inline data. Longer layouts travel in slices. */
#define NICSTRIDE_INLINE_LAYOUT 256

/** The most bytes of messages, with their lengths, that travel in one batch (message.h). */
#define NICSTRIDE_BATCH_MAX 16384
/** The most puts or gets in one message (vector.h). */
#define NICSTRIDE_VECTOR_MAX 32

/** The most data in an answer in shared memory, bytes (reply_line.h). */
#define NICSTRIDE_REPLY_LINE_DATA 48
/** With more processes of a window on a node there are no reply lines, as their memory grows with
 *  the square. */
#define NICSTRIDE_REPLY_LINE_PROCESSES 64
/** The most bytes of one request of a get: longer gets ask in pieces, so that several share the
 *  wire. */
#define NICSTRIDE_GET_PIECE (1u << 20)
/** The share of a fragment's room for a slice of a layout: a third, as a run of 8 bytes takes 3 to
 *  4 bytes. */
#define NICSTRIDE_SLICE_SHARE 3
/** Bytes of a decoded slice per encoded byte: a run takes at least two encoded bytes. */
#define NICSTRIDE_SLICE_GROWTH 20
/** The least size of fragments, whatever a transport says: room for the header, a layout and some
 *  data. */
#define NICSTRIDE_FRAG_MIN 1024
/** The most bytes that one message fetches. Fragments are small, so a larger request is not
 *  ours. */
#define NICSTRIDE_FETCH_MAX (UINT64_C(8) << 20)
/** Fragments of one answer under way at a time; enough to keep the wire busy. */
#define NICSTRIDE_REPLIES_IN_FLIGHT 4
/** The most operations queued for a target; then the origin waits, so that memory stays bounded. */
#define NICSTRIDE_QUEUE_MAX 1024

/** Bytes that a message takes up at its target in addition to its layout and data. RECORD: it has a
 *  short reply. USE: its access takes longer than the handler. ANSWER: the
 *  transport's records of an answer in fragments. */
#define NICSTRIDE_KEPT_RECORD 128
#define NICSTRIDE_KEPT_USE    640
#define NICSTRIDE_KEPT_ANSWER (NICSTRIDE_REPLIES_IN_FLIGHT * NICSTRIDE_KEPT_USE)
/** The most bytes that the target keeps for a message that is not cut. An origin always gets credit
 *  for that much (common/transport/row/credit.h). */
#define NICSTRIDE_KEPT_MAX 4608

/** Messages to one peer of a window that the transport may keep; further ones wait in the queue. */
#define NICSTRIDE_POSTING_MAX 64

typedef struct nicstride_limits {
    size_t near; /**< inline data between processes of a node */
    size_t far;  /**< the same for puts and accumulates to other nodes in active target */
} nicstride_limits_t;

/** The part of a message's cost that may be spent on copying its data: a copied message can travel
 *  with others, and its data need not stay in place. */
#define NICSTRIDE_INLINE_PART 0.25

/** The most bytes of inline data, a power of two, from the cost of a message and of copying a byte,
 *  both in nanoseconds. */
static inline size_t nicstride_inline_bytes(double message, double copy)
{
    size_t bytes = NICSTRIDE_INLINE_MIN;

    while (bytes < NICSTRIDE_INLINE_MAX &&
           (double)(2 * bytes) * copy <= NICSTRIDE_INLINE_PART * message)
        bytes *= 2;
    return bytes;
}
