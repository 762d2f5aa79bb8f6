/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/queue/describe.h"

#include <stdlib.h>
#include <string.h>

#include "osc_nicstride/window/state.h"

/* ---- the ids of lists ------------------------------------------------------------------------ */

uint32_t nicstride_list_used_locked(nicstride_peer_t *p, const onic_layout_t *l)
{
    if (!nicstride_may_be_cached(l))
        return 0;
    if (p->sent == NULL)
        p->sent = calloc(1, sizeof(*p->sent));
    return p->sent != NULL ? nicstride_layout_used(p->sent, onic_layout_number(l)) : 0;
}

bool nicstride_list_is_due_locked(const nicstride_peer_t *p, const onic_layout_t *l)
{
    return nicstride_may_be_cached(l) && p->sent != NULL &&
           nicstride_layout_is_due(p->sent, onic_layout_number(l));
}

bool nicstride_list_is_known_locked(const nicstride_peer_t *p, const nicstride_msg_t *msg,
                                    const void *layout)
{
    nicstride_layout_id_t id;

    if ((msg->flags & NICSTRIDE_MSG_CACHED) == 0)
        return true;
    memcpy(&id, layout, sizeof(id));
    return nicstride_layout_is(p->sent, id.number, NICSTRIDE_LAYOUT_KNOWN);
}

/* ---- layouts --------------------------------------------------------------------------------- */

/** Writes the id of the layout's list, if the target has the list, and the levels around it.
 *  Returns the bytes written, or 0. */
static size_t put_id(const nicstride_peer_t *p, const onic_layout_t *l, unsigned char *layout)
{
    nicstride_layout_id_t id = {0};

    if (nicstride_may_be_cached(l) && p->sent != NULL)
        id.number = nicstride_layout_find(p->sent, onic_layout_number(l));
    if (id.number == 0)
        return 0;
    memcpy(layout, &id, sizeof(id));
    return sizeof(id) + onic_layout_encode_around(l, layout + sizeof(id));
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
    } else if ((used = put_id(p, l, layout)) > 0) {
        nicstride_add(&nicstride_counters.lists_named, 1);
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

bool nicstride_describe(nicstride_framed_t *f, const nicstride_transfer_t *t)
{
    const onic_layout_t *l = &t->target;
    const bool may_be_cached = nicstride_may_be_cached(l);
    uint64_t described = 0;
    onic_cursor_t all;
    size_t used = 0;
    bool whole, due = false;

    f->msg.disp = t->disp;
    if (may_be_cached) {
        onic_transport_lock();
        due = nicstride_list_is_due_locked(t->peer, l);
    }
    whole = !due && nicstride_describe_whole(t->peer, l, &f->msg, sizeof(f->layout), l->size);
    if (may_be_cached)
        onic_transport_unlock();
    if (whole || due)
        return whole;
    onic_cursor_init(&all, l, 0);
    if (onic_layout_encode_slice(&all, l->size, t->granule, f->layout, sizeof(f->layout), &used,
                                 &described) != ONIC_LAYOUT_OK ||
        described != l->size)
        return false;
    f->msg.flags |= NICSTRIDE_MSG_SLICE;
    f->msg.layout_len = (uint32_t)used;
    return true;
}
