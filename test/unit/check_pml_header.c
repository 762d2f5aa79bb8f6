/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The decoder of messages: whole ones are understood, all others refused. */
#include "pml_superpipe/matching/header.h"

#include <string.h>

#include "test/unit/pml_messages.h"
#include "test/unit/unit.h"

static superpipe_incoming_t in;
static uint8_t bytes[PML_MESSAGE_MAX];

static bool decodes(size_t len)
{
    return superpipe_decode(&in, bytes, len, NULL, 0, false);
}

static bool has_data(superpipe_kind_t kind)
{
    return kind != SUPERPIPE_KIND_CTS && kind != SUPERPIPE_KIND_ACK;
}

START_TEST(all_kinds)
{
    const superpipe_kind_t kind = (superpipe_kind_t)_i;

    ck_assert(decodes(pml_message(kind, bytes)));
    ck_assert_uint_eq(in.prefix.kind, kind);
    ck_assert_uint_eq(in.prefix.sender, UINT64_C(0x700000003));
    if (kind == SUPERPIPE_KIND_RTS) {
        ck_assert(in.source == 3 && in.tag == -7 && in.prefix.context == 17);
        ck_assert(in.offer.handle == 5 && in.offer.length == 1 << 20 && in.offer.early == 8192);
        ck_assert(in.offer.address == 0x7000 && in.offer.block == 64);
    } else {
        ck_assert(in.handle == 11 && in.value == 4096);
    }
    if (kind == SUPERPIPE_KIND_CTS)
        ck_assert(in.cts.receive == 12 && in.cts.ticket[1] == 2);
    ck_assert_uint_eq(in.bytes, has_data(kind) ? 16 : 0);
}
END_TEST

/** A message of a kind without data has one length; of one with data any that holds its header. */
START_TEST(lengths)
{
    const superpipe_kind_t kind = (superpipe_kind_t)_i;
    const size_t len = pml_message(kind, bytes), header = has_data(kind) ? len - 16 : len;

    for (size_t n = 0; n <= len + 8; n++)
        ck_assert_int_eq(decodes(n),
                         n == len || (has_data(kind) &&
                                      (n > header || (kind == SUPERPIPE_KIND_RTS && n == header))));
}
END_TEST

/** Data in a place of its own, and not in two. */
START_TEST(data_elsewhere)
{
    const char data[] = "elsewhere";

    (void)pml_message(SUPERPIPE_KIND_RTS, bytes);
    ck_assert(superpipe_decode(&in, bytes, 64, data, sizeof(data), false));
    ck_assert(in.data == data && in.bytes == sizeof(data));
    ck_assert(!superpipe_decode(&in, bytes, 65, data, sizeof(data), false));
    ck_assert(!superpipe_decode(&in, bytes, 64, data, 8193, false));
    (void)pml_message(SUPERPIPE_KIND_DATA, bytes);
    ck_assert(superpipe_decode(&in, bytes, 32, NULL, 77, true));
    ck_assert(in.data == NULL && in.bytes == 77);
    (void)pml_message(SUPERPIPE_KIND_RTS, bytes);
    ck_assert(!superpipe_decode(&in, bytes, 64, NULL, 77, true));
    for (int kind = SUPERPIPE_KIND_CTS; kind < SUPERPIPE_KINDS; kind++) {
        const size_t len = pml_message((superpipe_kind_t)kind, bytes);
        if (!has_data((superpipe_kind_t)kind))
            ck_assert(!superpipe_decode(&in, bytes, len, data, sizeof(data), false));
    }
}
END_TEST

/** Where a field stands, and a value that would reach beyond a bound. */
typedef struct wrong {
    superpipe_kind_t kind;
    size_t at;
    uint8_t value;
} wrong_t;

START_TEST(wrong_values)
{
    static const wrong_t wrong[] = {
        {SUPERPIPE_KIND_RTS, 8, 0},  {SUPERPIPE_KIND_RTS, 8, SUPERPIPE_KINDS},
        {SUPERPIPE_KIND_RTS, 24, 0}, {SUPERPIPE_KIND_RTS, 39, 0x80},
        {SUPERPIPE_KIND_RTS, 48, 0}, {SUPERPIPE_KIND_RTS, 54, 0x20},
        {SUPERPIPE_KIND_RTS, 53, 0}, {SUPERPIPE_KIND_CTS, 9, SUPERPIPE_PROTOCOLS},
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const size_t len = pml_message(wrong[i].kind, bytes);
        ck_assert(decodes(len));
        ck_assert_uint_ne(bytes[wrong[i].at], wrong[i].value);
        bytes[wrong[i].at] = wrong[i].value;
        ck_assert_msg(!decodes(len), "case %zu", i);
    }
}
END_TEST

/** SHORT messages: all of it is found again, and what is shorter than a header is none. */
START_TEST(short_messages)
{
    const superpipe_short_t h = {.sender = 7, .context = 5, .source = 3, .tag = -11};

    memcpy(bytes, &h, sizeof(h));
    memset(bytes + sizeof(h), 'd', 8);
    for (size_t len = 0; len < sizeof(h); len++)
        ck_assert(!superpipe_decode_short(&in, bytes, len, NULL, 0));
    for (size_t n = 0; n <= 8; n++) {
        ck_assert(superpipe_decode_short(&in, bytes, sizeof(h) + n, NULL, 0));
        ck_assert(in.prefix.sender == 7 && in.prefix.context == 5 && in.source == 3);
        ck_assert(in.tag == -11 && in.prefix.kind == SUPERPIPE_KIND_SHORT);
        ck_assert(in.bytes == n && in.offer.length == n && in.offer.handle == 0);
        ck_assert(n == 0 || in.data == bytes + sizeof(h));
    }
}
END_TEST

int main(void)
{
    return UNIT_RUN("pml header", UNIT_LOOP(all_kinds, SUPERPIPE_KIND_RTS, SUPERPIPE_KINDS),
                    UNIT_LOOP(lengths, SUPERPIPE_KIND_RTS, SUPERPIPE_KINDS),
                    UNIT_ONCE(data_elsewhere), UNIT_ONCE(short_messages), UNIT_ONCE(wrong_values));
}
