/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A queue of messages from one process to another, in memory that both have mapped: a ring
 *  of cache lines. A message takes up some of them in a row, the first of which begins with its
 *  stamp: that is written last, and is all that the receiver looks at while it waits. So one line
 *  crosses between the processors for the shortest messages. The receiver says in a line of its own
 *  how much it has taken, which the sender reads only where the ring seems full.
 *
 *  A stamp is the place of its message, counted on and on, plus 64 random bits of this queue: user
 *  data that lies there from the round before must not look like one. (Clearing the next stamp's
 *  place would have the sender wait for one more line: 0.1 of 0.4 us between far processors.)
 *
 *  The sender goes round in the first part of the ring, two pages at first, which becomes longer
 *  where it is full or has been used often enough: what is not used takes up no memory, and a line
 *  that was never used is slow (64 KiB: 170 us, else 10).
 *
 *  One sender and one receiver at a time. Lengths are checked: no message leads outside of the
 *  ring. A sender that is killed leaves no part of a message. Pure: the memory is the caller's,
 *  zero at first. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ONIC_QUEUE_LINE 64
/** Bytes of a ring: a power of two. Nothing has been gained by longer ones than twice an L2. */
#define ONIC_QUEUE_RING_MIN 16384
#define ONIC_QUEUE_RING_MAX (UINT32_C(1) << 21)

/** The beginning of a message. */
typedef struct onic_queue_head {
    _Alignas(ONIC_QUEUE_LINE) _Atomic uint64_t stamp;
    uint32_t len; /**< of header and payload; or ONIC_QUEUE_SKIP */
    uint16_t header_len;
    uint8_t id;
    uint8_t zero;
    unsigned char bytes[ONIC_QUEUE_LINE - 16]; /**< header and payload; on in the next lines */
} onic_queue_head_t;

/** In place of a length: the next message is at the beginning of the ring. */
#define ONIC_QUEUE_SKIP UINT32_MAX

/** What stands before the ring: a line of the receiver's, and one of the sender's. */
typedef struct onic_queue_ends {
    _Alignas(2 * ONIC_QUEUE_LINE) _Atomic uint64_t taken; /**< bytes since the beginning */
    _Alignas(ONIC_QUEUE_LINE) uint64_t secret; /**< of the stamps; there before the first message */
} onic_queue_ends_t;

/** Where the parts of a queue lie. */
typedef struct onic_queue {
    onic_queue_ends_t *ends;
    unsigned char *ring;
    uint32_t ring_bytes;
} onic_queue_t;

/** Bytes of a queue with such a ring. */
static inline size_t onic_queue_bytes(uint32_t ring_bytes)
{
    return sizeof(onic_queue_ends_t) + ring_bytes;
}

/** Bytes that are touched while the sender goes round in the first `round` bytes of the ring: where
 *  a message ends with them, the line behind says where to go on. */
static inline size_t onic_queue_touched(uint32_t ring_bytes, uint32_t round)
{
    return onic_queue_bytes(round < ring_bytes ? round + ONIC_QUEUE_LINE : ring_bytes);
}

/** The longest ring with which a queue has at most `bytes`; 0 where these are too few. */
uint32_t onic_queue_ring_for(size_t bytes);

/** The queue in such memory, at a multiple of two cache lines. */
onic_queue_t onic_queue_at(void *memory, uint32_t ring_bytes);

/** Bytes of the ring in which its sender goes round at first: what these touch is two pages. */
#define ONIC_QUEUE_ROUND (8192U - 3 * ONIC_QUEUE_LINE)

/** The round with which twice as much is touched. */
static inline uint32_t onic_queue_longer_round(uint32_t ring_bytes, uint32_t round)
{
    const uint32_t longer = 2 * round + 3 * ONIC_QUEUE_LINE;

    return longer < ring_bytes ? longer : ring_bytes;
}

/** Most bytes of header and payload of a message in such a round: there is room for it, without
 *  more memory, once the receiver has taken all others. */
static inline uint32_t onic_queue_longest(uint32_t round)
{
    return round - ONIC_QUEUE_LINE;
}

/** Bytes that a message takes up of the ring. */
static inline uint32_t onic_queue_use(uint32_t len)
{
    return (uint32_t)(offsetof(onic_queue_head_t, bytes) + len + ONIC_QUEUE_LINE - 1) &
           ~(ONIC_QUEUE_LINE - 1U);
}

static inline onic_queue_head_t *onic_queue_head(const onic_queue_t *q, uint64_t at)
{
    return (onic_queue_head_t *)(void *)(q->ring + (at & (q->ring_bytes - 1)));
}

