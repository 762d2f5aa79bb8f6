/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Protocol stream: packed into messages by the sender, unpacked as they come. */
#include "pml_superpipe/protocols/process.h"

static bool can(const superpipe_case_t *c)
{
    (void)c;
    return true;
}

/** On a node the sender packs a fragment while the receiver unpacks the one before it: the slower
 *  end counts, and of the two copies that `byte` stands for one. */
static double cost(const superpipe_case_t *c, const onic_link_t *link)
{
    const double sender = superpipe_gather(link, c->length, c->send_block);
    const double receiver = superpipe_gather(link, c->length, c->receive_block);
    const double bytes = (double)c->length * link->byte;

    if (c->node)
        return link->message + bytes / 2 + (sender > receiver ? sender : receiver);
    return link->message + bytes + sender + receiver;
}

static bool start(superpipe_request_t *r)
{
    superpipe_request_data_locked(r, SUPERPIPE_STREAM, NULL);
    return true;
}

static bool answer(superpipe_request_t *r, const superpipe_incoming_t *in)
{
    (void)in;
    superpipe_send_fragments_locked(r);
    superpipe_finish_locked(r);
    return true;
}

const superpipe_row_t superpipe_stream_row = {"stream", can, cost, start, answer};

void superpipe_fall_back_locked(superpipe_request_t *r)
{
    superpipe_counters.fallbacks++;
    /* What it takes now is the time of no protocol. */
    if (r->learned != NULL && r->learned->observed == r)
        r->learned->observed = NULL;
    (void)start(r);
}
