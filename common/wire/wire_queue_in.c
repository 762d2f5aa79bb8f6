/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What other processes of the node put into this one's queues; see wire_queue.c. */
#include "common/ompi_compat.h"
#include "common/wire/wire_internal.h"

#include <stdlib.h>

#include "common/node/segment.h"
#include "common/support/membarrier.h"
#include "common/support/say.h"
#include "common/wire/wire_queue.h"

/** Messages of one queue in one progress, so that others have their turn. */
#define TURN 32
/** Nothing has been gained by longer rings than twice an L2 cache. */
#define RING_MOST (UINT32_C(1) << 21)

/** What others put messages into. */
static struct {
    onic_segment_t segment;
    onic_segment_key_t key;
    onic_queue_receiver_t *receiver; /**< those in use */
    _Atomic uint32_t nreceivers;
    _Atomic uint32_t senders; /**< that were seen in the head */
    uint64_t *owner;          /**< of each of those */
    bool *seen;               /**< by the sender's number */
    uint32_t ring_bytes;
} in;

onic_queue_counters_t onic_queue_counters;

/** The segment with its head alone in memory. */
static bool make_segment(uint32_t n, uint32_t ring_bytes)
{
    const size_t bytes = onic_queues_at(n, ring_bytes, n);
    onic_reservation_t r;

    if (!onic_segment_make(bytes, 1, ONIC_BY_DESCRIPTOR, &in.key, &in.segment, &r)) {
        return false;
    }
    r.to = onic_queues_head_bytes(n);
    /* One with a name would outlive a process that is killed. */
    if (onic_segment_reserve(&r) && in.key.file.fd >= 0) {
        return true;
    }
    onic_segment_withdraw(&in.key);
    onic_segment_unmap(&in.segment);
    return false;
}

/** A ring that takes up such a share of the memory, within what makes sense. */
static uint32_t ring_for(size_t share)
{
    const size_t least = onic_queue_bytes(ONIC_QUEUE_RING_MIN), most = onic_queue_bytes(RING_MOST);
    /* A ring is a power of two, and what stands before it is not to halve it. */
    const size_t bytes = share + onic_queue_bytes(0);

    return onic_queue_ring_for(bytes < least ? least : bytes < most ? bytes : most);
}

void onic_queues_start(size_t bytes)
{
    const uint32_t n = onic_processes_here();
    const uint32_t ring_bytes =
        n > 1 && bytes > 0 ? ring_for(onic_segment_part(bytes, n) / (n - 1)) : 0;

    onic_queues_out_start();
    in.receiver = NULL;
    atomic_store(&in.nreceivers, 0);
    atomic_store(&in.senders, 0);
    if (ring_bytes == 0 || !make_segment(n, ring_bytes)) {
        return;
    }
    in.receiver = malloc(n * sizeof(*in.receiver));
    in.owner = malloc(n * sizeof(*in.owner));
    in.seen = calloc(n, sizeof(*in.seen));
    in.ring_bytes = ring_bytes;
    if (in.receiver == NULL || in.owner == NULL || in.seen == NULL) {
        onic_queues_stop();
        return;
    }
    onic_queues_head_t *head = in.segment.base;
    head->mark = ONIC_QUEUES_MARK;
    head->nqueues = n;
    head->ring_bytes = ring_bytes;
}

const onic_segment_key_t *onic_queues_key(void)
{
    return &in.key;
}

/** Others have begun to send: their queues are looked at from now on. */
static void meet_senders(onic_queues_head_t *head, uint32_t senders)
{
    const uint32_t n = onic_processes_here(), ring_bytes = in.ring_bytes;
    uint32_t known = atomic_load_explicit(&in.nreceivers, memory_order_relaxed);

    atomic_store_explicit(&in.senders, senders, memory_order_relaxed);
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t owner = atomic_load_explicit(&head->owner[i], memory_order_acquire);
        if (!in.seen[i] && owner != ONIC_QUEUE_NOBODY && owner != ONIC_QUEUE_CLAIMED) {
            in.seen[i] = true;
            const onic_queue_t q =
                onic_queue_at((char *)head + onic_queues_at(n, ring_bytes, i), ring_bytes);
            in.owner[known] = owner;
            in.receiver[known++] = onic_queue_receiver(&q);
        }
    }
    atomic_store_explicit(&in.nreceivers, known, memory_order_release);
}

