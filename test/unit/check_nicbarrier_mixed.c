/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Engine datagram over two transports. In place of verbs there is an adapter made for tests, which
 * steps nothing here, and of which members may lack the device, or be unreachable or dumb.
 */
#include "test/unit/nicbarrier_adapter.h"
#include "test/unit/nicbarrier_group.h"

/* ---- members -------------------------------------------------------------------------------- */

static void first_is_absent(int me)
{
    adapter_config.absent = me == 0;
}

static void first_hears_nothing(int me)
{
    adapter_config.deaf = me == 0;
}

static void first_is_dumb(int me)
{
    adapter_config.dumb = me == 0;
}

static void all_hear_nothing(int me)
{
    adapter_config.deaf = me >= 0;
}

static void expect(test_t *t)
{
    nicbarrier_reason_t why;

    (void)engine->hopeless(t->net, &why);
}

/* The first epoch is a trial, as the agreement does it. */
static void begin_expecting(test_t *t, uint64_t key)
{
    begin(t, key, NULL, 0);
    enter(t, 1);
    meet(t, 1);
    expect(t);
    await(t, 1);
}

static void more_barriers(test_t *t)
{
    barriers(t, 2, 201);
    meet(t, 14); /* nobody misses anything any more */
}

/* ---- scenarios ------------------------------------------------------------------------------ */

static void by_verbs_alone(test_t *t)
{
    begin_expecting(t, 90);
    more_barriers(t);
    EXPECT(COUNT(fallbacks) == 0);
    EXPECT(COUNT(verbs_sent) >= 200);
    engine->disconnect(t->net);
}

static void by_udp_alone(test_t *t)
{
    begin_expecting(t, 91);
    more_barriers(t);
    EXPECT(COUNT(verbs_sent) == 0);
    engine->disconnect(t->net);
}

/* Member 0 by UDP, the others among them by verbs. Of four each has a partner that has verbs. */
static void by_both(test_t *t)
{
    begin_expecting(t, 92);
    more_barriers(t);
    EXPECT(COUNT(fallbacks) == 0);
    EXPECT((COUNT(verbs_sent) > 0) == (t->me != 0));
    engine->disconnect(t->net);
}

/* What does not get through by verbs does by UDP, and from the trial on without asking. */
static void by_udp_at_last(test_t *t)
{
    begin_expecting(t, 93);
    EXPECT(COUNT(verbs_sent) > 0);
    meet(t, 2);
    more_barriers(t);
    engine->disconnect(t->net);
}

static void by_udp_from_both_sides(test_t *t)
{
    begin_expecting(t, 94);
    const uint64_t before = COUNT(verbs_sent);
    more_barriers(t);
    EXPECT(COUNT(fallbacks) > 0);
    EXPECT(COUNT(verbs_sent) == before);
    engine->disconnect(t->net);
}

/* Who is slow to begin, or computes for long, is not taken for one that verbs does not reach, also
 * by whom it sent something before that could know where it came from. */
static void slow(test_t *t)
{
    t->late = t->me == 2 ? 1500 : 0; /* longer than verbs has before it is given up */
    begin(t, 95, NULL, 0);
    if (t->me == 0)
        nap(500);
    else {
        enter(t, 1);
        look_on(t, 500);
    }
    if (t->me == 0)
        enter(t, 1);
    meet(t, 1);
    expect(t);
    await(t, 1);
    if (t->me == 1)
        nap(1000);
    more_barriers(t);
    EXPECT(COUNT(nacks) > 0 || t->me == 0);
    EXPECT(COUNT(fallbacks) == 0);
    EXPECT(COUNT(verbs_sent) >= 200);
    engine->disconnect(t->net);
}

/* Where it must be verbs, UDP does not help out. */
static void nothing(test_t *t)
{
    begin(t, 96, NULL, 0);
    enter(t, 1);
    meet(t, 1);
    expect(t);
    look_on(t, 500);
    EXPECT(engine->completed(t->net) == 0);
    EXPECT(COUNT(fallbacks) == 0);
    EXPECT(COUNT(verbs_sent) > COUNT(nacks));
    meet(t, 2);
    engine->disconnect(t->net);
}

static void leave_verbs_early(test_t *t)
{
    leave_early(t);
    EXPECT(COUNT(verbs_sent) > 0);
}

