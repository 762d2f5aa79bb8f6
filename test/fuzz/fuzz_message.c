/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Fuzzing of what a target does with the bytes of a message: decode the header, decode the layout
 * behind it, decide whether all that it names lies in the window. Whatever is let through must
 * keep inside the window, piece by piece.
 *
 * Input: one byte that says how long the payload is said to be, one that chooses the window, then
 * the message. Where the first byte is 0x80 or more, the message is made right by force, so that
 * inputs made without a view of the code reach what lies behind the header, too.
 */
#include <stdlib.h>
#include <string.h>

#include "common/layout/layout.h"
#include "osc_nicstride/protocol/message.h"
#include "osc_nicstride/protocol/peer_layout_cache.h"
#include "osc_nicstride/protocol/vector.h"
#include "osc_nicstride/window/region.h"
#include "test/fuzz/fuzz.h"

/* A layout can have 2^60 pieces; the first ones must do. */
#define PIECES_MAX 1000

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* The arithmetic of nicstride_layout_fits again, in integers that cannot overflow. */
static bool fits(const onic_layout_t *l, int64_t disp, uint64_t window)
{
    const __int128 lb = (__int128)disp + l->lb, ub = (__int128)disp + l->ub;

    return l->size == 0 || (lb >= 0 && ub <= (__int128)window && ub <= INT64_MAX);
}

/* Every piece lies between the bounds that the decoder computed. */
static void walk(const onic_layout_t *l, uint64_t offset)
{
    onic_cursor_t c;
    int64_t at;
    uint64_t n;

    onic_cursor_init(&c, l, offset);
    for (int i = 0; i < PIECES_MAX && onic_cursor_next(&c, UINT64_MAX, &at, &n); i++) {
        require(n > 0 && at >= l->lb && at < l->ub);
        require(n <= (uint64_t)l->ub - (uint64_t)at);
    }
}

/* In a dynamic window of one region the table must say what the bounds say. */
static void check_regions(const onic_layout_t *l, int64_t disp, uint64_t window)
{
    nicstride_regions_t t = {0};
    const uint64_t base = 1ull << 40;
    const bool small = disp > INT32_MIN && disp < INT32_MAX && l->lb > INT32_MIN &&
                       l->ub < INT32_MAX && onic_layout_blocks(l) <= PIECES_MAX;

    if (!small || window == 0 || window > INT32_MAX)
        return;
    require(nicstride_regions_attach(&t, base, window) == NICSTRIDE_REGION_OK);
    require(nicstride_regions_cover(&t, base + (uint64_t)disp, l, 0, l->size) ==
            nicstride_layout_fits(l, disp, window));
    nicstride_regions_fini(&t);
}

static void check_layout(const nicstride_msg_t *m, const void *encoded, uint64_t window)
{
    onic_layout_t l;
    size_t used;

    if (onic_layout_decode(&l, encoded, m->layout_len, &used) != ONIC_LAYOUT_OK)
        return;
    require(used > 0 && used <= m->layout_len);
    require(nicstride_layout_fits(&l, m->disp, window) == fits(&l, m->disp, window));
    if (m->offset <= l.size)
        walk(&l, m->offset);
    check_regions(&l, m->disp, window);
    onic_layout_fini(&l);
}

/* Slices of a list. */
static void check_list(nicstride_msg_t m, const void *layout)
{
    nicstride_layout_cache_t kept = {.broken = false};
    const onic_layout_t *list;

    for (int i = 0; i < 3; i++) {
        nicstride_layout_slice(&kept, &m, layout);
        m.offset = 1;
    }
    list = nicstride_layout_cached(&kept, &m.count);
    if (list != NULL)
        walk(list, list->size / 2);
    nicstride_layouts_leave(&kept);
}

/* Contiguous bytes must be found inside exactly where the layout that says the same is. */
static void check_bytes(const nicstride_msg_t *m, uint64_t window)
{
    onic_layout_t l;
    uint64_t at = 0;

    if (m->len == 0 || m->offset > INT64_MAX ||
        onic_layout_contig(&l, (int64_t)m->offset, m->len) != ONIC_LAYOUT_OK || m->disp < 0)
        return;
    const bool inside = nicstride_bytes_fit(m->disp, m->offset, m->len, window, &at);
    require(inside == nicstride_layout_fits(&l, m->disp, window));
    require(!inside || (at + m->len <= window && at == (uint64_t)m->disp + m->offset));
}

static uint64_t payload_said(uint8_t choice, const uint8_t *message, size_t len)
{
    nicstride_msg_t m;

    if ((choice < 0x80 && choice % 2 == 0) || len < sizeof(m))
        return choice / 2;
    memcpy(&m, message, sizeof(m));
    return m.len;
}

/* Keeps the position and the layout of a message and makes the rest that of a put, perhaps with a
 * slice that has a name. */