/** Bytes from there to the end of the ring. */
static inline uint32_t onic_queue_left(const onic_queue_t *q, uint64_t at)
{
    return q->ring_bytes - (uint32_t)(at & (q->ring_bytes - 1));
}

/* ---- sender ---------------------------------------------------------------------------------- */

typedef struct onic_queue_sender {
    onic_queue_t q;
    uint64_t secret;
    uint64_t at;     /**< where the next message goes */
    uint64_t taken;  /**< what the receiver had taken when that was last read */
    uint32_t round;  /**< the first bytes of the ring, in which it goes round: whole lines */
    uint32_t rounds; /**< how often it has gone round since the round was made longer */
    /** Gives memory to what a longer round touches (onic_queue_touched) beyond the present one;
     *  false without memory. NULL: all of it has memory. */
    bool (*give)(void *arg, uint32_t round);
    void *arg;
} onic_queue_sender_t;

/** The sender of an unused queue, which goes round in ONIC_QUEUE_ROUND bytes at first: what that
 *  touches has memory. `secret`: 64 random bits. */
onic_queue_sender_t onic_queue_sender(const onic_queue_t *q, uint64_t secret);

/** Makes the round longer, if it can be. */
bool onic_queue_lengthen(onic_queue_sender_t *s);

/** Makes room for `use` bytes in a row, at the beginning of the ring where there is none before the
 *  end of the round. False where there is none now. */
bool onic_queue_make_room(onic_queue_sender_t *s, uint32_t use);

/** Where to write a message of `len` bytes, header and payload, at most onic_queue_longest; NULL
 *  where there is no room now. Nothing has been sent until onic_queue_send. */
static inline unsigned char *onic_queue_reserve(onic_queue_sender_t *s, uint32_t len)
{
    const uint32_t use = onic_queue_use(len);
    const uint32_t begin = (uint32_t)(s->at & (s->q.ring_bytes - 1));

    if ((begin + use > s->round || s->at + use - s->taken > s->q.ring_bytes) &&
        !onic_queue_make_room(s, use))
        return NULL;
    return (unsigned char *)onic_queue_head(&s->q, s->at) + offsetof(onic_queue_head_t, bytes);
}

/** Sends what was written there: `len` bytes, of which the first `header_len` are the header. */
static inline void onic_queue_send(onic_queue_sender_t *s, uint8_t id, uint16_t header_len,
                                   uint32_t len)
{
    onic_queue_head_t *h = onic_queue_head(&s->q, s->at);

    h->len = len;
    h->header_len = header_len;
    h->id = id;
    atomic_store_explicit(&h->stamp, s->secret + s->at, memory_order_release);
    s->at += onic_queue_use(len);
}

/* ---- receiver -------------------------------------------------------------------------------- */

typedef struct onic_queue_receiver {
    onic_queue_t q;
    uint64_t secret;
    _Atomic uint64_t at; /**< where the next message is */
    uint32_t use;        /**< of the message that was looked at */
    _Atomic bool broken; /**< the sender has written what is no message: nothing more comes */
} onic_queue_receiver_t;

typedef struct onic_queue_message {
    const unsigned char *header, *payload; /**< in the ring; NULL: there is no payload */
    uint32_t header_len, len;              /**< of either */
    uint8_t id;
} onic_queue_message_t;

/** The receiver of a queue that has a sender. */
onic_queue_receiver_t onic_queue_receiver(const onic_queue_t *q);

/** Takes over what a stamped line says. False, and the queue is broken, where the lengths lead out
 *  of the ring; false, too, where the line only says to go on at its begin, and nothing is there.
 */
bool onic_queue_read(onic_queue_receiver_t *r, onic_queue_message_t *m);

/** Is there a message? For any thread but the one that takes messages only a guess. */
static inline bool onic_queue_has_message(const onic_queue_receiver_t *r)
{
    const uint64_t at = atomic_load_explicit(&r->at, memory_order_relaxed);

    return !atomic_load_explicit(&r->broken, memory_order_relaxed) &&
           atomic_load_explicit(&onic_queue_head(&r->q, at)->stamp, memory_order_acquire) ==
               r->secret + at;
}

/** The next message, if there is one. It stays until onic_queue_take. */
static inline bool onic_queue_look(onic_queue_receiver_t *r, onic_queue_message_t *m)
{
    return onic_queue_has_message(r) && onic_queue_read(r, m);
}

/** The message that was looked at is not needed any more. */
static inline void onic_queue_take(onic_queue_receiver_t *r)
{
    const uint64_t at = atomic_load_explicit(&r->at, memory_order_relaxed) + r->use;

    atomic_store_explicit(&r->at, at, memory_order_relaxed);
    atomic_store_explicit(&r->q.ends->taken, at, memory_order_release);
}
