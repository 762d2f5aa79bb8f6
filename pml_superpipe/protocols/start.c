/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file How a row starts to get the data of a receive that has its message, how it starts again
 *  after a failure, and how it ends. */
#include "pml_superpipe/protocols/process.h"

static bool start(superpipe_request_t *r, const superpipe_row_t *row, superpipe_protocol_t protocol)
{
    const uint64_t bytes = r->state.wanted;

    r->row = row;
    r->protocol = protocol;
    if (!row->start(r))
        return false;
    superpipe_count(protocol, bytes);
    return true;
}

void superpipe_fall_back_locked(superpipe_request_t *r)
{
    superpipe_counters.fallbacks++;
    (void)start(r, &superpipe_stream_row, SUPERPIPE_STREAM);
}

void superpipe_start_locked(superpipe_request_t *r, const superpipe_row_t *row,
                            superpipe_protocol_t protocol)
{
    if (!start(r, row, protocol))
        superpipe_fall_back_locked(r);
}

/* ---- what rows call ----------------------------------------------------------------------------
 */

void superpipe_fetched_locked(superpipe_request_t *r, bool good)
{
    superpipe_transfer_ended(&r->state, true);
    if (good) {
        r->state.moved += superpipe_transfer_remaining(&r->state);
        superpipe_send_control_locked(r->peer, SUPERPIPE_KIND_ACK, r->theirs, 0);
        superpipe_finish_locked(r);
    } else if (r->state.broken) {
        superpipe_fail_locked(r, MPI_ERR_OTHER);
    } else {
        superpipe_fall_back_locked(r);
    }
}

/* ---- what the sender says ---------------------------------------------------------------------
 */

void superpipe_on_data_locked(const superpipe_incoming_t *in, onic_rndv_t *rndv)
{
    superpipe_request_t *r = onic_handle_get(&superpipe.handles, in->handle);

    if (r != NULL && r->row != NULL && r->row->data != NULL &&
        superpipe_transfer_takes(&r->state, in->value, in->bytes))
        r->row->data(r, in, rndv);
}
