/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Protocol eager: a short message is sent with its envelope. The sender chooses it. */
#include "pml_superpipe/protocols/process.h"

static superpipe_short_t header_of(ompi_communicator_t *comm, int tag)
{
    return (superpipe_short_t){.sender = onic_transport_me(),
                               .context = ONIC_COMM_INDEX(comm),
                               .source = ompi_comm_rank(comm),
                               .tag = tag};
}

bool superpipe_send_now_locked(ompi_communicator_t *comm, superpipe_peer_t *p, int tag,
                               const void *base, const onic_layout_t *layout)
{
    const uint64_t bytes = layout->size, cost = SUPERPIPE_RECORD + bytes;
    onic_payload_t data;

    if (onic_credit_left(&p->account->credit, ONIC_CREDIT_FLOOR) < cost || bytes > p->short_most)
        return false;
    const superpipe_short_t h = header_of(comm, tag);
    data.base = base;
    data.len = bytes;
    if (onic_layout_is_contig(layout)) {
        data.base = (const char *)base + layout->offset;
        data.cursor.layout = NULL;
    } else {
        onic_cursor_init(&data.cursor, layout, 0);
    }
    if (!onic_peer_send_now(p->peer, ONIC_AM_SHORT, &h, sizeof(h), &data))
        return false;
    (void)onic_credit_take(&p->account->credit, cost, ONIC_CREDIT_FLOOR);
    return true;
}

int superpipe_eager_send_locked(superpipe_request_t *r)
{
    const superpipe_short_t h = header_of(r->comm, r->tag);

    superpipe_transfer_sent_whole(&r->state);
    return superpipe_send_header_locked(r, ONIC_AM_SHORT, &h, sizeof(h), r->state.length);
}

const superpipe_row_t superpipe_eager_row = {.name = "eager"};
