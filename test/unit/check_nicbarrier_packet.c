/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The wire format of barrier packets: its bytes, and that nothing else is taken for it. */
#include "coll_nicbarrier/engines/datagram/packet.h"

#include <string.h>

#include "coll_nicbarrier/epoch/rule.h"
#include "coll_nicbarrier/schedule/schedule.h"
#include "test/unit/unit.h"

static const nicbarrier_packet_t example = {.kind = NICBARRIER_PACKET_NACK,
                                            .at = 3,
                                            .from_at = 4,
                                            .sender = 0x01020304,
                                            .cookie = 0xc0c1c2c3,
                                            .key = 0x0102030405060708,
                                            .epoch = 0x1112131415161718,
                                            .to = 0x60616263,
                                            .back = 0xb0b1b2b3,
                                            .flags = NICBARRIER_FLAG_COPY};

/* The format is fixed: processes that were built apart must understand each other. */
START_TEST(bytes)
{
    static const unsigned char expected[NICBARRIER_PACKET_SIZE] = {
        0x4e, 0x42, 2,    4,    0xc0, 0xc1, 0xc2, 0xc3, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06,
        0x07, 0x08, 0x01, 0x02, 0x03, 0x04, 3,    4,    1,    0,    0x11, 0x12, 0x13, 0x14,
        0x15, 0x16, 0x17, 0x18, 0x60, 0x61, 0x62, 0x63, 0xb0, 0xb1, 0xb2, 0xb3};
    unsigned char encoded[NICBARRIER_PACKET_SIZE];

    nicbarrier_packet_encode(&example, encoded);
    ck_assert_mem_eq(encoded, expected, sizeof(expected));
    ck_assert_uint_eq(encoded[NICBARRIER_PACKET_EPOCH_AT], 0x11);
}
END_TEST

static nicbarrier_packet_t any_packet(unit_random_t *r)
{
    nicbarrier_packet_t p = {.kind = (uint8_t)(1 + unit_below(r, NICBARRIER_PACKET_KINDS - 1)),
                             .cookie = (uint32_t)unit_random64(r),
                             .key = unit_random64(r) | 1};

    const bool process = p.kind == NICBARRIER_PACKET_LEFT || p.kind == NICBARRIER_PACKET_STAY;
    const bool word = p.kind == NICBARRIER_PACKET_EPOCH || p.kind == NICBARRIER_PACKET_AGAIN ||
                      p.kind == NICBARRIER_PACKET_KEPT || p.kind == NICBARRIER_PACKET_GOT;

    if (process) {
        p.key = 0;
        p.flags = unit_once_in(r, 2) ? NICBARRIER_FLAG_HEARD : 0;
        p.flags |=
            p.kind == NICBARRIER_PACKET_LEFT && unit_once_in(r, 2) ? NICBARRIER_FLAG_ASKS : 0;
    } else if (p.kind != NICBARRIER_PACKET_POKE) {
        p.at = (uint8_t)unit_below(r, NICBARRIER_STEPS_MAX);
        p.from_at = (uint8_t)unit_below(r, NICBARRIER_STEPS_MAX);
        p.sender = (uint32_t)unit_random64(r) & INT32_MAX;
        p.epoch = (unit_random64(r) & (word ? UINT64_MAX : INT64_MAX)) | 1;
    }
    if (word && p.kind != NICBARRIER_PACKET_GOT && (p.epoch & NICBARRIER_WORD_FAILED) != 0)
        p.flags = unit_once_in(r, 2) ? NICBARRIER_FLAG_DEAD : 0;
    if (p.kind == NICBARRIER_PACKET_NACK || p.kind == NICBARRIER_PACKET_KEPT)
        p.to = (uint32_t)unit_random64(r) & INT32_MAX;
    if (p.to != 0 || process)
        p.back = (uint32_t)unit_random64(r);
    if (p.kind == NICBARRIER_PACKET_NACK)
        p.flags = unit_once_in(r, 2) ? NICBARRIER_FLAG_COPY : 0;
    return p;
}

START_TEST(round_trip)
{
    unit_random_t random = {unit_seed()};

    for (int i = 0; i < 100000; i++) {
        const nicbarrier_packet_t p = any_packet(&random);
        unsigned char encoded[NICBARRIER_PACKET_SIZE + 1] = {0};
        nicbarrier_packet_t q;
        nicbarrier_packet_encode(&p, encoded);
        UNIT_CHECK(nicbarrier_packet_decode(encoded, NICBARRIER_PACKET_SIZE, &q) == NULL);
        UNIT_CHECK(p.kind == q.kind && p.at == q.at && p.from_at == q.from_at);
        UNIT_CHECK(p.sender == q.sender && p.cookie == q.cookie);
        UNIT_CHECK(p.key == q.key && p.epoch == q.epoch);
        UNIT_CHECK(p.to == q.to && p.back == q.back && p.flags == q.flags);
        for (size_t len = 0; len <= sizeof(encoded); len++)
            UNIT_CHECK((nicbarrier_packet_decode(encoded, len, &q) == NULL) ==
                       (len == NICBARRIER_PACKET_SIZE));
    }
}
END_TEST

