/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine datagram over UDP. */
#include "test/unit/nicbarrier_group.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* ---- scenarios ------------------------------------------------------------------------------ */

static void many(test_t *t)
{
    begin(t, 77, NULL, 0);
    barriers(t, 1, 300);
    engine->disconnect(t->net);
}

static void outstanding(test_t *t)
{
    uint64_t entered = 0;
    unit_random_t random = {unit_seed() + (uint64_t)t->me};

    begin(t, 78, NULL, 0);
    for (uint64_t e = 1; e <= 400; e++) {
        while (entered < e || (entered < 400 && entered < e + 7 && !unit_once_in(&random, 4)))
            enter(t, ++entered);
        await(t, e);
    }
    engine->disconnect(t->net);
}

static uint64_t node_entered(void *arg)
{
    return atomic_load(&((test_t *)arg)->shared->node_entered);
}

/* Member 0 leads a node: its last process (played by member 1) arrives while it computes. */
static void woken(test_t *t)
{
    const nicbarrier_net_events_t events = {.entered = t->me == 0 ? node_entered : NULL, .arg = t};

    begin(t, 80, &events, 0);
    if (t->me == 0) {
        t->shared->follower_len = engine->follower_record(t->net, t->shared->follower);
        EXPECT(t->shared->follower_len > 0);
    }
    meet(t, 1);
    nap(30); /* the helper thread of member 0 has taken over, and sleeps */
    if (t->me == 0) {
        atomic_store(&t->shared->entered[0], 1);
        meet(t, 2);
        sleep_through(t, 1);
    } else {
        meet(t, 2);
        atomic_store(&t->shared->node_entered, 1);
        nicbarrier_follower_t *b = engine->attach(t->shared->follower, t->shared->follower_len);
        EXPECT(b != NULL);
        engine->notify(b, 1, false);
        EXPECT(engine->known(b) == 0);
        engine->detach(b);
        barriers(t, 1, 1);
    }
    engine->disconnect(t->net);
}

/* Where this member listens on the loopback interface. */
static struct sockaddr_in my_socket(test_t *t, uint32_t *cookie)
{
    const unsigned char *endpoint = t->shared->endpoint[t->me];
    nicbarrier_udp_address_t mine;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    EXPECT(nicbarrier_udp_address_decode(endpoint, t->shared->len[t->me], &mine) == NULL);
    to.sin_port = htons(mine.port);
    *cookie = mine.cookie;
    return to;
}

static void throw(test_t * t, int fd, const struct sockaddr_in *to, const nicbarrier_packet_t *p)
{
    unsigned char bytes[NICBARRIER_PACKET_SIZE];

    nicbarrier_packet_encode(p, bytes);
    EXPECT(sendto(fd, bytes, sizeof(bytes), 0, (const struct sockaddr *)to, sizeof(*to)) ==
           (ssize_t)sizeof(bytes));
}

/* Packets of strangers, malformed and well-formed, change nothing. */
static void strangers(test_t *t)
{
    unsigned char bytes[100] = {0};
    uint32_t cookie;
    nicbarrier_packet_t p = {.kind = NICBARRIER_PACKET_EPOCH, .key = 81, .epoch = 1};
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    begin(t, 81, NULL, 0);
    const struct sockaddr_in to = my_socket(t, &cookie);
    p.sender = (uint32_t)(1 - t->me);
    p.cookie = cookie + 1;
    nicbarrier_packet_encode(&p, bytes);
    for (size_t len = 0; len <= sizeof(bytes); len++)
        EXPECT(sendto(fd, bytes, len, 0, (const struct sockaddr *)&to, sizeof(to)) == (ssize_t)len);
    p.cookie = cookie;
    nicbarrier_packet_encode(&p, bytes);
    for (size_t len = 0; len <= sizeof(bytes); len++)
        if (len != NICBARRIER_PACKET_SIZE)
            EXPECT(sendto(fd, bytes, len, 0, (const struct sockaddr *)&to, sizeof(to)) ==
                   (ssize_t)len);
    look_on(t, 20);
    const uint64_t before = COUNT(refused);
    EXPECT(before > 0);
    /* The right cookie, but not a partner, and epochs that nobody can have come to. */
    p.at = 1;
    throw(t, fd, &to, &p);
    p.at = 0;
    p.epoch = NICBARRIER_OUTSTANDING_MAX + 1;
    throw(t, fd, &to, &p);
    p.epoch = INT64_MAX;
    throw(t, fd, &to, &p);
    look_on(t, 50);
    EXPECT(engine->completed(t->net) == 0);
    EXPECT(COUNT(refused) == before + 3);
    close(fd);
    meet(t, 1);
    barriers(t, 1, 1);
    engine->disconnect(t->net);
}

