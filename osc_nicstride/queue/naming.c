/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Sending lists of blocks to targets, to name them there; see naming.h. */
#include "osc_nicstride/queue/naming.h"

#include <stdlib.h>

/** False where there is none, or it cannot be sent. */
static bool send_piece(nicstride_peer_t *p)
{
    struct {
        nicstride_msg_t msg;
        unsigned char layout[8192];
    } piece;
    size_t room = onic_wire_header_max() - sizeof(piece.msg);

    room = room < sizeof(piece.layout) ? room : sizeof(piece.layout);
    nicstride_msg_init(&piece.msg, NICSTRIDE_MSG_LIST, p->win, p->me);
    if (p->failed || !nicstride_names_piece(p->names, &piece.msg, piece.layout, room))
        return false;
    nicstride_add(&nicstride_counters.list_bytes, piece.msg.layout_len);
    nicstride_send_header_locked(p, &piece.msg);
    return true;
}

void nicstride_naming_used_locked(nicstride_peer_t *p, const onic_layout_t *l)
{
    if (!nicstride_is_nameable(l))
        return;
    if (p->names == NULL)
        p->names = calloc(1, sizeof(*p->names));
    if (p->names != NULL && nicstride_names_use(p->names, l))
        (void)send_piece(p);
}

size_t nicstride_naming_describe_locked(const nicstride_peer_t *p, const onic_layout_t *l,
                                        unsigned char buf[ONIC_LAYOUT_ENCODED_MAX])
{
    nicstride_name_t name;

    /* What is held back with a lock could be sent behind the word that the name is not used. */
    if (p->names == NULL || p->lock.lazy != NULL || !nicstride_is_nameable(l) ||
        !nicstride_names_find(p->names, l, &name))
        return 0;
    nicstride_add(&nicstride_counters.lists_named, 1);
    return nicstride_name_encode(&name, l, buf);
}

bool nicstride_naming_holds_locked(const nicstride_peer_t *p, const nicstride_msg_t *msg,
                                   const void *layout)
{
    if ((msg->flags & NICSTRIDE_MSG_NAMED) == 0)
        return true;
    const nicstride_name_t name = nicstride_name_decode(layout);
    return p->lock.lazy == NULL && nicstride_names_valid(p->names, &name);
}

void nicstride_on_answer(const nicstride_incoming_t *in)
{
    if (in->p->names == NULL)
        return;
    nicstride_names_answer(in->p->names, in->msg);
    while (nicstride_names_may_send(in->p->names) && send_piece(in->p))
        ;
}

/* ---- at the target --------------------------------------------------------------------------- */

static void answer(nicstride_peer_t *p, const nicstride_name_t *name, nicstride_answer_t what)
{
    nicstride_msg_t msg;

    nicstride_msg_init(&msg, NICSTRIDE_MSG_ANSWER, p->win, p->me);
    msg.op = (uint16_t)name->slot;
    msg.len = name->number;
    msg.handle = name->hash;
    msg.dtype = (uint16_t)what;
    nicstride_send_header_locked(p, &msg);
}

void nicstride_on_list(const nicstride_incoming_t *in)
{
    const nicstride_name_t name = {
        .hash = in->msg->handle, .slot = in->msg->op, .number = (uint32_t)in->msg->len};
    nicstride_answer_t what = NICSTRIDE_LIST_NO;

    if (in->p->listed == NULL)
        in->p->listed = calloc(1, sizeof(*in->p->listed));
    if (in->p->listed != NULL)
        what =
            nicstride_lists_piece(&nicstride_component.lists, in->p->listed, in->msg, in->layout);
    answer(in->p, &name, what);
    if (what == NICSTRIDE_LIST_HAD)
        nicstride_add(&nicstride_counters.lists_had, 1);
}

nicstride_list_t *nicstride_named_list(const nicstride_peer_t *p, const nicstride_msg_t *msg,
                                       const void *layout)
{
    if ((msg->flags & NICSTRIDE_MSG_NAMED) == 0 || p->listed == NULL)
        return NULL;
    const nicstride_name_t name = nicstride_name_decode(layout);
    return nicstride_lists_find(p->listed, &name);
}
