/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Addresses in endpoint records: their wire form, the choice among them, and filters. */
#include "coll_nicbarrier/engines/datagram/udp_address.h"

#include <arpa/inet.h>
#include <string.h>

#include "test/unit/unit.h"

static uint32_t ip_of(const char *text)
{
    uint32_t ip;

    ck_assert_int_eq(inet_pton(AF_INET, text, &ip), 1);
    return ip;
}

static nicbarrier_ip_t within(const char *text, const char *mask)
{
    return (nicbarrier_ip_t){ip_of(text), ip_of(mask)};
}

/* ---- wire form ------------------------------------------------------------------------------ */

static nicbarrier_udp_address_t any_address(unit_random_t *r)
{
    nicbarrier_udp_address_t p = {.cookie = (uint32_t)unit_random64(r),
                                  .port = (uint16_t)(1 + unit_below(r, 65535)),
                                  .n = (uint8_t)(1 + unit_below(r, NICBARRIER_IPS_MAX))};

    for (int i = 0; i < p.n; i++)
        p.ip[i] = (nicbarrier_ip_t){(uint32_t)unit_random64(r), (uint32_t)unit_random64(r)};
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
        UNIT_CHECK(q.cookie == p.cookie && q.port == p.port && q.n == p.n);
        UNIT_CHECK(memcmp(q.ip, p.ip, sizeof(p.ip)) == 0);
    }
}
END_TEST

START_TEST(refused)
{
    const nicbarrier_udp_address_t good = {.port = 1, .n = 1};
    nicbarrier_udp_address_t p, q;
    const size_t len = nicbarrier_udp_address_size(&good);

    ck_assert_ptr_null(nicbarrier_udp_address_decode(&good, len, &q));
    p = good;
    p.port = 0;
    ck_assert_ptr_nonnull(nicbarrier_udp_address_decode(&p, len, &q));
    p = good;
    p.zero = 1;
    ck_assert_ptr_nonnull(nicbarrier_udp_address_decode(&p, len, &q));
    p = good;
    p.n = 0;
    ck_assert_ptr_nonnull(
        nicbarrier_udp_address_decode(&p, offsetof(nicbarrier_udp_address_t, ip), &q));
    p.n = NICBARRIER_IPS_MAX + 1;
    ck_assert_ptr_nonnull(nicbarrier_udp_address_decode(&p, sizeof(p), &q));
}
END_TEST

/* ---- choice --------------------------------------------------------------------------------- */

START_TEST(nearest_first)
{
    nicbarrier_udp_address_t mine = {.n = 2}, theirs = {.n = 4, .port = 7};

    mine.ip[0] = within("10.1.0.1", "255.255.0.0");
    mine.ip[1] = within("172.17.0.1", "255.255.0.0"); /* a bridge that every host has */
    theirs.ip[0] = within("192.168.7.2", "255.255.255.0");
    theirs.ip[1] = within("172.17.0.1", "255.255.0.0");
    theirs.ip[2] = within("10.1.3.2", "255.255.0.0");
    theirs.ip[3] = within("10.1.3.3", "255.255.0.0");
    const nicbarrier_address_t near = nicbarrier_udp_address_choose(&mine, &theirs);
    ck_assert(near.ip == ip_of("10.1.3.2") && near.port == 7);
    theirs.ip[2] = within("192.168.9.9", "255.255.255.0");
    theirs.n = 3;
    ck_assert(nicbarrier_udp_address_choose(&mine, &theirs).ip == ip_of("192.168.7.2"));
    /* On this host, of which the partner uses fewer interfaces, or the same ones. */
    theirs.n = 1;
    for (int i = 0; i < 2; i++) {
        theirs.ip[0] = mine.ip[i];
        const nicbarrier_address_t same = nicbarrier_udp_address_choose(&mine, &theirs);
        ck_assert(same.ip == ip_of("127.0.0.1") && same.port == 7);
    }
}
END_TEST

START_TEST(interfaces)
{
    ck_assert(nicbarrier_interface_is_in("eth0", "eth0"));
    ck_assert(nicbarrier_interface_is_in("eth0", "lo,eth0"));
    ck_assert(nicbarrier_interface_is_in("lo", "lo,eth0"));
    ck_assert(!nicbarrier_interface_is_in("eth0", ""));
    ck_assert(!nicbarrier_interface_is_in("eth0", "eth,eth01,"));
    ck_assert(!nicbarrier_interface_is_in("h0", "eth0"));
}
END_TEST

int main(void)
{
    return UNIT_RUN("nicbarrier_udp_address", UNIT_ONCE(round_trip), UNIT_ONCE(refused),
                    UNIT_ONCE(nearest_first), UNIT_ONCE(interfaces));
}
