/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/transport/shm/queue.h"

/** The round is lengthened when it has been gone so often: not for a few messages. By 32 the first
 *  ten messages of 1 MiB take twice as long, from new buffers (Zen 4); by 2 they take the same. */
#define ROUNDS 8

_Static_assert(sizeof(onic_queue_head_t) == ONIC_QUEUE_LINE, "a message begins with a line");
_Static_assert(sizeof(onic_queue_ends_t) == 2 * ONIC_QUEUE_LINE &&
                   ONIC_QUEUE_ROUND % ONIC_QUEUE_LINE == 0,
               "two lines before the ring, one behind the round");

uint32_t onic_queue_ring_for(size_t bytes)
{
    uint32_t ring = ONIC_QUEUE_RING_MAX;

    while (ring >= ONIC_QUEUE_RING_MIN && onic_queue_bytes(ring) > bytes)
        ring /= 2;
    return ring >= ONIC_QUEUE_RING_MIN ? ring : 0;
}

onic_queue_t onic_queue_at(void *memory, uint32_t ring_bytes)
{
    onic_queue_ends_t *ends = memory;

    return (onic_queue_t){
        .ends = ends, .ring = (unsigned char *)(ends + 1), .ring_bytes = ring_bytes};
}

onic_queue_sender_t onic_queue_sender(const onic_queue_t *q, uint64_t secret)
{
    q->ends->secret = secret;
    return (onic_queue_sender_t){.q = *q, .secret = secret, .round = ONIC_QUEUE_ROUND};
}

onic_queue_receiver_t onic_queue_receiver(const onic_queue_t *q)
{
    return (onic_queue_receiver_t){.q = *q, .secret = q->ends->secret};
}

static bool is_free(onic_queue_sender_t *s, uint64_t bytes)
{
    if (s->at + bytes - s->taken <= s->q.ring_bytes)
        return true;
    s->taken = atomic_load_explicit(&s->q.ends->taken, memory_order_acquire);
    return s->at + bytes - s->taken <= s->q.ring_bytes;
}

bool onic_queue_lengthen(onic_queue_sender_t *s)
{
    const uint32_t longer = onic_queue_longer_round(s->q.ring_bytes, s->round);

    s->rounds = 0;
    if (s->round == s->q.ring_bytes || (s->give != NULL && !s->give(s->arg, longer)))
        return false;
    s->round = longer;
    return true;
}

/** Goes on at the beginning of the ring. */
static void skip(onic_queue_sender_t *s, uint32_t left)
{
    onic_queue_head_t *h = onic_queue_head(&s->q, s->at);

    h->len = ONIC_QUEUE_SKIP;
    atomic_store_explicit(&h->stamp, s->secret + s->at, memory_order_release);
    s->at += left;
    if (++s->rounds == ROUNDS)
        (void)onic_queue_lengthen(s);
}

bool onic_queue_make_room(onic_queue_sender_t *s, uint32_t use)
{
    const uint32_t left = onic_queue_left(&s->q, s->at), begin = s->q.ring_bytes - left;

    if (begin + use <= s->round)
        return is_free(s, use);
    if (!is_free(s, left + (uint64_t)use) && onic_queue_lengthen(s))
        return onic_queue_make_room(s, use);
    /* A message that does not fit before this place waits at the beginning, until the receiver has
     * seen that it goes on there. */
    if (!is_free(s, ONIC_QUEUE_LINE))
        return false;
    skip(s, left);
    return is_free(s, use);
}

bool onic_queue_read(onic_queue_receiver_t *r, onic_queue_message_t *m)
{
    const uint64_t at = atomic_load_explicit(&r->at, memory_order_relaxed);
    const onic_queue_head_t *h = onic_queue_head(&r->q, at);
    const uint32_t len = h->len, header_len = h->header_len;

    if (len == ONIC_QUEUE_SKIP && (at & (r->q.ring_bytes - 1)) != 0) {
        r->use = onic_queue_left(&r->q, at);
        onic_queue_take(r);
        return onic_queue_look(r, m);
    }
    if (len > r->q.ring_bytes || header_len > len ||
        onic_queue_use(len) > onic_queue_left(&r->q, at)) {
        atomic_store_explicit(&r->broken, true, memory_order_relaxed);
        return false;
    }
    r->use = onic_queue_use(len);
    /* It goes on behind the first line, of which `bytes` is the end. */
    const unsigned char *bytes = (const unsigned char *)h + offsetof(onic_queue_head_t, bytes);
    *m = (onic_queue_message_t){.header = bytes,
                                .payload = len > header_len ? bytes + header_len : NULL,
                                .header_len = header_len,
                                .len = len - header_len,
                                .id = h->id};
    return true;
}
