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

/** The process of that name has ended, if it is still known. */
static void note_death(uint64_t name)
{
    onic_wire_lock();
    onic_peer_t *peer = onic_peer_named(name);
    if (peer != NULL && !atomic_load(&peer->died)) {
        peer->failed = peer->failed == UCS_OK ? UCS_ERR_CONNECTION_RESET : peer->failed;
        atomic_store(&peer->died, true);
        if (name >> 32 == onic_wire.self->name >> 32) {
            atomic_store(&onic_wire.job_is_broken, true);
        }
        onic_wire_count_loss();
        onic_peer_gone(peer);
    }
    onic_wire_unlock();
}

bool onic_peer_look(onic_peer_t *peer)
{
    if (peer->watched && !onic_peer_has_died(peer) && onic_life_is_dead(&peer->cma_id.life)) {
        note_death(peer->name);
    }
    return onic_peer_has_died(peer);
}

/** The process to look at next; false where there is none. */
static bool next_near(uint64_t *name_p, onic_life_t *life_p)
{
    onic_wire_lock();
    onic_peer_t *peer = onic_wire.look_next != NULL ? onic_wire.look_next : onic_wire.near;
    if (peer != NULL) {
        onic_wire.look_next = peer->next_near;
        *name_p = peer->name;
        *life_p = peer->cma_id.life;
    }
    onic_wire_unlock();
    return peer != NULL;
}

void onic_wire_look_for_dead(void)
{
    uint64_t name;
    onic_life_t life;
    /* The record itself may be forgotten meanwhile. */
    if (next_near(&name, &life) && onic_life_is_dead(&life)) {
        note_death(name);
    }
}
