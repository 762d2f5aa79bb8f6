/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Connections that are lost, and processes that have died: what is remembered of them, and what
 * follows at once. Deaths are found in death.c.
 */
#include "common/support/say.h"
#include "common/wire/wire_internal.h"

void onic_wire_count_loss(void)
{
    atomic_fetch_add_explicit(&onic_wire.losses, 1, memory_order_relaxed);
    atomic_store(&onic_wire.deferred, ~0U);
}

unsigned onic_wire_losses(void)
{
    return atomic_load_explicit(&onic_wire.losses, memory_order_relaxed);
}

bool onic_wire_drains(void)
{
    return onic_drain_goes_on(&onic_wire.drain);
}

bool onic_wire_job_is_broken(void)
{
    return atomic_load(&onic_wire.job_is_broken);
}

void onic_peer_gone(onic_peer_t *peer)
{
    peer->gone = true;
    onic_drain_begin(&onic_wire.drain);
}

void onic_peer_give_up(onic_peer_t *peer)
{
    if (!peer->self && peer->failed == UCS_OK) {
        peer->failed = UCS_ERR_CONNECTION_RESET;
        onic_wire_count_loss();
    }
}

bool onic_peer_has_died(const onic_peer_t *peer)
{
    return atomic_load_explicit(&peer->died, memory_order_relaxed);
}

bool onic_peer_is_lost(const onic_peer_t *peer)
{
    return peer->failed != UCS_OK;
}

void onic_peer_print_lost(onic_peer_t *peer, const char *what, const char *why)
{
    if (!peer->printed && !onic_wire.closing) {
        peer->printed = true;
        onic_say("ompi-nic: %s process %u of job %u: %s", what, (unsigned)(peer->name & UINT32_MAX),
                 (unsigned)(peer->name >> 32), why);
    }
}

bool onic_peer_lost(onic_peer_t *peer)
{
    if (!onic_peer_is_lost(peer)) {
        return false;
    }
    if (onic_peer_has_died(peer)) {
        onic_peer_print_lost(peer, "this node has lost", "it has died");
    } else {
        onic_peer_print_lost(peer, "the connection is lost to", ucs_status_string(peer->failed));
    }
    return true;
}
