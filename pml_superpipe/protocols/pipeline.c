/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Protocol pipeline: the superpipeline, through receive buffers of the receiver. */
#include "pml_superpipe/protocols/process.h"

#include <math.h>
#include <string.h>

#include "common/model/pipeline.h"
#include "common/pipeline/core/chunks.h"

static bool can(const superpipe_case_t *c)
{
    return !c->self && (c->peer != NULL ? onic_pipeline_reaches_locked(c->peer)
                                        : c->kind != ONIC_NET && onic_pipeline_rx_bytes() > 0);
}

/** Both ends gather and scatter at the same time, so the slower end counts. */
static double cost(const superpipe_case_t *c)
{
    const onic_link_t *link = c->link;

    if (c->costs != NULL)
        return superpipe_way_cost(c, ONIC_WAY_pipeline);
    const double sender = superpipe_gather(link, c->length, c->send_block);
    const double receiver = superpipe_gather(link, c->length, c->receive_block);
    const onic_chunks_t chunks =
        onic_schedule_chunks(onic_schedule_best(c->schedule, false), link, c->slot);

    return link->message + (sender > receiver ? sender : receiver) +
           onic_superpipeline_time_blocks(link, &chunks, (double)c->length,
                                          fmin(onic_schedule_block(link, c->length), c->slot));
}

/** Describes the bytes after the early ones. The layout is duplicated: a stream needs the original
 *  if the pipeline fails. */
static void describe(superpipe_request_t *r, onic_pipeline_end_t *end)
{
    *end = (onic_pipeline_end_t){.at = r->state.early,
                                 .len = superpipe_transfer_remaining(&r->state),
                                 .base = r->base,
                                 .done = superpipe_moved,
                                 .arg = r};
    onic_layout_dup(&end->layout, &r->layout);
}

/** Leases receive buffers, and requests the data into them. */
static bool start(superpipe_request_t *r)
{
    onic_pipeline_end_t end;
    onic_ticket_t ticket;

    describe(r, &end);
    r->move = onic_pipeline_expect_locked(r->peer->peer, &end, &ticket);
    if (r->move == NULL) {
        onic_layout_fini(&end.layout);
        return false;
    }
    r->state.moving = true;
    superpipe_request_data_locked(r, &ticket);
    return true;
}

/** The sender cannot use the buffers, and sends a stream. */
static void take(superpipe_request_t *r, const superpipe_incoming_t *in, onic_rndv_t *rndv)
{
    /* Or else the pipeline is about to call back. */
    if (!r->state.moving || !onic_pipeline_withdraw_locked(r->move))
        return;
    r->move = NULL;
    r->state.moving = false;
    r->protocol = SUPERPIPE_STREAM;
    superpipe_counters.fallbacks++;
    superpipe_stream_row.data(r, in, rndv);
}

/** False if the buffers cannot be mapped, or, between hosts, their place is not known yet. */
static bool answer(superpipe_request_t *r, const superpipe_incoming_t *in)
{
    onic_pipeline_end_t end;
    onic_ticket_t ticket;

    memcpy(&ticket, in->cts.ticket, sizeof(ticket));
    if (ticket.len != superpipe_transfer_remaining(&r->state))
        return false;
    describe(r, &end);
    if (onic_pipeline_answer_locked(r->peer->peer, &ticket, &end) != OMPI_SUCCESS) {
        onic_layout_fini(&end.layout);
        return false;
    }
    r->state.moving = true;
    return true;
}

static void cancel(superpipe_request_t *r)
{
    onic_pipeline_cancel_locked(r);
}

const superpipe_row_t superpipe_pipeline_row = {.name = "pipeline",
                                                .can = can,
                                                .cost = cost,
                                                .start = start,
                                                .data = take,
                                                .answer = answer,
                                                .cancel = cancel};
