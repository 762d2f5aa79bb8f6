/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Messages that other processes of this job and node have put into this one's inbox. */
#include "common/ompi_compat.h"
#include "common/wire/wire_internal.h"

#include "common/node/inbox.h"
#include "common/support/say.h"

/** Messages of one queue in one progress, so that others have their turn. */
#define TURN 32

/** Nothing is taken from such a process any more, and what waits for it ends. */
static void give_up_owner(uint64_t owner)
{
    onic_peer_t *peer = onic_peer_named(owner);

    onic_say(
        "ompi-nic: the message queue of a process of this node is corrupt; nothing more is read "
        "from it");
    if (peer != NULL) {
        onic_peer_give_up(peer);
    }
}

onic_queue_receiver_t *onic_peer_incoming(onic_peer_t *peer)
{
    const onic_inbox_t *in = &onic_inbox;
    const uint32_t n = atomic_load_explicit(&in->nreceivers, memory_order_relaxed);

    for (uint32_t i = 0; i < n && peer->incoming == NULL; i++) {
        if (in->owner[i] == peer->name) {
            peer->incoming = &in->receiver[i];
        }
    }
    return peer->incoming;
}

bool onic_peer_next_message(onic_peer_t *peer, onic_queue_message_t *m)
{
    const bool found = onic_queue_look(peer->incoming, m);

    if (!found && atomic_load_explicit(&peer->incoming->broken, memory_order_relaxed)) {
        give_up_owner(peer->name);
    }
    return found;
}

static int take_messages(uint32_t i)
{
    onic_queue_receiver_t *r = &onic_inbox.receiver[i];
    onic_queue_message_t m;
    int n = 0;

    while (n < TURN && onic_queue_look(r, &m)) {
        onic_am_arrived(m.id, m.header, m.header_len, m.payload, m.len);
        onic_queue_take(r);
        n++;
    }
    if (atomic_load_explicit(&r->broken, memory_order_relaxed)) {
        give_up_owner(onic_inbox.owner[i]);
    }
    onic_queue_counters.received += (unsigned)n;
    return n;
}

int onic_queues_receive(void)
{
    const uint32_t n = onic_inbox_look();
    int events = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (onic_queue_has_message(&onic_inbox.receiver[i])) {
            events += take_messages(i);
        }
    }
    return events;
}
