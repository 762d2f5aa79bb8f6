/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Picks the protocol of a message: the choice for what is known of the message and its
 *  sender. */
#include "pml_superpipe/protocols/choice.h"
#include "pml_superpipe/protocols/process.h"

#include "common/transport/shm/node.h"
#include "common/transport/shm/presence.h"
#include "common/support/clock.h"
#include "common/transport/put.h"
#include "common/transport/shm/rings.h"

/** Most early fragments of one message. */
#define EARLY_FRAGMENTS 8

/** The peer's kind, determined when it is first needed. */
static onic_kind_t kind_locked(superpipe_peer_t *p)
{
    onic_peer_t *peer = p->peer;

    if (p->kind != 0)
        return (onic_kind_t)(p->kind - 1);
    onic_kind_t kind = ONIC_NET;
    /* Asking for an adapter makes a connection, which a queue does not need. */
    if (!onic_peer_has_queue(peer) && onic_peer_puts_by_rdma(peer))
        kind = ONIC_ADAPTER;
    else if (onic_peer_has_queue(peer) || onic_peer_pid(peer) >= 0)
        kind = onic_distance(onic_peer_name(peer));
    p->kind = 1 + (int)kind;
    return kind;
}

/** What is known of a long message here. The other side's data is taken to be like this side's. */
static superpipe_case_t case_locked(const superpipe_request_t *r)
{
    superpipe_case_t c = superpipe_case(&superpipe.table, kind_locked(r->peer));

    c.length = r->state.length;
    c.send_block = c.receive_block = superpipe_mean_block(&r->layout);
    c.one_piece = onic_layout_is_contig(&r->layout);
    c.self = r->peer->self;
    c.refused = r->peer->refused;
    c.peer = r->peer->peer;
    return c;
}

uint64_t superpipe_early_locked(const superpipe_request_t *r)
{
    const size_t fragment = superpipe_fragment_locked(r->peer, r->state.length);
    const uint64_t fragments = (uint64_t)fragment * EARLY_FRAGMENTS;
    const superpipe_case_t c = case_locked(r);

    return superpipe_early(&c, fragment,
                           superpipe.params.early < fragments ? superpipe.params.early : fragments,
                           superpipe.params.protocol);
}

double superpipe_pin_share_locked(const superpipe_request_t *r)
{
    if (r->internal || !onic_layout_is_contig(&r->layout))
        return 1;
    return superpipe_reuse_note(&superpipe.reuse, (uint64_t)(uintptr_t)(r->base + r->layout.offset),
                                r->layout.size);
}

/** The expected time until a sender on the node answers, from when it was last in MPI. */
static double wait_locked(const superpipe_case_t *c)
{
    const onic_presence_t *presence = superpipe_on_node(c) ? onic_peer_presence(c->peer) : NULL;

    if (c->self || presence == NULL)
        return 0;
    return superpipe_answers_in(c->link, (double)onic_presence_unseen(presence, onic_now_nsec()),
                                onic_presence_is_away(presence));
}

superpipe_protocol_t superpipe_pick_locked(superpipe_request_t *r, const superpipe_offer_t *offer)
{
    const double here = superpipe_pin_share_locked(r);
    superpipe_case_t c = case_locked(r);

    c.length = superpipe_transfer_remaining(&r->state);
    c.send_block = offer->block;
    c.one_piece = c.one_piece && offer->address != 0;
    c.wait = wait_locked(&c);
    c.many = r->peer->under_way > r->counted;
    if (c.kind == ONIC_ADAPTER || c.one_piece)
        c.pins = (double)offer->pins / UINT8_MAX + here;
    r->peer->under_way += !r->counted;
    r->counted = true;
    return superpipe_choose(&c, superpipe.params.protocol);
}
