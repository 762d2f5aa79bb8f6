/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Functions that the transport calls: one handler for each kind of message, and progress. */
#include "pml_superpipe/protocols/process.h"

/** Data is for the protocol by which the receive has asked for it. */
static void on_data_locked(const superpipe_incoming_t *in, onic_rndv_t *rndv)
{
    superpipe_request_t *r = onic_handle_get(&superpipe.handles, in->handle);

    if (r != NULL && superpipe_rows[r->protocol]->data != NULL &&
        superpipe_transfer_takes(&r->state, in->value, in->bytes))
        superpipe_rows[r->protocol]->data(r, in, rndv);
}

static void handle_locked(superpipe_peer_t *p, const superpipe_incoming_t *in, onic_rndv_t *rndv)
{
    switch ((superpipe_kind_t)in->prefix.kind) {
    case SUPERPIPE_KIND_RTS:
        superpipe_on_envelope_locked(p, in);
        break;
    case SUPERPIPE_KIND_EARLY:
        superpipe_on_early_locked(p, in);
        break;
    case SUPERPIPE_KIND_CTS:
        superpipe_on_cts_locked(in);
        break;
    case SUPERPIPE_KIND_ACK:
        superpipe_on_ack_locked(in);
        break;
    default:
        on_data_locked(in, rndv);
    }
}

void superpipe_arrived(onic_peer_t *from, const void *header, size_t header_len, const void *data,
                       size_t len, onic_rndv_t *rndv)
{
    superpipe_peer_t *p = superpipe_peer_locked(from);
    superpipe_incoming_t in;

    if (p == NULL)
        onic_peer_give_up(from);
    else if (p->lost)
        return; /* the peer may be alive, but has neither credit nor transfers any more */
    else if (superpipe_decode(&in, header, header_len, data, len, rndv != NULL))
        handle_locked(p, &in, rndv);
    else
        superpipe_break_locked(p, "a process has sent a message of an unknown form");
}

int superpipe_complete_all(void)
{
    int n = 0;

    superpipe_end_lost();
    for (int p = 0; p < SUPERPIPE_ROWS; p++)
        if (superpipe_rows[p] != NULL && superpipe_rows[p]->progress != NULL)
            n += superpipe_rows[p]->progress();
    return n + superpipe_complete_finished();
}
