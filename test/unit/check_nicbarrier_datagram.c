/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Engine datagram without MPI: processes that this one forks, over real sockets on this host, with
 * packets dropped on purpose. The agreement's part (carrying the offers) is played by shared
 * memory.
 */
#include "coll_nicbarrier/datagram.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test/unit/unit.h"

enum { MEMBERS_MAX = 8, OFFER_ROOM = 256, SECONDS_MAX = 30 };

/* What all processes of a test share. */
typedef struct shared {
    unsigned char offer[MEMBERS_MAX][OFFER_ROOM];
    uint32_t len[MEMBERS_MAX];
    unsigned char poke[NICBARRIER_POKE_MAX];
    uint32_t poke_len;
    _Atomic int arrived[16]; /* at the meeting points of the test itself */
    _Atomic uint64_t entered[MEMBERS_MAX];
    _Atomic uint64_t node_entered; /* what events.entered says */
} shared_t;

typedef struct test {
    int n, me;
    shared_t *shared;
    nicbarrier_net_config_t config;
    nicbarrier_net_t *net;
    uint64_t key;
} test_t;

static const nicbarrier_engine_t *const engine = &nicbarrier_engine_datagram;

/* In a child a failed check ends it; the parent sees the exit code. */
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: process %d: %s\n", __FILE__, __LINE__, t->me, #condition);     \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static void nap(unsigned msec)
{
    const struct timespec time = {msec / 1000, (long)(msec % 1000) * 1000000};
    nanosleep(&time, NULL);
}

/* A meeting that does not use the engine. */
static void meet(test_t *t, int point)
{
    atomic_fetch_add(&t->shared->arrived[point], 1);
    while (atomic_load(&t->shared->arrived[point]) < t->n)
        nap(1);
}

/* ---- a group ----------------------------------------------------------------------------------
 */

static void begin(test_t *t, uint64_t key, const nicbarrier_net_events_t *events, int point)
{
    static const nicbarrier_net_events_t none;
    const nicbarrier_group_t group = {.key = key, .n = t->n, .me = t->me};
    const nicbarrier_offers_t offers = {t->shared->offer[0], OFFER_ROOM, t->shared->len};
    nicbarrier_reason_t why = {""};

    t->key = key;
    EXPECT(engine->offer(&group, &t->net, t->shared->offer[t->me], &t->shared->len[t->me], &why) ==
           0);
    EXPECT(t->shared->len[t->me] <= OFFER_ROOM);
    meet(t, point);
    EXPECT(engine->connect(t->net, &offers, events != NULL ? events : &none, &why) == 0);
}

static void enter(test_t *t, uint64_t epoch)
{
    atomic_store(&t->shared->entered[t->me], epoch);
    engine->enter(t->net, epoch);
}

/* What is complete, all have entered. */
static void check(test_t *t, uint64_t epoch)
{
    EXPECT(engine->completed(t->net) >= epoch);
    for (int i = 0; i < t->n; i++)
        EXPECT(atomic_load(&t->shared->entered[i]) >= epoch);
}

static void await(test_t *t, uint64_t epoch)
{
    for (int i = 0; engine->completed(t->net) < epoch; i++) {
        (void)engine->progress(t->net);
        if (i % 4 == 3)
            sched_yield();
        if (i % 64 == 63)
            engine->wait(t->net, 500);
    }
    check(t, epoch);
}

/* ---- processes --------------------------------------------------------------------------------
 */

typedef struct scenario {
    void (*run)(test_t *t);
    int n;
    unsigned drop, nack_usec;
    nicbarrier_schedule_kind_t schedule;
} scenario_t;

static void child(const scenario_t *s, shared_t *shared, int me)
{
    test_t test = {.n = s->n,
                   .me = me,
                   .shared = shared,
                   .config = {.schedule = (int)s->schedule,
                              .nack_usec = s->nack_usec != 0 ? s->nack_usec : 1000,
                              .drop = s->drop,
                              .interface = "lo",
                              .thread = true}};
    test_t *t = &test;
    nicbarrier_reason_t why = {""};

    alarm(SECONDS_MAX);
    EXPECT(engine->open(&t->config, &why) == 0);
    s->run(t);
    /* As the fence before MPI_Finalize. */
    meet(t, 15);
    engine->close();
    _exit(0);
}

