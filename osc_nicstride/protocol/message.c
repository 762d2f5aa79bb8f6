/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The messages; see message.h. */
#include "osc_nicstride/protocol/message.h"

#include <stdbool.h>
#include <string.h>

#include "osc_nicstride/protocol/lockq.h"
#include "osc_nicstride/protocol/compact.h"

_Static_assert(sizeof(nicstride_msg_t) == 64, "message size");

/* The fields that a type may use beside magic, type, win and origin. All others are 0. */
enum {
    F_STATUS = 1 << 0,
    F_OP = 1 << 1,
    F_DTYPE = 1 << 2,
    F_LAYOUT = 1 << 3,
    F_DISP = 1 << 4,
    F_OFFSET = 1 << 5,
    F_LEN = 1 << 6,
    F_HANDLE = 1 << 7, /* and it is not 0 */
    F_COUNT = 1 << 8,
    F_RNDV = 1 << 9, /* the flags of these names */
    F_SLICE = 1 << 10,
    F_INLINE = 1 << 11,
    F_SLOTS = 1 << 12
};

/* What comes beside the header. */
typedef enum payload {
    PAYLOAD_NONE,
    PAYLOAD_DATA,     /* len bytes */
    PAYLOAD_OPTIONAL, /* len bytes, or none where the operation reads only */
    PAYLOAD_PAIR,     /* len bytes: two values of equal size */
    PAYLOAD_REPLY     /* len bytes, or none where status says that it failed */
} payload_t;

typedef struct rule {
    unsigned fields;
    payload_t payload;
} rule_t;

/* What a transfer says of the target's bytes; `count` asks for an acknowledgement. */
#define F_TARGET (F_LAYOUT | F_DISP | F_OFFSET | F_LEN | F_SLICE | F_COUNT)

/* What a reply says; `count` acknowledges. */
#define F_REPLY (F_STATUS | F_OFFSET | F_LEN | F_HANDLE | F_INLINE | F_COUNT)

static const rule_t rules[NICSTRIDE_MSG_LAST] = {
    [NICSTRIDE_MSG_PUT] = {F_TARGET | F_RNDV | F_INLINE | F_SLOTS, PAYLOAD_DATA},
    [NICSTRIDE_MSG_GET] = {F_TARGET | F_RNDV | F_HANDLE | F_SLOTS, PAYLOAD_NONE},
    [NICSTRIDE_MSG_GET_DATA] = {F_REPLY | F_RNDV, PAYLOAD_REPLY},
    [NICSTRIDE_MSG_ACC] = {F_TARGET | F_OP | F_DTYPE | F_INLINE | F_SLOTS, PAYLOAD_DATA},
    [NICSTRIDE_MSG_GET_ACC] = {F_TARGET | F_OP | F_DTYPE | F_HANDLE | F_INLINE, PAYLOAD_OPTIONAL},
    [NICSTRIDE_MSG_CAS] = {F_DISP | F_LEN | F_DTYPE | F_HANDLE | F_COUNT | F_INLINE, PAYLOAD_PAIR},
    [NICSTRIDE_MSG_ACC_DATA] = {F_REPLY, PAYLOAD_REPLY},
    [NICSTRIDE_MSG_FLUSH] = {F_COUNT | F_LEN | F_OFFSET, PAYLOAD_NONE},
    [NICSTRIDE_MSG_ACK] = {F_STATUS | F_COUNT | F_DISP | F_OFFSET | F_OP, PAYLOAD_NONE},
    [NICSTRIDE_MSG_LOCK] = {F_OP | F_COUNT, PAYLOAD_NONE},
    [NICSTRIDE_MSG_GRANT] = {F_STATUS | F_COUNT, PAYLOAD_NONE},
    [NICSTRIDE_MSG_UNLOCK] = {0, PAYLOAD_NONE},
    [NICSTRIDE_MSG_POST] = {0, PAYLOAD_NONE},
    [NICSTRIDE_MSG_COMPLETE] = {F_COUNT, PAYLOAD_NONE},
    [NICSTRIDE_MSG_REFUSED] = {0, PAYLOAD_NONE},
    [NICSTRIDE_MSG_FENCE] = {F_STATUS | F_OP | F_DTYPE | F_COUNT, PAYLOAD_NONE},
};

static const char other_order[] = "the sender has another byte order";

static const char *check_magic(uint16_t magic)
{
    if (magic == NICSTRIDE_MSG_MAGIC)
        return NULL;
    if (magic == __builtin_bswap16(NICSTRIDE_MSG_MAGIC))
        return other_order;
    return "not a message of this component";
}

