/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Processes of other jobs that have left: children that have ended, clients of a server.
 *  What is kept for one (its record and address, the endpoint, mapped memory: some MiB) is given
 *  back when no component names it, it is known to have ended, and all that had come from it has
 *  been handled. It is looked for where communicators and windows with others are made and freed.
 */
#include "common/transport/internal.h"

#include <stdlib.h>

/** Peers that are forgotten, but whose connection a row is still closing. */
static onic_peer_t *closing;

/** True if all components do without it. */
static bool is_forgotten(onic_peer_t *peer, bool left)
{
    for (unsigned id = 0; id < ONIC_AM_COUNT; id++)
        if (onic_transport.fns[id].forget != NULL && !onic_transport.fns[id].forget(peer, left))
            return false;
    return true;
}

/** Those that no component names, chained. */
static onic_peer_t *find_unnamed(void)
{
    onic_peer_t *peer, *found = NULL;
    uint64_t name;
    OPAL_HASH_TABLE_FOREACH(name, uint64, peer, &onic_transport.peers)
    {
        if (name >> 32 != onic_transport.job && peer->refs == 0 && is_forgotten(peer, false)) {
            peer->next_left = found;
            found = peer;
        }
    }
    return found;
}

/** True if all rows have closed their connections to it. */
static bool is_closed(onic_peer_t *peer)
{
    bool closed = true;
    for (const onic_row_t *const *row = onic_rows; *row != NULL; row++)
        closed = (*row)->disconnect(peer) && closed;
    return closed;
}

static void free_closed(void)
{
    for (onic_peer_t **at = &closing, *peer; (peer = *at) != NULL;) {
        if (is_closed(peer)) {
            *at = peer->next_left;
            onic_peer_free(peer);
        } else {
            at = &peer->next_left;
        }
    }
}

static void forget(onic_peer_t *peer)
{
    onic_peer_remove(peer);
    peer->next_left = closing;
    closing = peer;
}

/** True if it has left and nothing is under way with it. */
static bool may_forget(onic_peer_t *peer)
{
    if (!peer->gone || peer->refs > 0 || !is_forgotten(peer, true))
        return false;
    (void)is_closed(peer);
    return !onic_requests_name(peer);
}

void onic_transport_forget_left(void)
{
    static atomic_bool busy;
    if (atomic_exchange(&busy, true))
        return;
    onic_transport_lock();
    onic_peer_t *found = onic_transport.foreign > 0 ? find_unnamed() : NULL;
    onic_transport_unlock();
    /* Records are freed only here. */
    for (onic_peer_t *peer = found; peer != NULL; peer = peer->next_left)
        (void)onic_peer_look(peer);
    onic_transport_lock();
    while (found != NULL && onic_transport.drain > 0)
        (void)onic_transport_progress_locked();
    for (onic_peer_t *peer = found, *next; peer != NULL; peer = next) {
        next = peer->next_left;
        if (may_forget(peer))
            forget(peer);
    }
    free_closed();
    onic_transport_unlock();
    atomic_store(&busy, false);
}

void onic_forget_stop(void)
{
    for (onic_peer_t *next; closing != NULL; closing = next) {
        next = closing->next_left;
        onic_peer_free(closing);
    }
}