static void run(const scenario_t *s)
{
    shared_t *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid[MEMBERS_MAX];
    bool failed = false;

    ck_assert_ptr_ne(shared, MAP_FAILED);
    for (int i = 0; i < s->n; i++) {
        pid[i] = fork();
        if (pid[i] == 0)
            child(s, shared, i);
        ck_assert_int_gt(pid[i], 0);
    }
    for (int i = 0; i < s->n; i++) {
        int status;
        ck_assert_int_eq(waitpid(pid[i], &status, 0), pid[i]);
        failed |= status != 0;
    }
    munmap(shared, sizeof(*shared));
    ck_assert(!failed);
}

/* ---- scenarios --------------------------------------------------------------------------------
 */

static void barriers(test_t *t)
{
    begin(t, 77, NULL, 0);
    for (uint64_t e = 1; e <= 300; e++) {
        enter(t, e);
        await(t, e);
    }
    engine->disconnect(t->net);
}

START_TEST(one_after_another)
{
    const scenario_t all[] = {{barriers, 2, 0, 0, NICBARRIER_DISSEMINATION},
                              {barriers, 2, 100, 0, NICBARRIER_PAIRWISE},
                              {barriers, 3, 20, 0, NICBARRIER_PAIRWISE},
                              {barriers, 5, 20, 0, NICBARRIER_DISSEMINATION},
                              {barriers, 6, 20, 0, NICBARRIER_GATHER_BROADCAST},
                              {barriers, 4, 200, 200, NICBARRIER_DISSEMINATION}};

    run(&all[_i]);
}
END_TEST

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

START_TEST(many_outstanding)
{
    const scenario_t s = {outstanding, 4, 50, 0, NICBARRIER_DISSEMINATION};

    run(&s);
}
END_TEST

/* Who has completed what it entered never looks at the network again, and half of them free the
 * group at once. The others still need their answers, which only the helper threads can give. */
static void leave_early(test_t *t)
{
    begin(t, 100, NULL, 0);
    enter(t, 1);
    await(t, 1);
    if (t->me % 2 == 0)
        engine->disconnect(t->net);
    meet(t, 1);
    if (t->me % 2 != 0)
        engine->disconnect(t->net);
}

START_TEST(answers_from_who_has_left)
{
    const scenario_t s = {leave_early, 8, 400, 300, NICBARRIER_DISSEMINATION};

    run(&s);
}
END_TEST

/* Nobody calls the engine between entering and the end. */
static void compute(test_t *t)
{
    begin(t, 79, NULL, 0);
    nap(20);
    enter(t, 3);
    for (int i = 0; i < 3000 && engine->completed(t->net) < 3; i++)
        nap(5);
    check(t, 3);
    engine->disconnect(t->net);
}

START_TEST(progress_while_computing)
{
    const scenario_t sure = {compute, 5, 0, 0, NICBARRIER_DISSEMINATION};
    const scenario_t lossy = {compute, 5, 300, 0, NICBARRIER_DISSEMINATION};

    run(&sure);
    run(&lossy);
}
END_TEST

static uint64_t node_entered(void *arg)
{
    return atomic_load(&((test_t *)arg)->shared->node_entered);
}

/* Member 0 leads a node: its last process (played by member 1) arrives while it computes. */
static void poked(test_t *t)
{
    const nicbarrier_net_events_t events = {NULL, t->me == 0 ? node_entered : NULL, t};

    begin(t, 80, &events, 0);
    if (t->me == 0) {
        t->shared->poke_len = engine->poke_record(t->net, t->shared->poke);
        EXPECT(t->shared->poke_len > 0);
    }
    meet(t, 1);
    nap(30); /* the helper thread of member 0 has taken over, and sleeps */
    if (t->me == 0) {
        atomic_store(&t->shared->entered[0], 1);
        meet(t, 2);
        for (int i = 0; i < 3000 && engine->completed(t->net) < 1; i++)
            nap(5);
        check(t, 1);
    } else {
        meet(t, 2);
        atomic_store(&t->shared->node_entered, 1);
        engine->poke(t->shared->poke, t->shared->poke_len);
        enter(t, 1);
        await(t, 1);
    }
    engine->disconnect(t->net);
}

START_TEST(a_poke_wakes_the_leader)
{
    const scenario_t s = {poked, 2, 0, 1000000, NICBARRIER_DISSEMINATION};

    run(&s);
}
END_TEST

