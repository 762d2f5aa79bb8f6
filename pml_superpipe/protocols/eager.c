/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Protocol eager: a short message is sent with its envelope. The sender chooses it. */
#include "pml_superpipe/protocols/process.h"

#include <string.h>

onic_sent_t superpipe_send_now_locked(superpipe_channel_t *c, superpipe_peer_t *p, int rank,
                                      int tag, const void *base, const onic_layout_t *layout)
{
    const uint64_t bytes = layout->size, cost = SUPERPIPE_RECORD + bytes;
    uint32_t *sequence = &c->match.sent[rank];
    onic_payload_t data;
    onic_sent_t sent;

    if (p->my_number == 0 || onic_credit_left(&p->account->credit, ONIC_CREDIT_FLOOR) < cost ||
        bytes > p->short_most)
        return ONIC_SENT_NOT;
    const superpipe_short_t h = {.sender = p->my_number,
                                 .context = (uint32_t)c->match.context,
                                 .source = ompi_comm_rank(c->comm),
                                 .tag = tag,
                                 .sequence = *sequence};
    data.base = base;
    data.len = bytes;
    if (onic_layout_is_contig(layout)) {
        data.base = (const char *)base + layout->offset;
        data.cursor.layout = NULL;
    } else {
        onic_cursor_init(&data.cursor, layout, 0);
    }
    sent = onic_peer_send_now(p->peer, ONIC_AM_SHORT, &h, sizeof(h), &data);
    if (sent != ONIC_SENT_NOT) {
        (void)onic_credit_take(&p->account->credit, cost, ONIC_CREDIT_FLOOR);
        ++*sequence;
    }
    return sent;
}

int superpipe_eager_send_locked(superpipe_request_t *r, const superpipe_channel_t *c,
                                uint32_t sequence)
{
    const bool waits = r->mode == MCA_PML_BASE_SEND_SYNCHRONOUS;
    const superpipe_envelope_t e = superpipe_envelope(SUPERPIPE_KIND_EAGER, c, r->tag,
                                                      waits ? SUPERPIPE_SYNCHRONOUS : 0, sequence);
    unsigned char header[sizeof(e) + sizeof(r->handle)];

    memcpy(header, &e, sizeof(e));
    if (waits && (r->handle = onic_handle_new(&superpipe.handles, r)) == 0)
        return OMPI_ERR_OUT_OF_RESOURCE;
    memcpy(header + sizeof(e), &r->handle, sizeof(r->handle));
    superpipe_transfer_sent_whole(&r->state, waits);
    onic_cursor_init(&r->cursor, &r->layout, 0);
    return superpipe_send_header_locked(r, header, sizeof(e) + (waits ? sizeof(r->handle) : 0),
                                        true);
}

const superpipe_row_t superpipe_eager_row = {.name = "eager"};
