/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Peers, and the limits of what they may send. */
#include "pml_superpipe/protocols/process.h"

#include <stdlib.h>

#include "ompi/proc/proc.h"

#include "common/support/help.h"

superpipe_peer_t *superpipe_peer_locked(onic_peer_t *peer)
{
    void **slot = onic_peer_slot(peer, ONIC_AM_PML);
    superpipe_peer_t *p = *slot;

    if (p != NULL || (p = calloc(1, sizeof(*p))) == NULL)
        return p;
    *slot = p;
    p->peer = peer;
    p->self = onic_peer_is_self(peer);
    LIST_INSERT_HEAD(&superpipe.peers, p, of_all);
    p->account = onic_peer_account(peer);
    return p;
}

superpipe_peer_t *superpipe_peer_find(ompi_communicator_t *comm, int rank, int *rc_p)
{
    superpipe_channel_t *c = (superpipe_channel_t *)comm->c_pml_comm;
    ompi_proc_t *proc = ompi_comm_peer_lookup(comm, rank);
    void **endpoint = (void **)&proc->proc_endpoints[OMPI_PROC_ENDPOINT_TAG_PML];
    superpipe_peer_t *p = __atomic_load_n(endpoint, __ATOMIC_ACQUIRE);

    if (p == NULL) {
        onic_peer_t *peer = onic_transport_get_peer(
            onic_name(proc->super.proc_name.jobid, proc->super.proc_name.vpid), rc_p);

        if (peer == NULL)
            return NULL;
        onic_transport_lock();
        p = superpipe_peer_locked(peer);
        onic_transport_unlock();
        if (p == NULL) {
            *rc_p = OMPI_ERR_OUT_OF_RESOURCE;
            return NULL;
        }
        __atomic_store_n(endpoint, p, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&c->peer[rank], p, __ATOMIC_RELEASE);
    return p;
}

size_t superpipe_fragment_locked(superpipe_peer_t *p, uint64_t wanted)
{
    if (p->fragment == 0 || p->fragment < wanted) {
        const size_t most = onic_peer_message_max(p->peer, wanted + SUPERPIPE_HEADER_MAX);
        p->fragment = most > 2 * SUPERPIPE_HEADER_MAX ? most - SUPERPIPE_HEADER_MAX : 0;
        p->short_most =
            superpipe_short_most(superpipe.params.eager, p->fragment, superpipe.params.protocol);
    }
    return p->fragment;
}

void superpipe_send_control_locked(superpipe_peer_t *p, superpipe_kind_t kind, uint64_t handle,
                                   uint64_t value)
{
    const superpipe_control_t w = {.prefix = {.sender = onic_transport_me(), .kind = (uint8_t)kind},
                                   .handle = handle,
                                   .value = value};

    if (onic_peer_send(p->peer, ONIC_AM_PML, &w, sizeof(w), NULL, 0, NULL, NULL) < 0)
        onic_peer_give_up(p->peer);
}

void superpipe_break_locked(superpipe_peer_t *p, const char *why)
{
    if (!onic_peer_is_lost(p->peer))
        onic_say("pml_superpipe: %s", why);
    onic_peer_give_up(p->peer);
}
