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
    nicbarrier_udp_address_t p = {.host = unit_random64(r),
                                  .cookie = (uint32_t)unit_random64(r),
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
    }
    ck_assert_int_gt(accepted, 1000);
}
END_TEST

/* ---- choice --------------------------------------------------------------------------------- */

START_TEST(nearest_first)
{
    nicbarrier_udp_address_t mine = {.host = 1, .n = 2}, theirs = {.host = 2, .n = 4, .port = 7};
    nicbarrier_address_t to;

    mine.ip[0] = within("10.1.0.1", "255.255.0.0");
    mine.ip[1] = within("172.17.0.1", "255.255.0.0"); /* a bridge that every host has */
    theirs.ip[0] = within("192.168.7.2", "255.255.255.0");
    theirs.ip[1] = within("172.17.0.1", "255.255.0.0");
    theirs.ip[2] = within("10.1.3.2", "255.255.0.0");
    theirs.ip[3] = within("10.1.3.3", "255.255.0.0");
    ck_assert(nicbarrier_udp_address_choose(&mine, &theirs, &to));
    ck_assert(to.ip == ip_of("10.1.3.2") && to.port == 7);
    theirs.n = 2;
    ck_assert(nicbarrier_udp_address_choose(&mine, &theirs, &to));
    ck_assert(to.ip == ip_of("192.168.7.2"));
    theirs.host = 1;
    ck_assert(nicbarrier_udp_address_choose(&mine, &theirs, &to));
    ck_assert(to.ip == ip_of("127.0.0.1") && to.port == 7);
    theirs.host = 2;
    theirs.ip[0] = mine.ip[0];
    ck_assert(!nicbarrier_udp_address_choose(&mine, &theirs, &to));
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
    return UNIT_RUN("nicbarrier_udp_address", UNIT_ONCE(round_trip), UNIT_ONCE(damaged),
                    UNIT_ONCE(nearest_first), UNIT_ONCE(interfaces));
}
