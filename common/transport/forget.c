/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Processes of other jobs that have left: children that have ended, clients of a server.
 *  What is kept for one (its record and address, the endpoint, mapped memory: some MiB) is given
 *  back when no component names it, it is known to have ended, and all that had come from it has
 *  been handled. It is looked for where communicators and windows with others are made and freed.
 */
#include "common/transport/account.h"
#include "common/transport/internal.h"

#include <stdlib.h>

/** Forgotten, but UCX still closes the endpoint. */
static onic_peer_t *closing;

/** Do all components do without it? */
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

static void free_closed(void)
{
    for (onic_peer_t **at = &closing, *peer; (peer = *at) != NULL;) {
        if (peer->close != NULL && onic_ucx.request_check_status(peer->close) == UCS_INPROGRESS) {
            at = &peer->next_left;
            continue;
        }
        if (peer->close != NULL)
            onic_ucx.request_free(peer->close);
        *at = peer->next_left;
        free(peer);
    }
}

/** Where UCX cannot end it by force it may last as long as the worker. */
static void close_ep(onic_peer_t *peer)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                 .flags = UCP_EP_CLOSE_FLAG_FORCE};
    if (peer->ep == NULL || peer->closed)
        return;
    peer->closed = true;
    ucs_status_ptr_t answer = onic_ucx.ep_close_nbx(peer->ep, &param);
    if (UCS_PTR_IS_ERR(answer)) {
        param.op_attr_mask = 0;
        answer = onic_ucx.ep_close_nbx(peer->ep, &param);
    }
    peer->close = UCS_PTR_IS_PTR(answer) ? answer : NULL;
    atomic_fetch_sub_explicit(&onic_transport.neps, 1, memory_order_relaxed);
}

static void forget(onic_peer_t *peer)
{
    onic_account_close(peer);
    onic_peer_remove(peer);
    peer->next_left = closing;
    closing = peer;
}

/** Has it left, and is nothing under way with it? */
static bool may_forget(onic_peer_t *peer)
{
    if (!peer->gone || peer->refs > 0 || !is_forgotten(peer, true))
        return false;
    close_ep(peer);
    return !onic_sends_name(peer);
}

void onic_transport_forget_left(void)
{
    static atomic_bool busy;
    if (atomic_exchange(&busy, true))
        return;
    onic_transport_lock();
    onic_peer_t *found = onic_transport.foreign > 0 ? find_unnamed() : NULL;
    onic_transport_unlock();
    /* Records are freed here alone. */
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
        free(closing);
    }
}