/* A second life of the engine in the same process, and groups side by side. */
static void again(test_t *t)
{
    nicbarrier_reason_t why = {""};
    nicbarrier_net_t *first;

    begin(t, 82, NULL, 0);
    barriers(t, 1, 1);
    engine->disconnect(t->net);
    meet(t, 1);
    engine->close();
    EXPECT(open_with(&t->config, &why) == 0);
    atomic_store(&t->shared->entered[t->me], 0);
    meet(t, 2);
    begin(t, 83, NULL, 3);
    first = t->net;
    meet(t, 4);
    begin(t, 84, NULL, 5);
    for (uint64_t e = 1; e <= 50; e++) {
        atomic_store(&t->shared->entered[t->me], e);
        engine->enter(t->net, e);
        engine->enter(first, e);
        await(t, e);
    }
    while (engine->completed(first) < 50)
        (void)engine->progress(first);
    engine->disconnect(first);
    engine->disconnect(t->net);
}

/* As the agreement does it: has the engine, or another member, found out that it is hopeless? */
static bool is_given_up(test_t *t, nicbarrier_reason_t *why)
{
    while (engine->completed(t->net) < 1) {
        (void)engine->progress(t->net);
        if (engine->failed(t->net) || engine->hopeless(t->net, why))
            return true;
        nap(1);
    }
    return false;
}

/* Member 0 sends nothing: 1 and 2 hear nothing of it, 3 waits for 1, which cannot go on, but is
 * there, and hears of it. Member 0 itself hears everybody. */
static void mute(test_t *t)
{
    nicbarrier_reason_t why = {""};

    if (t->me == 0)
        nicbarrier_datagram_config.drop = 1000;
    begin(t, 85, NULL, 0);
    enter(t, 1);
    meet(t, 1);
    if (t->me == 0) {
        await(t, 1);
        atomic_store(&t->shared->arrived[3], 1);
    }
    /* The others wait for it, however late it has its turn. */
    while (atomic_load(&t->shared->arrived[3]) == 0)
        look_on(t, 1);
    EXPECT(is_given_up(t, &why) == (t->me != 0));
    meet(t, 2);
    EXPECT(t->me != 3 || t->net->from[1]->alive);
    engine->disconnect(t->net);
}

/* Member 1 is mute and has two addresses, of which the second leads nowhere. Member 0 has found it
 * out of reach when it happens to use that one: nevertheless member 1 hears of the failure when its
 * question arrives at last, since the answer goes where the question came from. */
static void fail_at_a_wrong_address(test_t *t)
{
    nicbarrier_reason_t why;

    nicbarrier_datagram_config.drop = 1000;
    begin(t, 88, NULL, 0);
    nicbarrier_partner_t *p = &t->net->partner[0];
    if (t->me == 0) {
        p->ncandidates = 2;
        nicbarrier_udp_local(&p->candidate[1]); /* itself, whose packets have another cookie */
    }
    enter(t, 1);
    meet(t, 1);
    if (t->me == 0) {
        nicbarrier_datagram_config.drop = 0;
        EXPECT(!engine->hopeless(t->net, &why));
        while (!nicbarrier_reach_is_lost(p, onic_now_nsec()) || p->next != 1)
            look_on(t, 1);
        EXPECT(engine->hopeless(t->net, &why));
        meet(t, 2);
        while (atomic_load(&t->shared->arrived[3]) == 0)
            look_on(t, 1);
    } else {
        meet(t, 2);
        nicbarrier_datagram_config.drop = 0;
        while (!engine->failed(t->net)) {
            EXPECT(!engine->hopeless(t->net, &why));
            look_on(t, 1);
        }
        EXPECT(p->alive);
    }
    meet(t, 3);
    engine->disconnect(t->net);
}

/* Who waits, but has not asked yet, knows nothing; nor does who has been answered (late). */
static void ask_nobody(test_t *t)
{
    nicbarrier_reason_t why;

    nicbarrier_datagram_config.drop = 1000;
    begin(t, 87, NULL, 0);
    enter(t, 1);
    meet(t, 1);
    for (int i = 0; i < 300; i++) {
        EXPECT(!engine->hopeless(t->net, &why));
        look_on(t, 1);
    }
    EXPECT(COUNT(nacks) == 0);
    meet(t, 2);
    engine->disconnect(t->net);
}

