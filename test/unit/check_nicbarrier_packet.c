/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The wire format of barrier packets: its bytes, and that nothing else is taken for it. */
#include "coll_nicbarrier/engines/datagram/wire/packet.h"

#include <string.h>

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
                                            .back = 0xb0b1b2b3};

/* The format is fixed: processes that were built apart must understand each other. */
START_TEST(bytes)
{
    static const unsigned char expected[NICBARRIER_PACKET_SIZE] = {
        0x4e, 0x42, 6,    3,    0xc0, 0xc1, 0xc2, 0xc3, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06,
        0x07, 0x08, 0x01, 0x02, 0x03, 0x04, 3,    4,    0,    0,    0x11, 0x12, 0x13, 0x14,
        0x15, 0x16, 0x17, 0x18, 0x60, 0x61, 0x62, 0x63, 0xb0, 0xb1, 0xb2, 0xb3};
    unsigned char encoded[NICBARRIER_PACKET_SIZE];

    nicbarrier_packet_encode(&example, encoded);
    ck_assert_mem_eq(encoded, expected, sizeof(expected));
    ck_assert_uint_eq(encoded[NICBARRIER_PACKET_EPOCH_AT], 0x11);
}
END_TEST

static nicbarrier_packet_t any_packet(unit_random_t *r)
{
    return (nicbarrier_packet_t){.kind = (uint8_t)(1 + unit_below(r, NICBARRIER_PACKET_KINDS - 1)),
                                 .at = (uint8_t)unit_below(r, NICBARRIER_STEPS_MAX),
                                 .from_at = (uint8_t)unit_below(r, NICBARRIER_STEPS_MAX),
                                 .sender = (uint32_t)unit_random64(r) & INT32_MAX,
                                 .cookie = (uint32_t)unit_random64(r),
                                 .key = unit_random64(r),
                                 .epoch = unit_random64(r),
                                 .to = (uint32_t)unit_random64(r) & INT32_MAX,
                                 .back = (uint32_t)unit_random64(r)};
}

START_TEST(round_trip)
{
    unit_random_t random = {unit_seed()};

    for (int i = 0; i < 100000; i++) {
        const nicbarrier_packet_t p = any_packet(&random);
        unsigned char encoded[NICBARRIER_PACKET_SIZE + 1] = {0};
        nicbarrier_packet_t q;
        nicbarrier_packet_encode(&p, encoded);
        UNIT_CHECK(nicbarrier_packet_decode(encoded, NICBARRIER_PACKET_SIZE, &q));
        UNIT_CHECK(p.kind == q.kind && p.at == q.at && p.from_at == q.from_at);
        UNIT_CHECK(p.sender == q.sender && p.cookie == q.cookie);
        UNIT_CHECK(p.key == q.key && p.epoch == q.epoch);
        UNIT_CHECK(p.to == q.to && p.back == q.back);
        for (size_t len = 0; len <= sizeof(encoded); len++)
            UNIT_CHECK(nicbarrier_packet_decode(encoded, len, &q) ==
                       (len == NICBARRIER_PACKET_SIZE));
    }
}
END_TEST

static bool decode_with(const nicbarrier_packet_t *p, size_t at, unsigned char byte)
{
    unsigned char encoded[NICBARRIER_PACKET_SIZE];
    nicbarrier_packet_t q;

    nicbarrier_packet_encode(p, encoded);
    encoded[at] = byte;
    return nicbarrier_packet_decode(encoded, sizeof(encoded), &q);
}

START_TEST(refused)
{
    const size_t fixed[] = {0, 1, 2, 22, 23}; /* magic, version, padding */
    const nicbarrier_packet_t p = example;

    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
        ck_assert(!decode_with(&p, fixed[i], 0xff));
    ck_assert(!decode_with(&p, 3, 0));
    ck_assert(!decode_with(&p, 3, NICBARRIER_PACKET_KINDS));
    ck_assert(!decode_with(&p, 16, 0x80));
    ck_assert(!decode_with(&p, 32, 0x80));
    ck_assert(!decode_with(&p, 20, NICBARRIER_STEPS_MAX));
    ck_assert(!decode_with(&p, 21, NICBARRIER_STEPS_MAX));
    ck_assert(decode_with(&p, 20, NICBARRIER_STEPS_MAX - 1));
    ck_assert(decode_with(&p, 21, NICBARRIER_STEPS_MAX - 1));
}
END_TEST

int main(void)
{
    return UNIT_RUN("nicbarrier_packet", UNIT_ONCE(bytes), UNIT_ONCE(round_trip),
                    UNIT_ONCE(refused));
}
