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

/* ---- keys ------------------------------------------------------------------------------------ */

/** What precedes the bytes of a blob. */
typedef struct blob_head {
    uint16_t row, len;
} blob_head_t;

_Static_assert(sizeof(blob_head_t) == NICSTRIDE_BLOB_HEAD, "no gaps");

void *nicstride_keys_room(nicstride_keys_t *k, size_t *cap_p)
{
    const size_t left = sizeof(k->bytes) - k->len;

    *cap_p = left > sizeof(blob_head_t) ? left - sizeof(blob_head_t) : 0;
    return *cap_p > 0 ? k->bytes + k->len + sizeof(blob_head_t) : NULL;
}

void nicstride_keys_add(nicstride_keys_t *k, unsigned row, size_t len)
{
    const blob_head_t head = {(uint16_t)row, (uint16_t)len};

    if (len == 0)
        return;
    memcpy(k->bytes + k->len, &head, sizeof(head));
    k->len += sizeof(head) + len;
}

bool nicstride_keys_next(const void *bytes, size_t len, size_t *at_p, nicstride_blob_t *blob)
{
    const unsigned char *at = (const unsigned char *)bytes + *at_p;
    blob_head_t head;

    if (len - *at_p < sizeof(head))
        return false;
    memcpy(&head, at, sizeof(head));
    if (head.len == 0 || head.len > len - *at_p - sizeof(head))
        return false;
    *blob = (nicstride_blob_t){head.row, at + sizeof(head), head.len};
    *at_p += sizeof(head) + head.len;
    return true;
}
