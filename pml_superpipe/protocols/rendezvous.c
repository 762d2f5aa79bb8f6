/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Protocol rendezvous: UCX moves contiguous data between the two memories, in one DATA
 *  message. Not used on a node: there UCX would use the kernel's single copy, and would lose the
 *  peer if that is refused, where our own protocols use another way. */
#include "pml_superpipe/protocols/process.h"

static bool can(const superpipe_case_t *c)
{
    return c->one_piece && !superpipe_on_node(c) && !c->self;
}

static double cost(const superpipe_case_t *c)
{
    const onic_link_t *link = c->link;
    const double length = (double)c->length;

    return 2 * link->message + link->rendezvous + length * link->rndv_byte +
           c->pins * (link->pin + length * link->pin_byte);
}

static bool start(superpipe_request_t *r)
{
    superpipe_request_data_locked(r, NULL);
    return true;
}

static bool answer(superpipe_request_t *r, const superpipe_incoming_t *in)
{
    if (!onic_layout_is_contig(&r->layout))
        return superpipe_stream_row.answer(r, in);
    if (superpipe_send_fragment_locked(r, r->state.wanted - r->state.moved, ONIC_SEND_RNDV) < 0)
        superpipe_fail_locked(r, ONIC_ERR_PROC_FAILED);
    else
        superpipe_finish_locked(r);
    return true;
}

static void take(superpipe_request_t *r, const superpipe_incoming_t *in, onic_rndv_t *rndv)
{
    int rc;

    /* The sender's data is not contiguous, or is short: it comes as fragments. */
    if (rndv == NULL) {
        superpipe_stream_row.data(r, in, NULL);
        return;
    }
    rc = onic_rndv_recv(rndv, r->base + r->layout.offset + in->value, in->bytes,
                        superpipe_operation_ended, r);
    if (rc < 0) {
        superpipe_fail_locked(r, rc == OMPI_ERR_UNREACH ? ONIC_ERR_PROC_FAILED : MPI_ERR_OTHER);
        return;
    }
    r->state.in_flight += rc == 0;
    r->state.moved += in->bytes;
    superpipe_finish_locked(r);
}

const superpipe_row_t superpipe_rendezvous_row = {
    .name = "rendezvous", .can = can, .cost = cost, .start = start, .data = take, .answer = answer};
