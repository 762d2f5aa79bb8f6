/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * A short form of headers, for messages without a layout.
 *
 * Between the cores of a node a message costs mostly the cache lines that it lies in. UCX puts a
 * short one into an element of a queue of which the first line has 28 bytes left: an operation on
 * 8 bytes and its reply keep within it in this form. Single puts and accumulates of 8 bytes with
 * their flush take three quarters to nine tenths of the time that the long form takes, single
 * fetches nine tenths or more, bursts the same (UCX 1.13, transport posix, Xeons; nine tenths all
 * on EPYCs).
 *
 * The form has fixed places, since fields of varying width cost as much time as the cache lines
 * save. A displacement of more than 32 bits, as of a dynamic window, takes four bytes more. What
 * does not fit travels in the long form: windows and ranks beyond 16 bits, what is said after 2^32
 * messages to the same rank, and errors.
 *
 * Pure; inlined, since most of a message's fields are known where it is made or checked.
 *
 * Half of the codec of message.h: what nicstride_msg_lengthen returns is checked for its form only,
 * the rest by nicstride_msg_decode, which is what a receiver calls.
 */
#ifndef NICSTRIDE_COMPACT_H
#define NICSTRIDE_COMPACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/support/handle.h"
#include "osc_nicstride/protocol/message.h"

/** Bytes of a short header: but for the upper half of a displacement, and at most. */
#define NICSTRIDE_SHORT_SIZE 20
#define NICSTRIDE_SHORT_MAX  24

/** The first byte of a header, in these bits, says of which form it is. For the short one it also
 *  says the byte order, as the magic value does for the long one. */
enum {
    NICSTRIDE_SHORT_MASK = 0xc0,
    NICSTRIDE_SHORT_MARK = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0xc0 : 0x80,
    NICSTRIDE_SHORT_SWAPPED = 0xc0 ^ 0x80 ^ NICSTRIDE_SHORT_MARK /**< from the other order */
};

/** As it travels. Fields as in the long form, if not said otherwise. */
typedef struct nicstride_short_msg {
    uint8_t kind;  /**< NICSTRIDE_SHORT_MARK, perhaps NICSTRIDE_SHORT_INLINED, and the type */
    uint8_t op;    /**< in the upper half (NICSTRIDE_SHORT_OP_BITS) the upper bits of len */
    uint8_t dtype; /**< perhaps with NICSTRIDE_SHORT_FAR */
    uint8_t len;   /**< 0 where the data lies behind: then it is what is left of the message */
    uint16_t win;
    uint16_t origin;
    uint32_t disp;
    uint32_t handle; /**< generation, then eight bits of the slot */
    uint32_t count;
} nicstride_short_msg_t;

/** The rest of the first byte. */
enum { NICSTRIDE_SHORT_INLINED = 0x20, NICSTRIDE_SHORT_TYPE = 0x1f };

/** An operation takes so many bits, a length the rest of them and a byte. */
#define NICSTRIDE_SHORT_OP_BITS 4
#define NICSTRIDE_SHORT_LEN_MAX ((1U << (16 - NICSTRIDE_SHORT_OP_BITS)) - 1)

/** In the place of the element type: the upper half of the displacement, which is not 0, lies
 * behind the header. */
enum { NICSTRIDE_SHORT_FAR = 0x80 };

_Static_assert(sizeof(nicstride_short_msg_t) == NICSTRIDE_SHORT_SIZE, "no gaps");
_Static_assert(NICSTRIDE_SHORT_SIZE % 2 == 0 && NICSTRIDE_SHORT_MAX % 2 == 0,
               "pairs behind a header leave it even");
_Static_assert(NICSTRIDE_SHORT_MAX <= sizeof(nicstride_msg_t), "the shorter form");
_Static_assert(NICSTRIDE_MSG_LAST <= NICSTRIDE_SHORT_TYPE + 1, "room for the type");
_Static_assert((NICSTRIDE_MSG_MAGIC & 0x80) == 0 && (NICSTRIDE_MSG_MAGIC >> 8 & 0x80) == 0,
               "the forms differ in their first byte, in either byte order");
_Static_assert(ONIC_GENERATION_MAX <= UINT32_MAX >> 8, "a generation and a slot are a word");

/**
 * Writes a header in its short form. Data, where the flag NICSTRIDE_MSG_INLINE says so, is for the
 * caller to put behind it: exactly m->len bytes, which the receiver takes from the message's
 * length.
 *
 * @return the bytes of the header; 0 where it has no short form: with a layout, an offset, a
 *         status, another flag, or a number too long for its place
 */