/* The fields that are not 0. */
static inline unsigned fields_set(const nicstride_msg_t *m)
{
    return (m->status != 0 ? F_STATUS : 0u) | (m->op != 0 ? F_OP : 0u) |
           (m->dtype != 0 ? F_DTYPE : 0u) | (m->layout_len != 0 ? F_LAYOUT : 0u) |
           (m->disp != 0 ? F_DISP : 0u) | (m->offset != 0 ? F_OFFSET : 0u) |
           (m->len != 0 ? F_LEN : 0u) | (m->handle != 0 ? F_HANDLE : 0u) |
           (m->count != 0 ? F_COUNT : 0u) | ((m->flags & NICSTRIDE_MSG_RNDV) != 0 ? F_RNDV : 0u) |
           ((m->flags & NICSTRIDE_MSG_SLICE) != 0 ? F_SLICE : 0u) |
           ((m->flags & NICSTRIDE_MSG_INLINE) != 0 ? F_INLINE : 0u) |
           ((m->flags & NICSTRIDE_MSG_SLOTS) != 0 ? F_SLOTS : 0u);
}

static inline const char *check_fields(const nicstride_msg_t *m, unsigned allowed)
{
    const unsigned set = fields_set(m);

    if ((m->flags & ~(NICSTRIDE_MSG_RNDV | NICSTRIDE_MSG_SLICE | NICSTRIDE_MSG_INLINE |
                      NICSTRIDE_MSG_SLOTS)) != 0)
        return "unknown flags";
    if ((set & ~allowed) != 0)
        return "a field is set that this type does not use";
    if ((set & F_SLICE) != 0 && (set & F_LAYOUT) == 0)
        return "a slice of no layout";
    if (((set & F_INLINE) != 0) + ((set & F_RNDV) != 0) + ((set & F_SLOTS) != 0) > 1)
        return "data in more than one place";
    if ((allowed & ~set & F_HANDLE) != 0)
        return "no handle";
    if (m->status < 0)
        return "status is not an error class";
    if (m->len > UINT64_MAX - m->offset)
        return "offset and length overflow";
    return NULL;
}

static inline const char *check_values(const nicstride_msg_t *m)
{
    const unsigned lock = m->op & ~NICSTRIDE_LOCK_COMPANY;

    if (m->type == NICSTRIDE_MSG_LOCK && lock != NICSTRIDE_LOCK_SHARED &&
        lock != NICSTRIDE_LOCK_EXCLUSIVE)
        return "unknown lock type";
    if (m->type == NICSTRIDE_MSG_LOCK && lock == NICSTRIDE_LOCK_EXCLUSIVE && m->count != 0)
        return "an exclusive lock of MPI_Win_lock_all";
    if (m->type == NICSTRIDE_MSG_LOCK && m->count > INT64_MAX)
        return "a time beyond all times";
    if (m->type == NICSTRIDE_MSG_GRANT && m->count > INT32_MAX)
        return "not a rank";
    return NULL;
}

static inline const char *check_payload(const nicstride_msg_t *m, payload_t kind,
                                        uint64_t payload_len)
{
    const bool inlined = (m->flags & NICSTRIDE_MSG_INLINE) != 0;
    const bool slots = (m->flags & NICSTRIDE_MSG_SLOTS) != 0;
    bool right;

    if (slots && (payload_len != 0 || m->len == 0))
        return "a payload beside a ticket, or a ticket for nothing";
    if (slots)
        return NULL;
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
            right = !inlined && payload_len == 0 && (m->flags & NICSTRIDE_MSG_RNDV) == 0;
        break;
    }
    return right ? NULL : "the payload does not have the length that the header says";
}

/* Is what lies behind the header of the right length? */
static inline bool has_length(const nicstride_msg_t *m, uint64_t behind)
{
    if ((m->flags & NICSTRIDE_MSG_SLOTS) != 0)
        return behind >= NICSTRIDE_TICKET_BYTES && m->layout_len == behind - NICSTRIDE_TICKET_BYTES;
    if ((m->flags & NICSTRIDE_MSG_INLINE) == 0)
        return m->layout_len == behind;
    return m->layout_len <= behind && m->len == behind - m->layout_len;
}

/* Checks all but the form. Inlined, since much is known of the short form beforehand. */
__attribute__((always_inline)) static inline const char *
check(const nicstride_msg_t *m, uint64_t behind, uint64_t payload_len)
{
    if (m->type == 0 || m->type >= NICSTRIDE_MSG_LAST)
        return "unknown type";
    if (!has_length(m, behind))
        return "layout and payload do not have the length that the header says";

    const rule_t *rule = &rules[m->type];
    const char *why = check_fields(m, rule->fields);

    if (why == NULL)
        why = check_values(m);
    if (why == NULL)
        why = check_payload(m, rule->payload, payload_len);
    return why;
}

const char *nicstride_msg_decode(const void *buf, size_t len, uint64_t payload_len,
                                 nicstride_msg_t *m, const void **layout_p)
{
    const size_t header = nicstride_msg_lengthen(buf, len, m);
    const char *why;

    *layout_p = (const char *)buf + header;
    if (header > 0)
        return check(m, len - header, payload_len);
    if (len > 0 && (*(const uint8_t *)buf & NICSTRIDE_SHORT_MASK) == NICSTRIDE_SHORT_SWAPPED)
        return other_order;
    if (len < sizeof(*m))
        return "shorter than a header";
    memcpy(m, buf, sizeof(*m));
    why = check_magic(m->magic);
    if (why != NULL)
        return why;
    *layout_p = (const char *)buf + sizeof(*m);
    return check(m, len - sizeof(*m), payload_len);
}
