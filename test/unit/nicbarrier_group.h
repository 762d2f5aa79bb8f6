/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Engine datagram without MPI: processes that the test forks, over real sockets on this host, with
 * packets dropped on purpose. The agreement's part (carrying the endpoints) is played by shared
 * memory.
 */
#pragma once

#include "coll_nicbarrier/engines/datagram/state.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test/unit/unit.h"

enum { MEMBERS_MAX = 8, ENDPOINT_ROOM = 256 };

/* What all processes of a test share. */
typedef struct shared {
    unsigned char endpoint[MEMBERS_MAX][ENDPOINT_ROOM];
    uint32_t len[MEMBERS_MAX];
    _Atomic int arrived[16]; /* at the meeting points of the test itself */
    _Atomic uint64_t entered[MEMBERS_MAX];
    _Atomic uint64_t node_entered; /* what events.entered says */
} shared_t;

/* What the user may set. */
typedef struct config {
    nicbarrier_engine_settings_t all;
    nicbarrier_datagram_config_t own;
} config_t;

typedef struct test {
    int n, me;
    shared_t *shared;
    config_t config;
    nicbarrier_net_t *net;
    uint64_t key;
    unsigned late; /* milliseconds until it connects, while others may have begun */
} test_t;

static const nicbarrier_engine_t *const engine = &nicbarrier_engine_datagram;

static inline int open_with(const config_t *config, nicbarrier_reason_t *why)
{
    nicbarrier_datagram_config = config->own;
    return engine->open(&config->all, why);
}

/* So long that no NACK is ever sent: longer than a test may take. */
enum { NEVER_USEC = 2 * UNIT_SECONDS * 1000000 };

#define COUNT(name) atomic_load(&nicbarrier_datagram_counters.name)

/* In a child a failed check ends it; the parent sees the exit code. */
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: process %d: %s\n", __FILE__, __LINE__, t->me, #condition);     \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static inline void nap(unsigned msec)
{
    const struct timespec time = {msec / 1000, (long)(msec % 1000) * 1000000};
    nanosleep(&time, NULL);
}

/* A meeting that does not use the engine. */
static inline void meet(test_t *t, int point)
{
    atomic_fetch_add(&t->shared->arrived[point], 1);
    while (atomic_load(&t->shared->arrived[point]) < t->n)
        nap(1);
}

/* ---- a group -------------------------------------------------------------------------------- */

/* Makes a group of all; false where this member cannot connect. */
static inline bool joins(test_t *t, uint64_t key, const nicbarrier_net_events_t *events, int point,
                         nicbarrier_reason_t *why)
{
    static const nicbarrier_net_events_t none;
    const nicbarrier_group_t group = {.key = key, .n = t->n, .me = t->me};
    nicbarrier_endpoint_t list[MEMBERS_MAX];
    const nicbarrier_endpoints_t endpoints = {t->n, list};

    t->key = key;
    EXPECT(engine->prepare(&group, &t->net, t->shared->endpoint[t->me], &t->shared->len[t->me],
                           why) == 0);
    EXPECT(t->shared->len[t->me] <= ENDPOINT_ROOM);
    meet(t, point);
    nap(t->late);
    for (int i = 0; i < t->n; i++)
        list[i] = (nicbarrier_endpoint_t){i, t->shared->len[i], t->shared->endpoint[i]};
    return engine->connect(t->net, &endpoints, events != NULL ? events : &none, why) == 0;
}

static inline void begin(test_t *t, uint64_t key, const nicbarrier_net_events_t *events, int point)
{
    nicbarrier_reason_t why = {""};

    EXPECT(joins(t, key, events, point, &why));
}

static inline void enter(test_t *t, uint64_t epoch)
{
    atomic_store(&t->shared->entered[t->me], epoch);
    engine->enter(t->net, epoch);
}

/* What is complete, all have entered. */
static inline void check(test_t *t, uint64_t epoch)
{
    EXPECT(engine->completed(t->net) >= epoch);
    for (int i = 0; i < t->n; i++)
        EXPECT(atomic_load(&t->shared->entered[i]) >= epoch);
}

