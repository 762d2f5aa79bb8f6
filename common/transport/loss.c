/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Connections that are lost, and processes of this machine that die while others wait for
 *  them. Endpoints are made without UCX's own detection, which would cost the transports of shared
 *  memory; see life.h for how a process is known.
 *
 *  What a lost process had sent before may lie in queues still, and complete what waits for it, or
 *  be written to the memory of a receive. So all of it is handled first (onic_transport.drain):
 *  until a progress of all finds nothing, or many have found something, which others go on to send.
 */
#include "common/ompi_compat.h"
#include "common/support/help.h"
#include "common/transport/internal.h"

#include "ompi/constants.h"

/** No queue has so many entries; a progress that finds something handles one or more of each. */
#define DRAIN_MOST 4096

void onic_transport_count_loss(void)
{
    atomic_fetch_add_explicit(&onic_transport.losses, 1, memory_order_relaxed);
    atomic_store(&onic_transport.asked[ONIC_LOCKED], ~0U);
}

unsigned onic_transport_losses(void)
{
    return atomic_load_explicit(&onic_transport.losses, memory_order_relaxed);
}

bool onic_transport_drains(void)
{
    return onic_transport.drain > 0;
}

bool onic_transport_job_is_broken(void)
{
    return atomic_load(&onic_transport.job_is_broken);
}

void onic_peer_gone(onic_peer_t *peer)
{
    peer->gone = true;
    onic_transport.drain = DRAIN_MOST;
}

void onic_peer_on_lost(onic_peer_t *peer, int rc, const char *why, bool gone)
{
    if (peer->self || (!gone && peer->failed != OMPI_SUCCESS))
        return;
    peer->failed = rc;
    peer->why = why;
    onic_transport_count_loss();
    /* Of a process of this machine it can be seen whether it is dead, or only this way to it. */
    if (gone && !peer->watched)
        onic_peer_gone(peer);
}

void onic_peer_give_up(onic_peer_t *peer)
{
    onic_peer_on_lost(peer, OMPI_ERR_UNREACH, "messages do not get there", false);
}

void onic_peer_on_broken(uint64_t name)
{
    onic_peer_t *peer = onic_peer_named(name);

    onic_say(
        "ompi-nic: the message queue of a process of this node is corrupt; nothing more is read "
        "from it");
    if (peer != NULL)
        onic_peer_give_up(peer);
}

bool onic_peer_has_died(const onic_peer_t *peer)
{
    return atomic_load_explicit(&peer->died, memory_order_relaxed);
}

bool onic_peer_is_lost(const onic_peer_t *peer)
{
    return peer->failed != OMPI_SUCCESS;
}

void onic_peer_print_lost(onic_peer_t *peer, const char *what, const char *why)
{
    if (!peer->printed && !onic_requests.closing) {
        peer->printed = true;
        onic_say("ompi-nic: %s process %u of job %u: %s", what, (unsigned)(peer->name & UINT32_MAX),
                 (unsigned)(peer->name >> 32), why);
    }
}

bool onic_peer_lost(onic_peer_t *peer)
{
    if (!onic_peer_is_lost(peer))
        return false;
    if (onic_peer_has_died(peer))
        onic_peer_print_lost(peer, "this node has lost", "it has died");
    else
        onic_peer_print_lost(peer, "the connection is lost to", peer->why);
    return true;
}

/* ---- deaths -------------------------------------------------------------------------------- */

/** The process has ended. */
static void note_death(onic_peer_t *peer)
{
    onic_transport_lock();
    if (!atomic_load(&peer->died)) {
        peer->failed = peer->failed == OMPI_SUCCESS ? OMPI_ERR_UNREACH : peer->failed;
        atomic_store(&peer->died, true);
        if (!peer->foreign)
            atomic_store(&onic_transport.job_is_broken, true);
        onic_transport_count_loss();
        onic_peer_gone(peer);
        TAILQ_REMOVE(&onic_transport.near, peer, near);
    }
    onic_transport_unlock();
}

bool onic_peer_is_dead(const onic_peer_t *peer)
{
    return onic_peer_has_died(peer) || (peer->watched && onic_life_is_dead(&peer->cma_id.life));
}

bool onic_peer_look(onic_peer_t *peer)
{
    if (!onic_peer_has_died(peer) && onic_peer_is_dead(peer))
        note_death(peer);
    return onic_peer_has_died(peer);
}

void onic_transport_look_for_dead(void)
{
    if (!onic_transport_trylock())
        return;
    onic_peer_t *peer = TAILQ_FIRST(&onic_transport.near);
    if (peer != NULL) {
        TAILQ_REMOVE(&onic_transport.near, peer, near);
        TAILQ_INSERT_TAIL(&onic_transport.near, peer, near);
    }
    onic_transport_unlock();
    if (peer != NULL)
        (void)onic_peer_look(peer);
}
