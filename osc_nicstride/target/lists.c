/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Lists of blocks that peers send, to name them later (protocol/lists.h). */
#include <stdlib.h>

#include "osc_nicstride/protocol/lists.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/target/target.h"
#include "osc_nicstride/window/state.h"

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

struct nicstride_list *nicstride_named_list(const nicstride_peer_t *p, const nicstride_msg_t *msg,
                                            const void *layout)
{
    if ((msg->flags & NICSTRIDE_MSG_NAMED) == 0 || p->listed == NULL)
        return NULL;
    const nicstride_name_t name = nicstride_name_decode(layout);
    return nicstride_lists_find(p->listed, &name);
}
