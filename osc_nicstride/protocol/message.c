/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/protocol/message.h"

#include <string.h>

_Static_assert(sizeof(nicstride_msg_t) == 64, "message size");

/* True if what lies behind the header has the right length. */
static bool has_length(const nicstride_msg_t *m, uint64_t behind)
{
    const bool inlined = (m->flags & NICSTRIDE_MSG_INLINE) != 0;

    if (nicstride_msg_has_ticket(m->type))
        return !inlined && behind >= NICSTRIDE_TICKET_BYTES &&
               m->layout_len == behind - NICSTRIDE_TICKET_BYTES;
    return m->layout_len <= behind && (inlined ? m->len : 0) == behind - m->layout_len;
}

/* True if no data need come with the message: it may only ask for them, or say that there are
 * none. */
static bool may_be_bare(const nicstride_msg_t *m)
{
    return m->type == NICSTRIDE_MSG_GET || m->type == NICSTRIDE_MSG_GET_ACC ||
           nicstride_msg_has_ticket(m->type) || (m->type == NICSTRIDE_MSG_REPLY && m->status != 0);
}

bool nicstride_msg_decode(const void *buf, size_t len, uint64_t payload_len, nicstride_msg_t *m,
                          const void **layout_p)
{
    if (len < sizeof(*m))
        return false;
    memcpy(m, buf, sizeof(*m));
    *layout_p = (const char *)buf + sizeof(*m);
    if (m->type == 0 || m->type >= NICSTRIDE_MSG_LAST || !has_length(m, len - sizeof(*m)))
        return false;
    if ((m->flags & NICSTRIDE_MSG_CACHED) != 0 && m->layout_len <= NICSTRIDE_LIST_NUMBER_BYTES)
        return false;
    if (m->len > UINT64_MAX - m->offset)
        return false;
    if ((m->flags & NICSTRIDE_MSG_INLINE) != 0)
        return payload_len == 0;
    return payload_len == m->len || (payload_len == 0 && may_be_bare(m));
}