static const char *decode_with(const nicbarrier_packet_t *p, size_t at, unsigned char byte)
{
    unsigned char encoded[NICBARRIER_PACKET_SIZE];
    nicbarrier_packet_t q;

    nicbarrier_packet_encode(p, encoded);
    encoded[at] = byte;
    return nicbarrier_packet_decode(encoded, sizeof(encoded), &q);
}

START_TEST(refused)
{
    const size_t fixed[] = {0, 1, 2, 23}; /* magic, version, padding */
    nicbarrier_packet_t p = example;

    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
        ck_assert_ptr_nonnull(decode_with(&p, fixed[i], 0xff));
    ck_assert_ptr_nonnull(decode_with(&p, 3, 0));
    ck_assert_ptr_nonnull(decode_with(&p, 3, NICBARRIER_PACKET_EPOCH));
    ck_assert_ptr_nonnull(decode_with(&p, 3, NICBARRIER_PACKET_KINDS));
    ck_assert_ptr_nonnull(decode_with(&p, 16, 0x80));
    ck_assert_ptr_nonnull(decode_with(&p, 32, 0x80));
    ck_assert_ptr_nonnull(decode_with(&p, 20, NICBARRIER_STEPS_MAX));
    ck_assert_ptr_nonnull(decode_with(&p, 21, NICBARRIER_STEPS_MAX));
    ck_assert_ptr_null(decode_with(&p, 20, NICBARRIER_STEPS_MAX - 1));
    ck_assert_ptr_null(decode_with(&p, 21, NICBARRIER_STEPS_MAX - 1));
    ck_assert_ptr_nonnull(decode_with(&p, 22, 2));
    ck_assert_ptr_null(decode_with(&p, 22, 0));
    p.key = 0;
    ck_assert_ptr_nonnull(decode_with(&p, 0, 0x4e));
    p = example;
    p.epoch = 0;
    ck_assert_ptr_nonnull(decode_with(&p, 0, 0x4e));
    /* The failure bit where there is a word, and there only; it is something to say by itself. */
    p.epoch = NICBARRIER_WORD_FAILED | 1;
    ck_assert_ptr_nonnull(decode_with(&p, 0, 0x4e));
    p = (nicbarrier_packet_t){
        .kind = NICBARRIER_PACKET_AGAIN, .key = 1, .epoch = NICBARRIER_WORD_FAILED};
    ck_assert_ptr_null(decode_with(&p, 0, 0x4e));
    p.flags = NICBARRIER_FLAG_COPY;
    ck_assert_ptr_nonnull(decode_with(&p, 0, 0x4e));
    /* Somebody is dead: only where it has failed. */
    p.flags = NICBARRIER_FLAG_DEAD;
    ck_assert_ptr_null(decode_with(&p, 0, 0x4e));
    p.epoch = 1;
    ck_assert_ptr_nonnull(decode_with(&p, 0, 0x4e));
}
END_TEST

START_TEST(pokes_are_bare)
{
    const nicbarrier_packet_t bare = {.kind = NICBARRIER_PACKET_POKE, .key = 1};
    const size_t empty[] = {16, 19, 20, 21, 22, 24, 31, 32, 36}; /* all but the group */

    ck_assert_ptr_null(decode_with(&bare, 0, 0x4e));
    for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++)
        ck_assert_ptr_nonnull(decode_with(&bare, empty[i], 1));
}
END_TEST

START_TEST(farewells_are_bare)
{
    const nicbarrier_packet_t bare = {.kind = NICBARRIER_PACKET_LEFT, .back = 7};
    const size_t empty[] = {8, 15, 16, 19, 20, 21, 24, 31, 32}; /* all but cookies and flags */

    ck_assert_ptr_null(decode_with(&bare, 0, 0x4e));
    ck_assert_ptr_null(decode_with(&bare, 22, NICBARRIER_FLAG_HEARD | NICBARRIER_FLAG_ASKS));
    ck_assert_ptr_nonnull(decode_with(&bare, 22, NICBARRIER_FLAG_COPY));
    for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++)
        ck_assert_ptr_nonnull(decode_with(&bare, empty[i], 1));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {bytes, round_trip, refused, pokes_are_bare, farewells_are_bare};

    return unit_run("nicbarrier_packet", tests, sizeof(tests) / sizeof(tests[0]));
}