static void force_right(uint8_t *message, size_t len)
{
    nicstride_msg_t m, right;

    if (len <= sizeof(m))
        return;
    memcpy(&m, message, sizeof(m));
    nicstride_msg_init(&right, NICSTRIDE_MSG_PUT, m.win, m.origin);
    right.flags = m.flags & NICSTRIDE_MSG_SLICE;
    if ((right.flags & NICSTRIDE_MSG_SLICE) == 0)
        right.flags |= m.flags & NICSTRIDE_MSG_RUNS;
    right.layout_len = (uint32_t)(len - sizeof(m));
    right.disp = m.type % 4 == 0 ? m.disp : m.disp % 8192;
    right.offset = m.type % 2 == 0 ? m.offset : m.offset % 64;
    right.len = m.len <= UINT64_MAX - right.offset ? m.len : 0;
    if (m.origin % 4 == 3) {
        right.type = NICSTRIDE_MSG_LAYOUT;
        right.flags = 0;
        right.op = m.op;
        right.count = m.count;
        right.offset %= 2;
        right.len = 0;
    }
    memcpy(message, &right, sizeof(right));
}

/* Each record lies within the vector, behind the one before. */
static void check_vector(const nicstride_msg_t *m, const uint8_t *vector, size_t len)
{
    const bool puts = m->type == NICSTRIDE_MSG_PUTV;
    nicstride_record_t r;

    for (size_t at = 0, before = 0; nicstride_record_next(vector, len, puts, &at, &r);
         before = at) {
        require(at > before && at <= len && r.data == vector + before + NICSTRIDE_RECORD_HEAD);
        require(!puts || r.data + r.len == vector + at);
    }
}

static void check_message(const uint8_t *message, size_t len, uint8_t choice, uint64_t window)
{
    const bool forced = choice >= 0x80 && len > sizeof(nicstride_msg_t);
    nicstride_msg_t m;
    const void *layout;
    const bool right =
        nicstride_msg_decode(message, len, payload_said(choice, message, len), &m, &layout);

    require(!forced || right);
    if (!right)
        return;
    require(memcmp(&m, message, sizeof(m)) == 0);
    const uint64_t inlined = (m.flags & NICSTRIDE_MSG_INLINE) != 0 ? m.len
                             : nicstride_msg_has_ticket(m.type)    ? NICSTRIDE_TICKET_BYTES
                                                                   : 0;
    require((const uint8_t *)layout + m.layout_len + inlined == message + len);
    if (m.type == NICSTRIDE_MSG_PUTV || m.type == NICSTRIDE_MSG_GETV)
        check_vector(&m, (const uint8_t *)layout + m.layout_len, inlined);
    if (m.type == NICSTRIDE_MSG_LAYOUT)
        check_list(m, layout);
    else if (m.layout_len > 0)
        check_layout(&m, layout, window);
    else
        check_bytes(&m, window);
}

/* The same bytes as several messages in one: each lies within them, behind the one before. */
static void check_batch(const uint8_t *bytes, size_t len, uint8_t choice, uint64_t window)
{
    size_t at = 0, before = 0, message_len;
    const void *message;

    while (nicstride_batch_next(bytes, len, &at, &message, &message_len)) {
        require((const uint8_t *)message > bytes + before && message_len > 0);
        require((const uint8_t *)message + message_len == bytes + at && at <= len);
        check_message(message, message_len, choice & 0x7f, window);
        before = at;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t windows[] = {0, 1, 64, 4096, 1u << 20, INT64_MAX, UINT64_MAX};

    if (size < 2)
        return 0;
    const size_t len = size - 2;
    const uint64_t window = windows[data[1] % (sizeof(windows) / sizeof(windows[0]))];

    /* A copy of its own size and at an odd address, so that reading beyond it shows. */
    uint8_t *memory = malloc(len + 1);
    if (memory == NULL)
        return 0;
    memcpy(memory + 1, data + 2, len);
    if (data[0] >= 0x80)
        force_right(memory + 1, len);
    check_message(memory + 1, len, data[0], window);
    check_batch(memory + 1, len, data[0], window);
    free(memory);
    return 0;
}

/* A put of contiguous bytes, one of blocks, and the latter as what is made right. */
size_t onic_fuzz_seed(unsigned i, uint8_t *buf, size_t cap)
{
    nicstride_msg_t m;
    onic_layout_t l;
    size_t len = 0;

    if (i >= 3 || cap < 2 + sizeof(m))
        return 0;
    nicstride_msg_init(&m, NICSTRIDE_MSG_PUT, 1, 0);
    m.len = 64;
    if (i > 0) {
        if (onic_layout_contig(&l, 0, 8) != ONIC_LAYOUT_OK ||
            onic_layout_repeat(&l, 8, 32) != ONIC_LAYOUT_OK ||
            onic_layout_encode(&l, buf + 2 + sizeof(m), cap - 2 - sizeof(m), &len) !=
                ONIC_LAYOUT_OK)
            return 0;
        m.layout_len = (uint32_t)len;
    }
    buf[0] = i == 2 ? 0x80 : 0;
    buf[1] = 3;
    memcpy(buf + 2, &m, sizeof(m));
    return 2 + sizeof(m) + len;
}