/* Packets of strangers, malformed and well-formed, change nothing and are counted. */
static void strangers(test_t *t)
{
    nicbarrier_places_t mine;
    struct sockaddr_in to = {.sin_family = AF_INET};
    unsigned char bytes[100] = {0};
    nicbarrier_packet_t p = {.kind = NICBARRIER_PACKET_EPOCH, .key = 81, .epoch = 1};
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    begin(t, 81, NULL, 0);
    EXPECT(nicbarrier_places_decode(t->shared->offer[t->me], t->shared->len[t->me], &mine) == NULL);
    to.sin_port = htons(mine.port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    p.sender = (uint32_t)(1 - t->me);
    p.cookie = mine.cookie + 1;
    nicbarrier_packet_encode(&p, bytes);
    for (size_t len = 0; len <= sizeof(bytes); len++)
        EXPECT(sendto(fd, bytes, len, 0, (struct sockaddr *)&to, sizeof(to)) == (ssize_t)len);
    /* The right cookie, but not a partner; and a NACK for a group that never was. */
    p.cookie = mine.cookie;
    p.at = 1;
    nicbarrier_packet_encode(&p, bytes);
    EXPECT(sendto(fd, bytes, NICBARRIER_PACKET_SIZE, 0, (struct sockaddr *)&to, sizeof(to)) > 0);
    p = (nicbarrier_packet_t){
        .kind = NICBARRIER_PACKET_NACK, .key = 999, .epoch = 1, .cookie = mine.cookie};
    nicbarrier_packet_encode(&p, bytes);
    EXPECT(sendto(fd, bytes, NICBARRIER_PACKET_SIZE, 0, (struct sockaddr *)&to, sizeof(to)) > 0);
    close(fd);
    for (int i = 0; i < 50; i++) {
        (void)engine->progress(t->net);
        nap(1);
    }
    EXPECT(engine->completed(t->net) == 0);
    EXPECT(atomic_load(&nicbarrier_datagram_counters.refused) == sizeof(bytes) + 3);
    enter(t, 1);
    await(t, 1);
    engine->disconnect(t->net);
}

START_TEST(strangers_are_refused)
{
    const scenario_t s = {strangers, 2, 0, 0, NICBARRIER_DISSEMINATION};

    run(&s);
}
END_TEST

/* A second life of the engine in the same process, and groups side by side. */
static void again(test_t *t)
{
    nicbarrier_reason_t why = {""};
    nicbarrier_net_t *first;

    begin(t, 82, NULL, 0);
    enter(t, 1);
    await(t, 1);
    engine->disconnect(t->net);
    meet(t, 1);
    engine->close();
    EXPECT(engine->open(&t->config, &why) == 0);
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

START_TEST(opened_again)
{
    const scenario_t s = {again, 3, 20, 0, NICBARRIER_DISSEMINATION};

    run(&s);
}
END_TEST

/* ---- what cannot be had -----------------------------------------------------------------------
 */

START_TEST(reasons)
{
    nicbarrier_net_config_t config = {
        .nack_usec = 1000, .interface = "10.0.0.0/99", .thread = true};
    nicbarrier_reason_t why = {""};

    ck_assert_int_ne(engine->open(&config, &why), 0);
    ck_assert_ptr_nonnull(strstr(why.text, "10.0.0.0/99"));
    config.interface = "no-such-if";
    ck_assert_int_ne(engine->open(&config, &why), 0);
    ck_assert_ptr_nonnull(strstr(why.text, "no-such-if"));

    config.interface = "lo";
    config.thread = false;
    ck_assert_int_ne(engine->open(&config, &why), 0);
    ck_assert_ptr_nonnull(strstr(why.text, "helper thread"));
    config.thread = true;
    ck_assert_int_eq(engine->open(&config, &why), 0);
    const nicbarrier_group_t group = {.key = 5, .n = 2, .me = 0};
    nicbarrier_net_t *net;
    unsigned char offer[2 * OFFER_ROOM] = {0};
    uint32_t len[2] = {0, 7};
    const nicbarrier_offers_t offers = {offer, OFFER_ROOM, len};
    const nicbarrier_net_events_t none = {NULL, NULL, NULL};
    ck_assert_int_eq(engine->offer(&group, &net, offer, &len[0], &why), 0);
    ck_assert_int_ne(engine->connect(net, &offers, &none, &why), 0);
    ck_assert_ptr_nonnull(strstr(why.text, "member 1"));
    engine->disconnect(net);
    engine->close();
    engine->close();
}
END_TEST

int main(void)
{
    const TTest *const each[] = {one_after_another};
    const TTest *const tests[] = {many_outstanding,
                                  answers_from_who_has_left,
                                  progress_while_computing,
                                  a_poke_wakes_the_leader,
                                  strangers_are_refused,
                                  opened_again,
                                  reasons};

    return unit_run_loop("nicbarrier_datagram", each, 1, 6, tests,
                         sizeof(tests) / sizeof(tests[0]));
}
