/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Addresses in endpoint records: their wire form, the choice among them, and filters. */
#include "coll_nicbarrier/engines/datagram/udp_address.h"

#include <arpa/inet.h>
#include <string.h>

#include "test/unit/unit.h"

static nicbarrier_ip_t ip_of(const char *text, uint8_t prefix)
{
    nicbarrier_ip_t p = nicbarrier_ip_loopback;
    const bool v4 = inet_pton(AF_INET, text, p.bytes + 12) == 1;

    p.prefix = (uint8_t)(prefix + (v4 ? 96 : 0));
    if (!v4)
        ck_assert_int_eq(inet_pton(AF_INET6, text, p.bytes), 1);
    return p;
}

static bool is(const nicbarrier_ip_t *p, const char *text)
{
    const nicbarrier_ip_t q = ip_of(text, 0);

    return memcmp(p->bytes, q.bytes, sizeof(q.bytes)) == 0;
}

/* ---- wire form ------------------------------------------------------------------------------ */

static nicbarrier_udp_address_t any_address(unit_random_t *r)
{
    nicbarrier_udp_address_t p = {.host = unit_random64(r),
                                  .cookie = (uint32_t)unit_random64(r),
                                  .port = (uint16_t)(1 + unit_below(r, 65535)),
                                  .n = (uint8_t)(1 + unit_below(r, NICBARRIER_IPS_MAX))};

    for (int i = 0; i < p.n; i++) {
        p.ip[i].prefix = (uint8_t)unit_below(r, 129);
        for (int j = 0; j < 16; j++)
            p.ip[i].bytes[j] = (uint8_t)unit_random64(r);
    }
    return p;
}

START_TEST(round_trip)
{
    unit_random_t random = {unit_seed()};

    for (int i = 0; i < 20000; i++) {
        const nicbarrier_udp_address_t p = any_address(&random);
        nicbarrier_udp_address_t q;
        unsigned char bytes[sizeof(p) + 1] = {0};
        const uint32_t len = nicbarrier_udp_address_size(&p);
        UNIT_CHECK(len <= sizeof(p));
        memcpy(bytes, &p, len);
        for (size_t other = 0; other <= sizeof(bytes); other++)
            UNIT_CHECK((nicbarrier_udp_address_decode(bytes, other, &q) == NULL) == (other == len));
        UNIT_CHECK(nicbarrier_udp_address_decode(bytes, len, &q) == NULL);
        UNIT_CHECK(q.host == p.host && q.cookie == p.cookie && q.port == p.port && q.n == p.n);
        UNIT_CHECK(memcmp(q.ip, p.ip, sizeof(p.ip)) == 0);
    }
}
END_TEST

/* Whatever is accepted has one form only, and nothing out of range. */
START_TEST(damaged)
{
    unit_random_t random = {unit_seed()};
    int accepted = 0;

    for (int i = 0; i < 200000; i++) {
        const nicbarrier_udp_address_t p = any_address(&random);
        nicbarrier_udp_address_t q;
        unsigned char bytes[sizeof(p)];
        const uint32_t len = nicbarrier_udp_address_size(&p);
        memcpy(bytes, &p, len);
        for (uint64_t n = 1 + unit_below(&random, 3); n > 0; n--)
            bytes[unit_below(&random, len)] = (unsigned char)unit_random64(&random);
        if (nicbarrier_udp_address_decode(bytes, len, &q) != NULL)
            continue;
        accepted++;
        UNIT_CHECK(q.n >= 1 && q.n <= NICBARRIER_IPS_MAX && q.port != 0);
        UNIT_CHECK(nicbarrier_udp_address_size(&q) == len && memcmp(bytes, &q, len) == 0);
        for (int j = 0; j < q.n; j++)
            UNIT_CHECK(q.ip[j].prefix <= 128);
    }
    ck_assert_int_gt(accepted, 1000);
}
END_TEST

/* ---- choice --------------------------------------------------------------------------------- */