static inline void await(test_t *t, uint64_t epoch)
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

/* One after another. */
static inline void barriers(test_t *t, uint64_t first, uint64_t last)
{
    for (uint64_t e = first; e <= last; e++) {
        enter(t, e);
        await(t, e);
    }
}

/* Looks at the network for so many milliseconds, or more, whatever comes. */
static inline void look_on(test_t *t, int msec)
{
    for (int i = 0; i < msec; i++) {
        (void)engine->progress(t->net);
        nap(1);
    }
}

/* Does not look at the network, until somebody else has brought this epoch to its end. */
static inline void sleep_through(test_t *t, uint64_t epoch)
{
    for (int i = 0; i < 3000 && engine->completed(t->net) < epoch; i++)
        nap(5);
    check(t, epoch);
}

/* Who has completed what it entered never looks at the network again, and half of them free the
 * group at once. The others still need their answers, which only the helper threads can give, and
 * where they were asked. */
static inline void leave_early(test_t *t)
{
    begin(t, 100, NULL, 0);
    barriers(t, 1, 1);
    if (t->me % 2 == 0)
        engine->disconnect(t->net);
    meet(t, 1);
    if (t->me % 2 != 0)
        engine->disconnect(t->net);
}

/* Nobody calls the engine between entering and the end: the helper thread sleeps on the network. */
static inline void compute(test_t *t)
{
    begin(t, 101, NULL, 0);
    nap(20);
    enter(t, 3);
    sleep_through(t, 3);
    engine->disconnect(t->net);
}

/* ---- processes ------------------------------------------------------------------------------ */

typedef struct scenario {
    void (*run)(test_t *t);
    int n;
    int drop, nack_usec;                 /* 0: none; that of most tests */
    nicbarrier_schedule_kind_t schedule; /* 0: dissemination */
    void (*prepare)(int me); /* in each process, before it opens the engine; may be NULL */
} scenario_t;

static inline void child(const scenario_t *s, shared_t *shared, int me)
{
    test_t test = {.n = s->n,
                   .me = me,
                   .shared = shared,
                   .config = {.all = {.schedule = (int)s->schedule, .thread = true},
                              .own = {.nack_usec = s->nack_usec != 0 ? s->nack_usec : 1000,
                                      .drop = s->drop,
                                      .interface = "lo"}}};
    test_t *t = &test;
    nicbarrier_reason_t why = {""};

    alarm(UNIT_SECONDS);
    if (s->prepare != NULL)
        s->prepare(me);
    EXPECT(open_with(&t->config, &why) == 0);
    s->run(t);
    /* As the component's last fence. */
    meet(t, 15);
    engine->close();
    _exit(0);
}

static inline void run(const scenario_t *s)
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
        const pid_t ended = wait(&status);

        ck_assert_int_gt(ended, 0);
        failed |= status != 0;
        /* The others would wait for one that has failed. */
        for (int k = 0; k < s->n; k++)
            if (pid[k] == ended)
                pid[k] = 0;
            else if (failed && pid[k] != 0)
                kill(pid[k], SIGKILL);
    }
    munmap(shared, sizeof(*shared));
    ck_assert(!failed);
}

/* In this process: connects to a member that is not there, of which this is the endpoint. Returns
 * whether that works. */
static inline bool connects(const config_t *config, const void *theirs, uint32_t len,
                            nicbarrier_reason_t *why)
{
    const nicbarrier_group_t group = {.key = 5, .n = 2, .me = 0};
    const nicbarrier_net_events_t none = {NULL};
    unsigned char endpoint[ENDPOINT_ROOM] = {0};
    uint32_t mine;
    const nicbarrier_endpoint_t list[] = {{1, len, theirs}};
    const nicbarrier_endpoints_t endpoints = {1, list};
    nicbarrier_net_t *net;

    ck_assert_int_eq(open_with(config, why), 0);
    ck_assert_int_eq(engine->prepare(&group, &net, endpoint, &mine, why), 0);
    const bool can = engine->connect(net, &endpoints, &none, why) == 0;
    engine->disconnect(net);
    engine->close();
    return can;
}
