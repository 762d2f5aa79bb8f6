/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/protocol/message.h"

#include <stdbool.h>
#include <string.h>

_Static_assert(sizeof(nicstride_msg_t) == 64, "message size");

/* What comes in addition to the header. */
typedef enum payload {
    PAYLOAD_NONE,
    PAYLOAD_DATA,     /* len bytes */
    PAYLOAD_OPTIONAL, /* len bytes, or none if the operation only reads */
    PAYLOAD_PAIR,     /* len bytes: two values of equal size */
    PAYLOAD_REPLY,    /* len bytes, or none if status reports a failure */
    PAYLOAD_TICKET    /* a ticket behind the layout, and nothing else */
} payload_t;

/* The flags that a type may have, and what comes with it. */
typedef struct rule {
    unsigned flags;
    payload_t payload;
} rule_t;

#define SLICE  NICSTRIDE_MSG_SLICE
#define RUNS   NICSTRIDE_MSG_RUNS
#define INLINE NICSTRIDE_MSG_INLINE

#define CACHED NICSTRIDE_MSG_CACHED

/* Types that are missing here have no flags, and nothing comes with them. */
static const rule_t rules[NICSTRIDE_MSG_ROWS + 1] = {
    [NICSTRIDE_MSG_PUT] = {SLICE | RUNS | CACHED | INLINE, PAYLOAD_DATA},
    [NICSTRIDE_MSG_GET] = {SLICE | RUNS | CACHED, PAYLOAD_NONE},
    [NICSTRIDE_MSG_PUTV] = {INLINE, PAYLOAD_DATA},
    [NICSTRIDE_MSG_GETV] = {INLINE, PAYLOAD_DATA},
    [NICSTRIDE_MSG_ACC] = {SLICE | RUNS | CACHED | INLINE, PAYLOAD_DATA},
    [NICSTRIDE_MSG_GET_ACC] = {SLICE | RUNS | CACHED | INLINE, PAYLOAD_OPTIONAL},
    [NICSTRIDE_MSG_CAS] = {INLINE, PAYLOAD_PAIR},
    [NICSTRIDE_MSG_PIPE_PUT] = {SLICE | RUNS | CACHED, PAYLOAD_TICKET},
    [NICSTRIDE_MSG_PIPE_GET] = {SLICE | RUNS | CACHED, PAYLOAD_TICKET},
    [NICSTRIDE_MSG_PIPE_ACC] = {SLICE | RUNS | CACHED, PAYLOAD_TICKET},
    [NICSTRIDE_MSG_REPLY] = {INLINE, PAYLOAD_REPLY},
    [NICSTRIDE_MSG_LOCK] = {INLINE, PAYLOAD_DATA},
    [NICSTRIDE_MSG_KEYS] = {INLINE, PAYLOAD_DATA},
    [NICSTRIDE_MSG_ROWS] = {INLINE, PAYLOAD_DATA},
};

static inline const rule_t *rule_of(unsigned type)
{
    return &rules[type < NICSTRIDE_MSG_ROWS ? type : NICSTRIDE_MSG_ROWS];
}

/* Checks the values that locate bytes, or that are added to. */
static inline const char *check_values(const nicstride_msg_t *m)
{
    if ((m->flags & ~rule_of(m->type)->flags) != 0)
        return "a flag that this type does not use";
    if ((m->flags & CACHED) != 0 &&
        (m->layout_len <= NICSTRIDE_LAYOUT_ID_BYTES || (m->flags & SLICE) != 0))
        return "a name of no list";

    if (m->len > UINT64_MAX - m->offset)
        return "offset and length overflow";
    return NULL;
}

static inline const char *check_payload(const nicstride_msg_t *m, payload_t kind,
                                        uint64_t payload_len)
{
    const bool inlined = (m->flags & INLINE) != 0;
    const uint64_t beside = payload_len;
    bool right;
    if (inlined && payload_len != 0)
        return "a payload inside and another beside the header";
    if (inlined)
        payload_len = m->len;
    right = payload_len == m->len;

    switch (kind) {
    case PAYLOAD_NONE:
        right = payload_len == 0;
        break;
    case PAYLOAD_DATA:
        break;
    case PAYLOAD_OPTIONAL:
        right = right || payload_len == 0;
        break;
    case PAYLOAD_PAIR:
        right = right && payload_len > 0 && payload_len % 2 == 0;
        break;
    case PAYLOAD_REPLY:
        if (m->status != 0)
            right = !inlined && payload_len == 0;
        break;
    case PAYLOAD_TICKET:
        right = beside == 0 && m->len > 0;
        break;
    }
    return right ? NULL : "the payload does not have the length that the header says";
}

/* True if what lies behind the header has the right length. */
static inline bool has_length(const nicstride_msg_t *m, uint64_t behind)
{
    if (nicstride_msg_has_ticket(m->type))
        return behind >= NICSTRIDE_TICKET_BYTES && m->layout_len == behind - NICSTRIDE_TICKET_BYTES;
    if ((m->flags & INLINE) == 0)
        return m->layout_len == behind;
    return m->layout_len <= behind && m->len == behind - m->layout_len;
}

const char *nicstride_msg_decode(const void *buf, size_t len, uint64_t payload_len,
                                 nicstride_msg_t *m, const void **layout_p)
{
    const char *why;

    if (len < sizeof(*m))
        return "shorter than a header";
    memcpy(m, buf, sizeof(*m));
    *layout_p = (const char *)buf + sizeof(*m);
    if (m->type == 0 || m->type >= NICSTRIDE_MSG_LAST)
        return "unknown type";
    if (!has_length(m, len - sizeof(*m)))
        return "layout and payload do not have the length that the header says";
    why = check_values(m);
    return why != NULL ? why : check_payload(m, rule_of(m->type)->payload, payload_len);
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
