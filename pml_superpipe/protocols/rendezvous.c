/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Protocol rendezvous: UCX moves the data between the two memories. */
#include "pml_superpipe/protocols/process.h"

static bool can(const superpipe_case_t *c)
{
    return c->one_piece && c->here_one_piece && !c->self &&
           (c->wire != NULL ? onic_peer_rndv_max(c->wire) > 0 : !c->node);
}

static double cost(const superpipe_case_t *c, const onic_link_t *link)
{
    const double length = (double)c->length;

    return 2 * link->message + link->rendezvous + length * link->rndv_byte +
           c->pins * (link->pin + length * link->pin_byte);
}

static bool start(superpipe_request_t *r)
{
    superpipe_request_data_locked(r, SUPERPIPE_RENDEZVOUS, NULL);
    return true;
}

static bool answer(superpipe_request_t *r, const superpipe_incoming_t *in)
{
    return superpipe_stream_row.answer(r, in);
}

const superpipe_row_t superpipe_rendezvous_row = {"rendezvous", can, cost, start, answer};
