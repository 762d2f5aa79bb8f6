/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Which protocol brings a message: by the model, and by what messages of its kind have
 *  really taken. Those of a sender, or of all on other nodes, are observed in bursts, from when the
 *  protocol of the first is chosen until none is under way, where all of a burst are of one kind
 * and come by one protocol. A sender that was away from MPI counts in it. */
#include "pml_superpipe/protocols/process.h"

#include <stdlib.h>

#include "common/support/clock.h"
#include "common/wire/put.h"

/** Most early fragments of a message. */
#define EARLY_FRAGMENTS 8

/** What is known here of a long message: as if the other side had its data as this one has it. */
static superpipe_case_t case_locked(const superpipe_request_t *r)
{
    onic_peer_t *wire = r->peer->wire;
    const uint64_t block = superpipe_mean_block(&r->layout);

    return (superpipe_case_t){.length = r->state.length,
                              .send_block = block,
                              .receive_block = block,
                              .one_piece = onic_layout_is_contig(&r->layout),
                              .node = onic_peer_pid(wire) >= 0 || onic_peer_has_queue(wire),
                              /* To ask makes a connection, which a queue does without. */
                              .adapter = !onic_peer_has_queue(wire) && onic_peer_puts_by_rdma(wire),
                              .self = r->peer->self,
                              .refused = r->peer->refused,
                              .wire = wire};
}

static const onic_link_t *link_of(const superpipe_case_t *c)
{
    return c->adapter ? &superpipe.links.adapter
           : c->node  ? &superpipe.links.node
                      : &superpipe.links.net;
}

uint64_t superpipe_early_locked(const superpipe_request_t *r)
{
    const size_t fragment = superpipe_fragment_locked(r->peer);
    const uint64_t fragments = (uint64_t)fragment * EARLY_FRAGMENTS;
    const superpipe_case_t c = case_locked(r);

    return superpipe_early(&c, superpipe_able(&c), link_of(&c), fragment,
                           superpipe.params.early < fragments ? superpipe.params.early : fragments,
                           superpipe.params.protocol);
}

double superpipe_pin_share_locked(const superpipe_request_t *r)
{
    const uint64_t start = (uint64_t)(uintptr_t)(r->base + r->layout.offset);
    double share;
    bool hit;

    if (r->internal || !onic_layout_is_contig(&r->layout))
        return 1;
    share = superpipe_reuse_note(&superpipe.reuse, start, r->layout.size, &hit);
    superpipe_counters.reuse_hits += hit;
    superpipe_counters.reuse_misses += !hit;
    return share;
}

/** Where messages of a peer are learned, those of all other nodes together; NULL: no memory. */
static superpipe_learned_t *learned_locked(superpipe_peer_t *p, const superpipe_case_t *c)
{
    if (!c->node)
        return &superpipe.network;
    if (p->learned == NULL)
        p->learned = calloc(1, sizeof(*p->learned));
    return p->learned;
}

static superpipe_protocol_t choose_locked(superpipe_request_t *r, const superpipe_case_t *c)
{
    const superpipe_protocol_t forced = superpipe.params.protocol;
    const onic_link_t *link = link_of(c);
    const uint64_t block = c->send_block < c->receive_block ? c->send_block : c->receive_block;
    const unsigned able = superpipe_able(c);
    superpipe_learned_t *l =
        c->self || forced != SUPERPIPE_AUTO ? NULL : learned_locked(r->peer, c);
    double cost[ONIC_LEARN_CHOICES];
    unsigned fixed;

    if (l == NULL)
        return superpipe_choose(c, able, link, forced);
    /* Registrations that are to be made are another kind of message. */
    onic_learn_cell_t *cell = &l->learn.cell[c->pins > 0.5][onic_learn_shape_of(block, c->length)]
                                            [onic_learn_size(c->length)];
    r->learned = l;
    if (onic_burst_enter(&l->burst, cell, able, c->length))
        return (superpipe_protocol_t)l->burst.choice;
    if (onic_learn_fixed(cell, true, &fixed) && (able >> fixed & 1) != 0)
        return (superpipe_protocol_t)fixed;
    superpipe_estimate(c, able, link, cost);
    if (!onic_burst_is_first(&l->burst)) {
        onic_learn_known(cell, cost, c->length);
        return superpipe_cheapest(cost);
    }
    onic_burst_begin(&l->burst, cell, onic_learn_choose(cell, &l->learn.budget, cost, c->length),
                     c->length, onic_now_nsec());
    return (superpipe_protocol_t)l->burst.choice;
}

const superpipe_row_t *superpipe_pick_locked(superpipe_request_t *r, const superpipe_announced_t *a)
{
    const double here = superpipe_pin_share_locked(r);
    superpipe_case_t c = case_locked(r);

    c.length = superpipe_transfer_remaining(&r->state);
    c.send_block = a->offer.block;
    c.one_piece = c.one_piece && a->offer.address != 0;
    if (c.adapter)
        c.pins = (double)a->pins / UINT8_MAX + here;
    return superpipe_rows[choose_locked(r, &c)];
}