static const scenario_t scenarios[] = {
    {.run = by_verbs_alone, .n = 4},
    {.run = by_verbs_alone, .n = 5, .drop = 100, .schedule = NICBARRIER_GATHER_BROADCAST},
    {.run = by_verbs_alone, .n = 3, .drop = 50, .verbs = NICBARRIER_VERBS_ALWAYS},
    {.run = by_udp_alone, .n = 3, .verbs = NICBARRIER_VERBS_NEVER},
    {.run = by_both, .n = 4, .prepare = first_is_absent},
    {.run = by_both, .n = 4, .drop = 50, .prepare = first_is_absent},
    {.run = by_udp_at_last, .n = 2, .prepare = first_hears_nothing},
    {.run = by_udp_at_last, .n = 4, .prepare = first_hears_nothing},
    {.run = by_udp_at_last,
     .n = 4,
     .schedule = NICBARRIER_GATHER_BROADCAST,
     .prepare = first_is_dumb},
    {.run = by_udp_at_last, .n = 5, .drop = 50, .prepare = first_is_dumb},
    {.run = by_udp_from_both_sides, .n = 4, .prepare = all_hear_nothing},
    {.run = by_udp_from_both_sides, .n = 3, .drop = 50, .prepare = all_hear_nothing},
    {.run = slow, .n = 3},
    {.run = nothing, .n = 2, .verbs = NICBARRIER_VERBS_ALWAYS, .prepare = all_hear_nothing},
    {.run = leave_verbs_early,
     .n = 8,
     .drop = 400,
     .nack_usec = 300,
     .verbs = NICBARRIER_VERBS_ALWAYS},
    {.run = compute, .n = 5, .drop = 300, .prepare = first_is_absent},
};

START_TEST(transports)
{
    run(&scenarios[_i]);
}
END_TEST

/* ---- what cannot be had --------------------------------------------------------------------- */

/* Connects to a member whose endpoint has these addresses, and a port of so many bytes; returns
 * whether that works. */
static bool connects_by(nicbarrier_verbs_use_t use, const nicbarrier_udp_address_t *udp,
                        uint32_t port, nicbarrier_reason_t *why)
{
    const config_t config = {.all = {.thread = true},
                             .own = {.nack_usec = 1000, .interface = "lo", .verbs = (int)use}};
    const uint32_t len = nicbarrier_udp_address_size(udp);
    unsigned char endpoint[ENDPOINT_ROOM];

    memcpy(endpoint, udp, len);
    memcpy(endpoint + len, "xyz", port);
    return connects(&config, endpoint, len + port, why);
}

START_TEST(reasons)
{
    nicbarrier_udp_address_t udp = {
        .host = 1, .cookie = 2, .port = 3, .n = 1, .ip = {nicbarrier_ip_loopback}};
    uint32_t port = 2;
    nicbarrier_reason_t why = {""};

    udp.ip[0].bytes[12] = 10;
    ck_assert(connects_by(NICBARRIER_VERBS_AUTO, &udp, port, &why));
    ck_assert(connects_by(NICBARRIER_VERBS_ALWAYS, &udp, port, &why));
    ck_assert(connects_by(NICBARRIER_VERBS_NEVER, &udp, port, &why));
    port = 3;
    ck_assert(!connects_by(NICBARRIER_VERBS_AUTO, &udp, port, &why));
    ck_assert_ptr_nonnull(strstr(why.text, "verbs address of member 1"));
    port = 0;
    ck_assert(connects_by(NICBARRIER_VERBS_AUTO, &udp, port, &why));
    ck_assert(!connects_by(NICBARRIER_VERBS_ALWAYS, &udp, port, &why));
    ck_assert_ptr_nonnull(strstr(why.text, "member 1 has no verbs device"));

    /* No address to reach it by UDP: mine. */
    udp.ip[0] = nicbarrier_ip_loopback;
    ck_assert(!connects_by(NICBARRIER_VERBS_AUTO, &udp, port, &why));
    ck_assert_ptr_nonnull(strstr(why.text, "no address"));
    port = 2;
    ck_assert(connects_by(NICBARRIER_VERBS_AUTO, &udp, port, &why));
    ck_assert(connects_by(NICBARRIER_VERBS_ALWAYS, &udp, port, &why));

    adapter_config.absent = true;
    ck_assert(connects_by(NICBARRIER_VERBS_NEVER, &udp, port, &why) == false);
    const config_t config = {
        .all = {.thread = true},
        .own = {.nack_usec = 1000, .interface = "lo", .verbs = NICBARRIER_VERBS_ALWAYS}};
    ck_assert_int_ne(open_with(&config, &why), 0);
    ck_assert_str_eq(why.text, "no device");
}
END_TEST

int main(void)
{
    adapter_config.calm = adapter_config.plain = true;
    return UNIT_RUN("nicbarrier_mixed",
                    UNIT_LOOP(transports, 0, sizeof(scenarios) / sizeof(scenarios[0])),
                    UNIT_ONCE(reasons));
}
