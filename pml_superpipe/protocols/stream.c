/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Protocols whose data goes in DATA messages: stream, packed into them by the sender and
 *  unpacked as they come, and rendezvous, which UCX moves between the two memories. */
#include "pml_superpipe/protocols/process.h"

static bool always(const superpipe_case_t *c)
{
    (void)c;
    return true;
}

static double stream_cost(const superpipe_case_t *c)
{
    const onic_link_t *link = c->link;

    if (c->costs != NULL)
        return superpipe_way_cost(c, ONIC_WAY_stream);
    return link->message + (double)c->length * link->byte +
           superpipe_gather(link, c->length, c->send_block) +
           superpipe_gather(link, c->length, c->receive_block);
}

static bool start_stream(superpipe_request_t *r)
{
    superpipe_request_data_locked(r, SUPERPIPE_STREAM, NULL);
    return true;
}

static superpipe_answer_t answer(superpipe_request_t *r, const superpipe_incoming_t *in)
{
    (void)in;
    superpipe_send_fragments_locked(r);
    superpipe_finish_locked(r);
    return SUPERPIPE_ANSWERED;
}

const superpipe_row_t superpipe_stream_row = {"stream", always, stream_cost, start_stream, answer};

/** On a node UCX would use the kernel's single copy, and loses the peer where that is refused; our
 *  own protocols go another way then. */
static bool can_rendezvous(const superpipe_case_t *c)
{
    return c->one_piece && !superpipe_on_node(c) && !c->self;
}

static double rendezvous_cost(const superpipe_case_t *c)
{
    const onic_link_t *link = c->link;
    const double length = (double)c->length;

    return 2 * link->message + link->rendezvous + length * link->rndv_byte +
           c->pins * (link->pin + length * link->pin_byte);
}

static bool start_rendezvous(superpipe_request_t *r)
{
    superpipe_request_data_locked(r, SUPERPIPE_RENDEZVOUS, NULL);
    return true;
}

const superpipe_row_t superpipe_rendezvous_row = {"rendezvous", can_rendezvous, rendezvous_cost,
                                                  start_rendezvous, answer};

void superpipe_fall_back_locked(superpipe_request_t *r)
{
    superpipe_counters.fallbacks++;
    (void)start_stream(r);
}
