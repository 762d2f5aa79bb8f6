/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file How a row starts to get the data of a receive that has its message, how it starts again
 *  after a failure, and how it ends. */
#include "pml_superpipe/protocols/process.h"

static bool start(superpipe_request_t *r, superpipe_protocol_t protocol)
{
    const uint64_t bytes = r->state.wanted;

    r->protocol = protocol;
    if (!superpipe_rows[protocol]->start(r))
        return false;
    superpipe_count(protocol, bytes);
    return true;
}

/** Starts again as a stream, because the protocol has failed. */
static void fall_back(superpipe_request_t *r)
{
    superpipe_counters.fallbacks++;
    (void)start(r, SUPERPIPE_STREAM);
}

void superpipe_start_locked(superpipe_request_t *r, superpipe_protocol_t protocol)
{
    if (!start(r, protocol))
        fall_back(r);
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
        fall_back(r);
    }
}

/* ---- what the sender says ---------------------------------------------------------------------
 */

void superpipe_on_data_locked(const superpipe_incoming_t *in, onic_rndv_t *rndv)
{
    superpipe_request_t *r = onic_handle_get(&superpipe.handles, in->handle);

    if (r != NULL && superpipe_rows[r->protocol]->data != NULL &&
        superpipe_transfer_takes(&r->state, in->value, in->bytes))
        superpipe_rows[r->protocol]->data(r, in, rndv);
}
