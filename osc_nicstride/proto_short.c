/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The short form of a header; see proto_short.h. */
#include "osc_nicstride/proto_short.h"

#include <string.h>

#include "osc_nicstride/handle.h"

/** As it travels. Fields as in the long form, if not said otherwise. */
typedef struct short_msg {
    uint8_t kind; /**< NICSTRIDE_SHORT_MARK, perhaps INLINED, and the type */
    uint8_t op;
    uint8_t dtype;
    uint8_t len; /**< 0 where the data lies behind: then it is what is left of the message */
    uint16_t win;
    uint16_t origin;
    uint32_t disp;
    uint32_t handle; /**< generation, then eight bits of the slot */
    uint32_t count;
} short_msg_t;

/** The rest of the first byte. */
enum { INLINED = 0x20, TYPE_MASK = 0x1f };

_Static_assert(sizeof(short_msg_t) == NICSTRIDE_SHORT_SIZE, "no gaps");
_Static_assert(NICSTRIDE_MSG_LAST <= TYPE_MASK + 1, "room for the type");
_Static_assert((NICSTRIDE_MSG_MAGIC & 0x80) == 0 && (NICSTRIDE_MSG_MAGIC >> 8 & 0x80) == 0,
               "the forms differ in their first byte, in either byte order");
_Static_assert(NICSTRIDE_GENERATION_MAX <= UINT32_MAX >> 8, "a generation and a slot are a word");

size_t nicstride_msg_shorten(const nicstride_msg_t *m, unsigned char out[NICSTRIDE_SHORT_SIZE])
{
    const bool inlined = m->flags == NICSTRIDE_MSG_INLINE;
    const uint64_t len = inlined ? 0 : m->len;
    const uint64_t slot = (uint32_t)m->handle, generation = m->handle >> 32;
    const uint64_t too_long = m->layout_len | m->offset | (uint32_t)m->status | m->op >> 8 |
                              m->dtype >> 8 | len >> 8 | m->win >> 16 | m->origin >> 16 |
                              (uint64_t)m->disp >> 32 | slot >> 8 | generation >> 24 |
                              m->count >> 32;

    if (too_long != 0 || (m->flags != 0 && !inlined))
        return 0;
    const short_msg_t s = {
        .kind = (uint8_t)(NICSTRIDE_SHORT_MARK | (inlined ? INLINED : 0) | m->type),
        .op = (uint8_t)m->op,
        .dtype = (uint8_t)m->dtype,
        .len = (uint8_t)len,
        .win = (uint16_t)m->win,
        .origin = (uint16_t)m->origin,
        .disp = (uint32_t)m->disp,
        .handle = (uint32_t)(generation << 8 | slot),
        .count = (uint32_t)m->count,
    };
    memcpy(out, &s, sizeof(s));
    return sizeof(s);
}

size_t nicstride_msg_lengthen(const void *buf, size_t len, nicstride_msg_t *m)
{
    short_msg_t s;

    if (len < sizeof(s) || (*(const uint8_t *)buf & NICSTRIDE_SHORT_MASK) != NICSTRIDE_SHORT_MARK)
        return 0;
    memcpy(&s, buf, sizeof(s));
    const bool inlined = (s.kind & INLINED) != 0;

    *m = (nicstride_msg_t){
        .magic = NICSTRIDE_MSG_MAGIC,
        .type = s.kind & TYPE_MASK,
        .flags = inlined ? NICSTRIDE_MSG_INLINE : 0,
        .win = s.win,
        .origin = s.origin,
        .op = s.op,
        .dtype = s.dtype,
        .disp = s.disp,
        .len = inlined ? len - sizeof(s) : s.len,
        .handle = (uint64_t)(s.handle >> 8) << 32 | (s.handle & UINT8_MAX),
        .count = s.count,
    };
    return inlined && s.len != 0 ? 0 : sizeof(s);
}