static void late(test_t *t)
{
    nicbarrier_reason_t why;

    begin(t, 90, NULL, 0);
    if (t->me == 0) {
        const uint64_t begun = onic_now_nsec();
        enter(t, 1);
        meet(t, 1);
        for (int i = 0; i < 2000; i++) {
            EXPECT(!engine->hopeless(t->net, &why));
            look_on(t, 1);
        }
        /* Who is not answered asks once in the longest time. */
        const uint64_t asks = (onic_now_nsec() - begun) / nicbarrier_datagram.timing.cap;
        EXPECT(COUNT(nacks) > 0 && COUNT(nacks) < asks / 2);
    } else {
        meet(t, 1);
        nap(2000);
        enter(t, 1);
    }
    await(t, 1);
    barriers(t, 2, 20);
    engine->disconnect(t->net);
}

/* ---- failure -------------------------------------------------------------------------------- */

static void await_failure(test_t *t)
{
    while (!engine->failed(t->net)) {
        (void)engine->progress(t->net);
        nap(1);
    }
}

static void notified(test_t *t)
{
    begin(t, 91, NULL, 0);
    barriers(t, 1, 3);
    meet(t, 1);
    if (t->me == 0)
        engine->fail(t->net);
    else
        enter(t, 4);
    await_failure(t);
    EXPECT(engine->completed(t->net) == 3);
    engine->disconnect(t->net);
}

/* Member 0 ends without a word while the others wait for it. */
static void dies(test_t *t)
{
    begin(t, 92, NULL, 0);
    barriers(t, 1, 10);
    if (t->me == 0) {
        atomic_fetch_add(&t->shared->arrived[1], 1);
        atomic_fetch_add(&t->shared->arrived[15], 1);
        _exit(0);
    }
    meet(t, 1);
    enter(t, 11);
    await_failure(t);
    EXPECT(engine->completed(t->net) == 10);
    engine->disconnect(t->net);
}

static const scenario_t scenarios[] = {
    {.run = many, .n = 2},
    {.run = many, .n = 2, .drop = 100, .schedule = NICBARRIER_PAIRWISE},
    {.run = many, .n = 3, .drop = 20, .schedule = NICBARRIER_PAIRWISE},
    {.run = many, .n = 5, .drop = 20},
    {.run = many, .n = 6, .drop = 20, .schedule = NICBARRIER_GATHER_BROADCAST},
    {.run = many, .n = 4, .drop = 200, .nack_usec = 200},
    {.run = outstanding, .n = 4, .drop = 50},
    {.run = leave_early, .n = 8, .drop = 400, .nack_usec = 300},
    {.run = compute, .n = 5},
    {.run = compute, .n = 5, .drop = 300},
    {.run = woken, .n = 2, .nack_usec = NEVER_USEC},
    {.run = strangers, .n = 2},
    {.run = again, .n = 3, .drop = 20},
    {.run = mute, .n = 4},
    {.run = fail_at_a_wrong_address, .n = 2},
    {.run = ask_nobody, .n = 2, .nack_usec = NEVER_USEC},
    {.run = late, .n = 2},
    {.run = notified, .n = 7, .drop = 200},
    {.run = notified, .n = 5, .schedule = NICBARRIER_GATHER_BROADCAST},
    {.run = dies, .n = 5},
};

START_TEST(members)
{
    run(&scenarios[_i]);
}
END_TEST

/* ---- what cannot be had --------------------------------------------------------------------- */

START_TEST(reasons)
{
    config_t config = {.all = {.thread = true},
                       .own = {.nack_usec = 1000, .interface = "10.0.0.0/99"}};
    nicbarrier_reason_t why = {""};

    ck_assert_int_ne(open_with(&config, &why), 0);
    ck_assert_ptr_nonnull(strstr(why.text, "10.0.0.0/99"));
    config.own.interface = "no-such-if";
    ck_assert_int_ne(open_with(&config, &why), 0);
    ck_assert_ptr_nonnull(strstr(why.text, "no-such-if"));

    config.own.interface = "lo";
    config.all.thread = false;
    ck_assert_int_ne(open_with(&config, &why), 0);
    ck_assert_ptr_nonnull(strstr(why.text, "helper thread"));
    config.all.thread = true;
    const unsigned char zeros[7] = {0};
    ck_assert(!connects(&config, zeros, sizeof(zeros), &why));
    ck_assert_ptr_nonnull(strstr(why.text, "member 1"));
    engine->close();
}
END_TEST

int main(void)
{
    return UNIT_RUN("nicbarrier_datagram",
                    UNIT_LOOP(members, 0, sizeof(scenarios) / sizeof(scenarios[0])),
                    UNIT_ONCE(reasons));
}
