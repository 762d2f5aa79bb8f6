/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file How a receive ends whose data a row has fetched, and how it starts again as a stream. */
#include "pml_superpipe/protocols/process.h"

void superpipe_fall_back_locked(superpipe_request_t *r)
{
    const uint64_t bytes = r->state.wanted;

    superpipe_counters.fallbacks++;
    r->protocol = SUPERPIPE_STREAM;
    if (superpipe_stream_row.start(r))
        superpipe_count(SUPERPIPE_STREAM, bytes);
}

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
