/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What the choice of a protocol goes by: what is known of a message and of the links, and what
 * messages of its kind have really taken.
 *
 * A transfer is observed from when its protocol is chosen to its end, where no other of the same
 * sender was under way meanwhile. A sender that was away from MPI counts in it, as it should: the
 * protocols that need it had to wait.
 */
#include "pml_superpipe/protocols/process.h"

#include <stdlib.h>

#include "common/mover/links.h"
#include "common/support/clock.h"

superpipe_case_t superpipe_case_locked(const superpipe_request_t *r)
{
    onic_peer_t *wire = r->peer->wire;
    const uint64_t block = superpipe_mean_block(&r->layout);
    const bool one_piece = onic_layout_is_contig(&r->layout);
    const bool mover = onic_mover_reaches_locked(wire);

    return (superpipe_case_t){
        .length = r->state.length,
        .send_block = block,
        .receive_block = block,
        .one_piece = one_piece,
        .here_one_piece = one_piece,
        .node = onic_peer_pid(wire) >= 0 || (mover && !superpipe.params.network_slots),
        .self = r->peer->self,
        .single_copy = superpipe.params.single_copy && onic_peer_can_cma(wire),
        .mover = mover,
        .rendezvous = onic_peer_rndv_max(wire) > 0};
}

const onic_links_t *superpipe_links_locked(const char **source_p)
{
    const onic_links_known_t *known = onic_links_known_locked();

    *source_p = superpipe.params.measures ? known->source : superpipe.links_source;
    return superpipe.params.measures ? &known->links : &superpipe.links;
}

const onic_link_t *superpipe_link_locked(const superpipe_case_t *c)
{
    const char *source;
    const onic_links_t *links = superpipe_links_locked(&source);

    return c->node ? &links->node : &links->net;
}

double superpipe_pin_share_locked(const superpipe_request_t *r)
{
    bool hit;

    if (r->internal || !onic_layout_is_contig(&r->layout))
        return 1;
    hit = superpipe_reuse_note(&superpipe.reuse, (uint64_t)(uintptr_t)(r->base + r->layout.offset),
                               r->layout.size);
    superpipe_counters.reuse_hits += hit;
    superpipe_counters.reuse_misses += !hit;
    return superpipe_reuse_share(&superpipe.reuse, hit);
}

/* ---- what was learned ------------------------------------------------------------------------ */

/** Of all peers on other nodes: the same network is before them. */
static onic_learn_t network;

/** Where messages of a peer are learned; NULL where memory is exhausted. */
static onic_learn_t *learn_locked(superpipe_peer_t *p, const superpipe_case_t *c)
{
    if (!c->node)
        return &network;
    if (p->learn == NULL)
        p->learn = calloc(1, sizeof(*p->learn));
    return p->learn;
}

/** Registrations that are to be made are another kind of message. */
static onic_learn_cell_t *cell_of(onic_learn_t *learn, const superpipe_case_t *c)
{
    const uint64_t block = c->send_block < c->receive_block ? c->send_block : c->receive_block;

    return &learn->cell[c->pins > 0.5][onic_learn_shape_of(block, c->length)]
                       [onic_learn_size(c->length)];
}

superpipe_protocol_t superpipe_pick_locked(superpipe_request_t *r, const superpipe_case_t *c)
{
    const superpipe_protocol_t forced = (superpipe_protocol_t)superpipe.params.protocol;
    superpipe_peer_t *p = r->peer;
    onic_learn_t *learn = c->self ? NULL : learn_locked(p, c);
    double cost[ONIC_LEARN_CHOICES];
    superpipe_protocol_t protocol;

    if (forced != SUPERPIPE_AUTO || learn == NULL)
        return superpipe_choose(c, superpipe_link_locked(c), forced);
    onic_learn_cell_t *cell = cell_of(learn, c);
    superpipe_estimate(c, superpipe_link_locked(c), cost);
    r->picked = true;
    p->observed = NULL;
    if (p->picked++ > 0) {
        onic_learn_known(cell, cost, c->length);
        return superpipe_cheapest(cost);
    }
    protocol = (superpipe_protocol_t)onic_learn_choose(cell, &learn->budget, cost, c->length);
    p->observed = r;
    p->observation = (superpipe_observation_t){.learn = learn,
                                               .cell = cell,
                                               .protocol = protocol,
                                               .bytes = c->length,
                                               .begun = onic_now_nsec()};
    return protocol;
}

void superpipe_picked_end_locked(superpipe_request_t *r)
{
    const superpipe_observation_t *o;

    if (!r->picked)
        return;
    r->picked = false;
    r->peer->picked--;
    if (r->peer->observed != r)
        return;
    r->peer->observed = NULL;
    o = &r->peer->observation;
    if (r->error == OMPI_SUCCESS && !r->state.broken)
        onic_learn_note(o->cell, &o->learn->budget, o->protocol, o->bytes,
                        (double)(onic_now_nsec() - o->begun));
}

void superpipe_picked_other_locked(superpipe_request_t *r)
{
    if (r->peer->observed == r)
        r->peer->observed = NULL;
}
