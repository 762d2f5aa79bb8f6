/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Ports of verbs devices: wire form, filters, choice. */
#include "common/transport/verbs/verbs_port.h"

#include <arpa/inet.h>
#include <string.h>

#include "test/unit/unit.h"

static void set_gid(uint8_t gid[16], const char *text)
{
    static const uint8_t four[12] = {[10] = 0xff, [11] = 0xff};

    if (strchr(text, '.') != NULL) {
        memcpy(gid, four, sizeof(four));
        ck_assert_int_eq(inet_pton(AF_INET, text, gid + 12), 1);
    } else {
        ck_assert_int_eq(inet_pton(AF_INET6, text, gid), 1);
    }
}

static onic_verbs_address_t roce(onic_verbs_link_t link, const char *gid)
{
    onic_verbs_address_t a;

    memset(&a, 0, sizeof(a));
    a.link = (uint8_t)link;
    a.qpn = 17;
    set_gid(a.gid, gid);
    return a;
}

static onic_verbs_address_t infiniband(uint16_t lid, const char *gid)
{
    onic_verbs_address_t a = roce(ONIC_VERBS_INFINIBAND, gid);

    a.lid = lid;
    return a;
}

/* ---- who reaches whom ------------------------------------------------------------------------ */

START_TEST(obstacles)
{
    const onic_verbs_address_t all[] = {infiniband(3, "fe80::2:1"), infiniband(4, "fe80:0:0:1::1"),
                                        roce(ONIC_VERBS_ROCE1, "10.0.0.1"),
                                        roce(ONIC_VERBS_ROCE2, "10.0.0.1"),
                                        roce(ONIC_VERBS_ROCE2, "fe80::1")};
    const onic_verbs_address_t near[] = {
        infiniband(5, "fe80::7"), infiniband(5, "fe80:0:0:1::9"), roce(ONIC_VERBS_ROCE1, "fe80::7"),
        roce(ONIC_VERBS_ROCE2, "192.168.0.1"), roce(ONIC_VERBS_ROCE2, "fd00::1")};

    for (int i = 0; i < 5; i++) {
        for (int j = 0; j < 5; j++) {
            ck_assert_int_eq(onic_verbs_reaches(&all[i], &all[j]), i == j);
            ck_assert_int_eq(onic_verbs_reaches(&all[i], &near[j]), i == j);
            ck_assert_int_eq(onic_verbs_reaches(&near[j], &all[i]), i == j);
        }
    }
}
END_TEST

/* ---- choice ---------------------------------------------------------------------------------- */

START_TEST(ports)
{
    /* Worst first. */
    static const onic_verbs_seen_t seen[] = {
        {1, false, 2000}, {2, false, 2500}, {1, true, 400}, {2, true, 1000}};

    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            ck_assert_int_eq(onic_verbs_is_better(&seen[i], &seen[j]), i > j);
}
END_TEST

START_TEST(rates)
{
    ck_assert_uint_eq(onic_verbs_rate(32, 2), 1000); /* EDR, 4 lanes */
    ck_assert_uint_eq(onic_verbs_rate(1, 1), 25);
    ck_assert_uint_eq(onic_verbs_rate(64, 16), 1000);
    ck_assert_uint_eq(onic_verbs_rate(3, 1), 0);
    ck_assert_uint_eq(onic_verbs_rate(1, 3), 0);
    ck_assert_uint_eq(onic_verbs_rate(0, 0), 0);
}
END_TEST

START_TEST(gids)
{
    /* Worst first. */
    static const struct {
        onic_verbs_link_t link;
        const char *gid;
    } order[] = {{ONIC_VERBS_ROCE1, "fe80::1"},  {ONIC_VERBS_ROCE1, "fd00::1"},
                 {ONIC_VERBS_ROCE1, "10.0.0.1"}, {ONIC_VERBS_ROCE2, "fe80::1"},
                 {ONIC_VERBS_ROCE2, "fd00::1"},  {ONIC_VERBS_ROCE2, "10.0.0.1"}};
    onic_verbs_address_t g = {.link = ONIC_VERBS_ROCE2};
    int before = 0;

    ck_assert_int_eq(onic_verbs_worth(&g), 0); /* no address */
    for (int i = 0; i < 6; i++) {
        g.link = (uint8_t)order[i].link;
        set_gid(g.gid, order[i].gid);
        ck_assert_int_gt(onic_verbs_worth(&g), before);
        before = onic_verbs_worth(&g);
    }
    g.link = 0; /* no link */
    ck_assert_int_eq(onic_verbs_worth(&g), 0);
}
END_TEST

int main(void)
{
    return UNIT_RUN("verbs_port", UNIT_ONCE(obstacles), UNIT_ONCE(ports), UNIT_ONCE(rates),
                    UNIT_ONCE(gids));
}
