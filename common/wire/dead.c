/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Processes of this machine that die while others wait for them.
 *
 * Open MPI ends a job of which a process dies; but a process of another job that was connected, or
 * of a job that goes on after errors, dies alone. Endpoints are made without UCX's own detection,
 * which would cost the transports of shared memory. See life.h for how a process is known.
 */
#include "common/ompi_compat.h"
#include "common/wire/wire_internal.h"

void onic_dead_watch(onic_peer_t *peer)
{
    /* Namespaces have the same numbers on many machines. */
    if (peer->self || !onic_same_place(&peer->cma_id, &onic_wire.cma_id) ||
        !onic_life_comparable(&onic_wire.cma_id.life, &peer->cma_id.life)) {
        return;
    }
    peer->next_near = atomic_load_explicit(&onic_wire.near, memory_order_relaxed);
    atomic_store_explicit(&onic_wire.near, peer, memory_order_release);
    peer->watched = true;
}

void onic_dead_stop(void)
{
    atomic_store(&onic_wire.near, NULL);
    atomic_store(&onic_wire.look_next, NULL);
    atomic_store(&onic_wire.deaths, 0);
    atomic_store(&onic_wire.job_is_broken, false);
    atomic_store(&onic_wire.job_is_cut, false);
}

static void note_death(onic_peer_t *peer)
{
    onic_wire_lock();
    if (!atomic_load(&peer->died)) {
        peer->failed = peer->failed == UCS_OK ? UCS_ERR_CONNECTION_RESET : peer->failed;
        atomic_store(&peer->died, true);
        atomic_fetch_add(&onic_wire.deaths, 1);
        if (peer->name >> 32 == onic_wire.self->name >> 32) {
            atomic_store(&onic_wire.job_is_broken, true);
        }
        onic_wire_count_loss();
        onic_peer_gone(peer);
    }
    onic_wire_unlock();
}

bool onic_peer_has_died(const onic_peer_t *peer)
{
    return atomic_load_explicit(&peer->died, memory_order_relaxed);
}

bool onic_peer_look(onic_peer_t *peer)
{
    if (!peer->watched || onic_peer_has_died(peer)) {
        return onic_peer_has_died(peer);
    }
    if (onic_life_is_dead(&peer->cma_id.life)) {
        note_death(peer);
        return true;
    }
    return false;
}

unsigned onic_wire_look_for_dead(void)
{
    /* Records stay until the wire is closed. Threads that meet here look at the same one. */
    onic_peer_t *peer = atomic_load_explicit(&onic_wire.look_next, memory_order_relaxed);
    if (peer == NULL) {
        peer = atomic_load_explicit(&onic_wire.near, memory_order_acquire);
    }
    if (peer != NULL) {
        atomic_store_explicit(&onic_wire.look_next, peer->next_near, memory_order_relaxed);
        (void)onic_peer_look(peer);
    }
    return atomic_load_explicit(&onic_wire.deaths, memory_order_relaxed);
}

bool onic_wire_job_is_broken(void)
{
    return atomic_load(&onic_wire.job_is_broken);
}
