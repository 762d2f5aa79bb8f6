/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/queue/describe.h"

#include <stdlib.h>
#include <string.h>

#include "osc_nicstride/window/state.h"

/* ---- lists ----------------------------------------------------------------------------------- */

/** The number by which the target may cache the layout's list; 0: it does not. */
static uint64_t number_of(const onic_layout_t *l)
{
    return l->nruns >= NICSTRIDE_LAYOUT_CACHE_RUNS ? onic_layout_number(l) : 0;
}

void nicstride_tell_list_locked(nicstride_peer_t *p, const onic_layout_t *l)
{
    const uint64_t number = number_of(l);
    onic_layout_t list = *l;
    onic_cursor_t c;
    struct {
        nicstride_msg_t msg;
        unsigned char layout[4096];
    } f;
    size_t cap = onic_header_max - sizeof(f.msg);

    if (number != 0 && p->sent == NULL)
        p->sent = calloc(1, sizeof(*p->sent));
    if (number == 0 || p->sent == NULL || p->failed ||
        !nicstride_layout_send(p->sent, number, l->nruns))
        return;
    cap = cap < sizeof(f.layout) ? cap : sizeof(f.layout);
    list.size = l->run_start[l->nruns];
    list.nlevels = 0;
    list.offset = 0;
    for (onic_cursor_init(&c, &list, 0); c.pos < list.size;) {
        uint64_t data;
        size_t len;

        if (onic_layout_encode_slice(&c, list.size, 1, f.layout, cap, &len, &data) !=
            ONIC_LAYOUT_OK)
            return;
        f.msg = nicstride_note(p, NICSTRIDE_MSG_LAYOUT, c.pos == list.size, number);
        f.msg.offset = c.pos - data;
        f.msg.layout_len = (uint32_t)len;
        nicstride_send_header_locked(p, &f.msg);
    }
}

/* ---- layouts --------------------------------------------------------------------------------- */

/** Writes the number of the layout's list, if the target has that, and the levels around it.
 *  Returns the bytes written, or 0. */
static size_t put_number(const nicstride_peer_t *p, const onic_layout_t *l, unsigned char *layout)
{
    const uint64_t number = number_of(l);

    if (number == 0 || p->sent == NULL || !nicstride_layout_is_sent(p->sent, number))
        return 0;
    memcpy(layout, &number, sizeof(number));
    return sizeof(number) + onic_layout_encode_around(l, layout + sizeof(number));
}

bool nicstride_describe_whole(const nicstride_peer_t *p, const onic_layout_t *l,
                              nicstride_msg_t *msg, size_t cap, uint64_t room)
{
    unsigned char *layout = (unsigned char *)(msg + 1);
    size_t used = 0;

    if (onic_layout_is_contig(l)) {
        msg->disp += l->offset;
    } else if (l->nruns == 0) {
        (void)onic_layout_encode(l, layout, ONIC_LAYOUT_ENCODED_MAX, &used);
    } else if ((used = put_number(p, l, layout)) > 0) {
        onic_count(&nicstride_counters.lists_named, 1);
        msg->flags |= NICSTRIDE_MSG_CACHED;
    } else if (l->nlevels > 0 && l->run_start[l->nruns] <= room &&
               onic_layout_encode(l, layout, cap, &used) == ONIC_LAYOUT_OK) {
        msg->flags |= NICSTRIDE_MSG_RUNS;
    } else {
        return false;
    }
    msg->layout_len = (uint32_t)used;
    return true;
}

bool nicstride_describe_locked(nicstride_framed_t *f, const nicstride_transfer_t *t)
{
    const onic_layout_t *l = &t->target;
    uint64_t described = 0;
    onic_cursor_t all;
    size_t used = 0;

    f->msg.disp = t->disp;
    if (nicstride_describe_whole(t->peer, l, &f->msg, sizeof(f->layout), l->size))
        return true;
    onic_cursor_init(&all, l, 0);
    if (onic_layout_encode_slice(&all, l->size, t->granule, f->layout, sizeof(f->layout), &used,
                                 &described) != ONIC_LAYOUT_OK ||
        described != l->size)
        return false;
    f->msg.flags |= NICSTRIDE_MSG_SLICE;
    f->msg.layout_len = (uint32_t)used;
    return true;
}