START_TEST(nearest_first)
{
    nicbarrier_udp_address_t mine = {.host = 1, .n = 3}, theirs = {.host = 2, .n = 5};
    nicbarrier_ip_t order[NICBARRIER_IPS_MAX + 1];

    mine.ip[0] = ip_of("10.1.0.1", 16);
    mine.ip[1] = ip_of("172.17.0.1", 16); /* a bridge that every host has */
    mine.ip[2] = ip_of("fd00::1", 64);
    theirs.ip[0] = ip_of("192.168.7.2", 24);
    theirs.ip[1] = ip_of("172.17.0.1", 16);
    theirs.ip[2] = ip_of("fd00::2", 64);
    theirs.ip[3] = ip_of("10.1.3.2", 16);
    theirs.ip[4] = ip_of("fd01::2", 64);
    ck_assert_int_eq(nicbarrier_udp_address_choose(&mine, &theirs, true, order), 4);
    ck_assert(is(&order[0], "fd00::2") && is(&order[1], "10.1.3.2"));
    ck_assert(is(&order[2], "192.168.7.2") && is(&order[3], "fd01::2"));
    ck_assert_int_eq(nicbarrier_udp_address_choose(&mine, &theirs, false, order), 2);
    ck_assert(is(&order[0], "10.1.3.2") && is(&order[1], "192.168.7.2"));
    theirs.host = 1;
    ck_assert_int_eq(nicbarrier_udp_address_choose(&mine, &theirs, false, order), 4);
    ck_assert(is(&order[0], "127.0.0.1") && is(&order[1], "172.17.0.1"));
    theirs.host = 2;
    theirs.n = 1;
    theirs.ip[0] = mine.ip[0];
    ck_assert_int_eq(nicbarrier_udp_address_choose(&mine, &theirs, true, order), 0);
}
END_TEST

START_TEST(as_many_as_there_can_be)
{
    nicbarrier_udp_address_t mine = {.host = 1, .n = 1}, theirs = {.host = 1, .n = 8};
    nicbarrier_ip_t order[NICBARRIER_IPS_MAX + 1];

    mine.ip[0] = ip_of("10.1.0.1", 16);
    for (uint8_t i = 0; i < 8; i++) {
        theirs.ip[i] = ip_of("10.0.0.1", 16);
        theirs.ip[i].bytes[13] = i;
    }
    ck_assert_int_eq(nicbarrier_udp_address_choose(&mine, &theirs, true, order), 9);
}
END_TEST

START_TEST(networks)
{
    const nicbarrier_ip_t p = ip_of("10.1.130.7", 24);
    const nicbarrier_ip_t inside[] = {ip_of("10.1.130.7", 32), ip_of("10.1.128.0", 18),
                                      ip_of("0.0.0.0", 0), ip_of("10.1.130.9", 28)};
    const nicbarrier_ip_t outside[] = {ip_of("10.1.130.6", 32), ip_of("10.1.130.9", 29),
                                       ip_of("10.1.0.0", 17), ip_of("::", 0)};

    for (int i = 0; i < 4; i++) {
        ck_assert(nicbarrier_ip_within(&p, &inside[i]));
        ck_assert(!nicbarrier_ip_within(&p, &outside[i]));
    }
}
END_TEST

/* ---- filters -------------------------------------------------------------------------------- */

START_TEST(filters)
{
    const nicbarrier_ip_t four = ip_of("10.1.2.3", 24), six = ip_of("fd00:1::5", 64);
    const struct {
        const char *filter;
        int four, six;
    } cases[] = {
        {"eth0", 1, 1},
        {"eth", 0, 0},
        {"eth1", 0, 0},
        {"lo,eth0", 1, 1},
        {"10.1.0.0/16", 1, 0},
        {"10.1.0.0/24,fd00::/16", 0, 1},
        {"10.1.2.3", 1, 0},
        {"^eth0", 0, 0},
        {"^lo,10.0.0.0/8", 0, 1},
        {"^lo", 1, 1},
        {"0.0.0.0/0", 1, 0},
        {"", -1, -1},
        {"^", -1, -1},
        {"eth0,", -1, -1},
        {",eth0", -1, -1},
        {"10.1.0.0/33", -1, -1},
        {"10.1.0.0/", -1, -1},
        {"10.1.0.0/-1", -1, -1},
        {"10.1.0.0/8x", -1, -1},
        {"10.1.0/16", -1, -1},
        {"fd00::/129", -1, -1},
        {"fd00:::5", -1, -1},
        {"eth0 ", -1, -1},
        {"eth0, lo", -1, -1},
        {"..", -1, -1},
        {"name-of-15-char", 0, 0},
        {"name-of-16-chars", -1, -1},
        {"eth0/8", -1, -1},
        {"a-name-that-is-longer-than-any-interface-or-address-can-be-in-this-world", -1, -1}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (nicbarrier_ip_wanted(&four, "eth0", cases[i].filter) != cases[i].four ||
            nicbarrier_ip_wanted(&six, "eth0", cases[i].filter) != cases[i].six)
            ck_abort_msg("filter '%s'", cases[i].filter);
        ck_assert(nicbarrier_ip_filter_valid(cases[i].filter) == (cases[i].four >= 0));
    }
}
END_TEST

int main(void)
{
    return UNIT_RUN("nicbarrier_udp_address", UNIT_ONCE(round_trip), UNIT_ONCE(damaged),
                    UNIT_ONCE(nearest_first), UNIT_ONCE(as_many_as_there_can_be),
                    UNIT_ONCE(networks), UNIT_ONCE(filters));
}
