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
            ck_assert_int_eq(onic_verbs_obstacle(&all[i], &all[j]) == NULL, i == j);
            ck_assert_int_eq(onic_verbs_obstacle(&all[i], &near[j]) == NULL, i == j);
            ck_assert_int_eq(onic_verbs_obstacle(&near[j], &all[i]) == NULL, i == j);
        }
    }
}
END_TEST

/* ---- choice ---------------------------------------------------------------------------------- */

START_TEST(filters)
{
    static const char *const good[] = {"",           "mlx5_0",        "mlx5_0:1",     "mlx5_0:255",
                                       "mlx5_0:1:0", "a,b:2,c:1:255", "mlx5_0,mlx5_1"};
    static const char *const bad[] = {
        ",",       "a,",   ",a", "a:",   "a:0",  "a:256", "a:x",  "a:1:", "a:1:256",
        "a:1:2:3", "a::1", ":1", "a,,b", "a:+1", "a: 1",  "a:1x", "a:-1", "a:99999999999999999999"};

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        ck_assert_msg(onic_verbs_filter_valid(good[i]), "%s", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(!onic_verbs_filter_valid(bad[i]), "%s", bad[i]);
    ck_assert(onic_verbs_device_wanted("", "x"));
    ck_assert(onic_verbs_device_wanted("a,mlx5_1:2:3", "mlx5_1"));
    ck_assert(onic_verbs_device_wanted("a,mlx5_1:2:3", "a"));
    ck_assert(!onic_verbs_device_wanted("mlx5_1", "mlx5_10"));
    ck_assert(!onic_verbs_device_wanted("mlx5_10", "mlx5_1"));
}
END_TEST

START_TEST(ports)
{
    const onic_verbs_seen_t seen[] = {{"eth0", 1, false, 2000},
                                      {"ib0", 1, true, 400},
                                      {"ib0", 2, true, 1000},
                                      {"ib1", 1, true, 1000},
                                      {"eth0", 2, false, 2500}};
    static const struct {
        const char *filter;
        int port, index;
    } cases[] = {{"", 2, -1},           {"eth0", 4, -1},
                 {"eth0:1", 0, -1},     {"eth0:1:7", 0, 7},
                 {"ib0", 2, -1},        {"none,ib0:1,eth0", 1, -1},
                 {"eth0:3,ib1", 3, -1}, {"eth0:3:5,ib1:1", 3, -1},
                 {"eth", -1, -1},       {"none:1:1", -1, -1}};
    int index;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert(onic_verbs_filter_valid(cases[i].filter));
        ck_assert_int_eq(onic_verbs_choose(seen, 5, cases[i].filter, &index), cases[i].port);
        ck_assert_int_eq(index, cases[i].index);
    }
    ck_assert_int_eq(onic_verbs_choose(seen, 1, "", &index), 0);
    ck_assert_int_eq(onic_verbs_choose(seen, 0, "", &index), -1);
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
    unit_random_t random = {unit_seed()};
    onic_verbs_gid_t g[8];

    memset(g, 0, sizeof(g));
    ck_assert_int_eq(onic_verbs_choose_gid(g, 0), -1);
    g[0].link = ONIC_VERBS_ROCE2;  /* no address */
    set_gid(g[1].gid, "10.0.0.1"); /* no link */
    ck_assert_int_eq(onic_verbs_choose_gid(g, 2), -1);
    for (int i = 0; i < 2000; i++) {
        int best = -1, most = -1;
        const int n = 1 + (int)unit_below(&random, 8);
        for (int j = 0; j < n; j++) {
            const int which = (int)unit_below(&random, 6);
            g[j].link = (uint8_t)order[which].link;
            set_gid(g[j].gid, order[which].gid);
            best = which > most ? j : best;
            most = which > most ? which : most;
        }
        UNIT_CHECK(onic_verbs_choose_gid(g, n) == best);
    }
}
END_TEST

int main(void)
{
    return UNIT_RUN("verbs_port", UNIT_ONCE(obstacles), UNIT_ONCE(filters), UNIT_ONCE(ports),
                    UNIT_ONCE(rates), UNIT_ONCE(gids));
}
