/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Which peers the mover reaches, and how.
 */
#include "common/mover/carrier_rma.h"
#include "common/mover/transfer_internal.h"

#include <stdlib.h>

#include "common/node/presence.h"

/** Maps the area of a peer of this node, once it offers one. */
static void try_node(onic_mover_peer_t *p)
{
    onic_segment_key_t key;
    const onic_presence_t *presence = onic_mover.me != 0 ? onic_peer_presence(p->peer) : NULL;
    if (presence == NULL) {
        p->tried = true;
    } else if (onic_presence_offers(presence, &key)) {
        p->tried = true;
        p->carrier = onic_area_map(&key, &p->area) ? &onic_carrier_node : NULL;
    }
}

static onic_mover_peer_t *new_peer(onic_peer_t *peer)
{
    onic_mover_peer_t *p = calloc(1, sizeof(*p));
    if (p != NULL) {
        p->peer = peer;
        p->next = onic_mover.peers;
        onic_mover.peers = p;
    }
    return p;
}

onic_mover_peer_t *onic_mover_peer(onic_peer_t *peer)
{
    void **slot = onic_peer_slot(peer, ONIC_AM_MOVER);
    if (!atomic_load_explicit(&onic_mover.open, memory_order_relaxed)) {
        return NULL;
    }
    if (*slot == NULL) {
        *slot = new_peer(peer);
    }
    onic_mover_peer_t *p = *slot;
    if (p != NULL && !p->tried) {
        try_node(p);
    }
    return p != NULL && p->carrier != NULL ? p : NULL;
}

/** Gives back what is known of the peer that *at points to, and takes it out of the list. */
static void forget_peer(onic_mover_peer_t **at)
{
    onic_mover_peer_t *p = *at;
    *at = p->next;
    *onic_peer_slot(p->peer, ONIC_AM_MOVER) = NULL;
    if (p->carrier == &onic_carrier_node) {
        onic_area_unmap(&p->area);
    }
    free(p);
}

bool onic_mover_forget_peer(onic_peer_t *peer, bool left)
{
    onic_mover_peer_t **at = &onic_mover.peers;
    if (!left) {
        return true;
    }
    if (onic_transfers_name(peer) || onic_rma_knows(peer)) {
        return false;
    }
    while (*at != NULL && (*at)->peer != peer) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        forget_peer(at);
    }
    return true;
}

void onic_mover_forget_peers(void)
{
    while (onic_mover.peers != NULL) {
        forget_peer(&onic_mover.peers);
    }
}
