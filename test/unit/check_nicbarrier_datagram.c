/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Engine datagram over UDP: what only this one does. What every engine must do is tested with
 * others (check_nicbarrier_conformance).
 */
#include "test/unit/nicbarrier_group.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* ---- scenarios ------------------------------------------------------------------------------ */

static uint64_t node_entered(void *arg)
{
    return atomic_load(&((test_t *)arg)->shared->node_entered);
}

static uint64_t leader_begun(void *arg)
{
    return atomic_load(&((test_t *)arg)->shared->entered[0]);
}

/* Member 0 leads a node: its last process (played by member 1) arrives while it computes. Long
 * timers would not find that. */
static void node_arrives(test_t *t)
{
    const bool leads = t->me == 0;
    const nicbarrier_net_events_t events = {
        .entered = leads ? node_entered : NULL, .begun = leads ? leader_begun : NULL, .arg = t};

    begin(t, 80, &events, 0);
    if (leads)
        atomic_store(&t->shared->entered[0], 1);
    else
        enter(t, 1); /* so no packet of this one comes later */
    meet(t, 1);
    nap(30); /* the helper thread of member 0 has taken over, and sleeps */
    if (leads) {
        meet(t, 2);
        sleep_through(t, 1);
    } else {
        meet(t, 2);
        atomic_store(&t->shared->node_entered, 1);
        await(t, 1);
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
    to.sin_port = mine.port;
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

static void late(test_t *t)
{
    begin(t, 90, NULL, 0);
    if (t->me == 0) {
        const uint64_t begun = onic_now_nsec();
        enter(t, 1);
        meet(t, 1);
        look_on(t, 2000);
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
    while (!engine->failed(t->net))
        look_on(t, 1);
    EXPECT(engine->completed(t->net) == 10);
    engine->disconnect(t->net);
}

static const scenario_t scenarios[] = {
    {.run = leave_early, .n = 8, .drop = 400, .nack_usec = 300},
    {.run = compute, .n = 5},
    {.run = compute, .n = 5, .drop = 300},
    {.run = node_arrives, .n = 2, .nack_usec = NEVER_USEC},
    {.run = strangers, .n = 2},
    {.run = again, .n = 3, .drop = 20},
    {.run = late, .n = 2},
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