static inline size_t nicstride_msg_shorten(const nicstride_msg_t *m,
                                           unsigned char out[NICSTRIDE_SHORT_MAX])
{
    const bool inlined = m->flags == NICSTRIDE_MSG_INLINE;
    const uint64_t len = inlined ? 0 : m->len;
    const uint64_t slot = (uint32_t)m->handle;
    const uint64_t too_long =
        (m->win | m->origin) >> 16 | (unsigned)m->op >> NICSTRIDE_SHORT_OP_BITS |
        (unsigned)m->dtype >> 7 | m->count >> 32 | (len & ~(uint64_t)NICSTRIDE_SHORT_LEN_MAX) |
        slot >> 8 | m->handle >> 56 | m->layout_len | m->offset | (uint32_t)m->status;
    const uint32_t above = (uint32_t)((uint64_t)m->disp >> 32);

    if (too_long != 0 || (m->flags != 0 && !inlined))
        return 0;
    const nicstride_short_msg_t s = {
        .kind = (uint8_t)(NICSTRIDE_SHORT_MARK | (inlined ? NICSTRIDE_SHORT_INLINED : 0) | m->type),
        .op = (uint8_t)(m->op | len >> 8 << NICSTRIDE_SHORT_OP_BITS),
        .dtype = (uint8_t)(m->dtype | (above != 0 ? NICSTRIDE_SHORT_FAR : 0)),
        .len = (uint8_t)len,
        .win = (uint16_t)m->win,
        .origin = (uint16_t)m->origin,
        .disp = (uint32_t)m->disp,
        .handle = onic_handle_word(m->handle),
        .count = (uint32_t)m->count,
    };
    memcpy(out, &s, sizeof(s));
    if (above == 0)
        return sizeof(s);
    memcpy(out + sizeof(s), &above, sizeof(above));
    return sizeof(s) + sizeof(above);
}

/**
 * Reads a header of this form from a message of `len` bytes in all, without the mark of the upper
 * half of its displacement, which is in `*disp`.
 *
 * @return its bytes; 0 where there are not so many, or where the upper half is 0 and yet there
 */
static inline size_t nicstride_short_read(const void *buf, size_t len, nicstride_short_msg_t *s,
                                          uint64_t *disp)
{
    uint32_t above;

    if (len < sizeof(*s))
        return 0;
    memcpy(s, buf, sizeof(*s));
    *disp = s->disp;
    if ((s->dtype & NICSTRIDE_SHORT_FAR) == 0)
        return sizeof(*s);
    if (len < sizeof(*s) + sizeof(above))
        return 0;
    memcpy(&above, (const unsigned char *)buf + sizeof(*s), sizeof(above));
    s->dtype ^= NICSTRIDE_SHORT_FAR;
    *disp |= (uint64_t)above << 32;
    return above != 0 ? sizeof(*s) + sizeof(above) : 0;
}

/** What its operation byte says. */
static inline unsigned nicstride_short_op(const nicstride_short_msg_t *s)
{
    return s->op & ((1U << NICSTRIDE_SHORT_OP_BITS) - 1);
}

static inline size_t nicstride_short_len(const nicstride_short_msg_t *s)
{
    return s->len | (size_t)(s->op >> NICSTRIDE_SHORT_OP_BITS) << 8;
}

/**
 * Reads the short header of a message of `len` bytes in all.
 *
 * @return the bytes of the header, or 0 where it has no right one of this form
 */
static inline size_t nicstride_msg_lengthen(const void *buf, size_t len, nicstride_msg_t *m)
{
    nicstride_short_msg_t s;
    uint64_t disp;
    const size_t header = nicstride_short_read(buf, len, &s, &disp);

    if (header == 0 || (s.kind & NICSTRIDE_SHORT_MASK) != NICSTRIDE_SHORT_MARK)
        return 0;
    const bool inlined = (s.kind & NICSTRIDE_SHORT_INLINED) != 0;

    *m = (nicstride_msg_t){
        .magic = NICSTRIDE_MSG_MAGIC,
        .type = s.kind & NICSTRIDE_SHORT_TYPE,
        .flags = inlined ? NICSTRIDE_MSG_INLINE : 0,
        .win = s.win,
        .origin = s.origin,
        .op = (uint16_t)nicstride_short_op(&s),
        .dtype = s.dtype,
        .disp = (int64_t)disp,
        .len = inlined ? len - header : nicstride_short_len(&s),
        .handle = onic_handle_of_word(s.handle),
        .count = s.count,
    };
    return inlined && nicstride_short_len(&s) != 0 ? 0 : header;
}

/** Writes a header, in the short form where it has one. @return its bytes */
static inline size_t nicstride_msg_encode(const nicstride_msg_t *m,
                                          unsigned char out[sizeof(nicstride_msg_t)])
{
    const size_t len = nicstride_msg_shorten(m, out);

    if (len != 0)
        return len;
    memcpy(out, m, sizeof(*m));
    return sizeof(*m);
}

#endif