/** Nothing is taken from such a process any more, and what waits for it ends. */
static void give_up_owner(uint64_t owner)
{
    onic_peer_t *peer = onic_peer_named(owner - 1);

    onic_say(
        "ompi-nic: a message queue of a process of this node is corrupt; no more is read from it");
    if (peer != NULL) {
        onic_peer_give_up(peer);
    }
}

onic_queue_receiver_t *onic_peer_incoming(onic_peer_t *peer)
{
    const uint32_t n = atomic_load_explicit(&in.nreceivers, memory_order_relaxed);

    for (uint32_t i = 0; i < n && peer->incoming == NULL; i++) {
        if (in.owner[i] == peer->name + 1) {
            peer->incoming = &in.receiver[i];
        }
    }
    return peer->incoming;
}

bool onic_peer_next_message(onic_peer_t *peer, onic_queue_message_t *m)
{
    const bool found = onic_queue_look(peer->incoming, m);

    if (!found && atomic_load_explicit(&peer->incoming->broken, memory_order_relaxed)) {
        give_up_owner(peer->name + 1);
    }
    return found;
}

static int take_messages(uint32_t i)
{
    onic_queue_receiver_t *r = &in.receiver[i];
    onic_queue_message_t m;
    int n = 0;

    while (n < TURN && onic_queue_look(r, &m)) {
        onic_am_arrived(m.id, m.header, m.header_len, m.payload, m.len);
        onic_queue_take(r);
        n++;
    }
    if (atomic_load_explicit(&r->broken, memory_order_relaxed)) {
        give_up_owner(in.owner[i]);
    }
    onic_queue_counters.received += (unsigned)n;
    return n;
}

int onic_queues_receive(void)
{
    onic_queues_head_t *head = in.segment.base;
    int events = 0;

    if (head == NULL) {
        return 0;
    }
    const uint32_t senders = atomic_load_explicit(&head->senders, memory_order_acquire);
    if (senders != atomic_load_explicit(&in.senders, memory_order_relaxed)) {
        meet_senders(head, senders);
    }
    const uint32_t n = atomic_load_explicit(&in.nreceivers, memory_order_relaxed);
    for (uint32_t i = 0; i < n; i++) {
        if (onic_queue_has_message(&in.receiver[i])) {
            events += take_messages(i);
        }
    }
    return events;
}

bool onic_queues_have_messages(void)
{
    const onic_queues_head_t *head = in.segment.base;
    bool found;

    if (head == NULL) {
        return false;
    }
    const uint32_t n = atomic_load_explicit(&in.nreceivers, memory_order_acquire);
    found = atomic_load_explicit(&head->senders, memory_order_relaxed) !=
            atomic_load_explicit(&in.senders, memory_order_relaxed);
    for (uint32_t i = 0; i < n && !found; i++) {
        found = onic_queue_has_message(&in.receiver[i]);
    }
    return found;
}

bool onic_queues_park(unsigned nap)
{
    atomic_store_explicit(&onic_presence_mine()->parked, nap, memory_order_release);
    return nap == 0 || in.segment.base == NULL || onic_membarrier();
}

void onic_queues_stop(void)
{
    onic_queues_out_stop();
    onic_segment_withdraw(&in.key);
    onic_segment_unmap(&in.segment);
    free(in.receiver);
    free(in.owner);
    free(in.seen);
    in.receiver = NULL;
    in.owner = NULL;
    in.seen = NULL;
}
