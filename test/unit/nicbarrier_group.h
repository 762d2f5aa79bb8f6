/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Engine datagram without MPI: processes that the test forks, over real sockets on this host, with
 * packets dropped on purpose. The agreement's part (carrying the offers) is played by shared
 * memory.
 */
#ifndef NICBARRIER_GROUP_H
#define NICBARRIER_GROUP_H

#include "coll_nicbarrier/datagram.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>
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
    unsigned late; /* milliseconds until it connects, while others may have begun */
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

/* ---- a group ----------------------------------------------------------------------------------
 */

static inline void begin(test_t *t, uint64_t key, const nicbarrier_net_events_t *events, int point)
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
    nap(t->late);
    EXPECT(engine->connect(t->net, &offers, events != NULL ? events : &none, &why) == 0);
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

/* ---- processes --------------------------------------------------------------------------------
 */

typedef struct scenario {
    void (*run)(test_t *t);
    int n;
    unsigned drop, nack_usec;
    nicbarrier_schedule_kind_t schedule;
    nicbarrier_verbs_use_t verbs;
    void (*prepare)(int me); /* in each process, before it opens the engine; may be NULL */
} scenario_t;

static inline void child(const scenario_t *s, shared_t *shared, int me)
{
    test_t test = {.n = s->n,
                   .me = me,
                   .shared = shared,
                   .config = {.schedule = (int)s->schedule,
                              .nack_usec = s->nack_usec != 0 ? s->nack_usec : 1000,
                              .drop = s->drop,
                              .interface = "lo",
                              .verbs = s->verbs,
                              .thread = true}};
    test_t *t = &test;
    nicbarrier_reason_t why = {""};

    alarm(SECONDS_MAX);
    if (s->prepare != NULL)
        s->prepare(me);
    EXPECT(engine->open(&t->config, &why) == 0);
    s->run(t);
    /* As the fence before MPI_Finalize. */
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
        ck_assert_int_eq(waitpid(pid[i], &status, 0), pid[i]);
        failed |= status != 0;
    }
    munmap(shared, sizeof(*shared));
    ck_assert(!failed);
}

#endif
