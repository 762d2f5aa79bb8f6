/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The barrier inside a node: views of many processes on memory of this one. */
#include "coll_nicbarrier/engines/shm/shm.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "test/unit/unit.h"

enum { PROCESSES_MAX = 20 };

typedef struct node {
    int n;
    void *memory;
    nicbarrier_shm_t view[PROCESSES_MAX];
    uint64_t entered[PROCESSES_MAX];
} node_t;

static void make(node_t *node, int n, int fanout, bool network)
{
    const size_t bytes = nicbarrier_shm_bytes(n, fanout);

    *node = (node_t){.n = n};
    node->memory = aligned_alloc(128, bytes);
    UNIT_CHECK(node->memory != NULL);
    memset(node->memory, 0, bytes);
    for (int i = 0; i < n; i++)
        nicbarrier_shm_introduce(node->memory, n, i, fanout);
    for (int i = 0; i < n; i++)
        nicbarrier_shm_attach(&node->view[i], node->memory, n, i, fanout, network);
}

static void unmake(node_t *node)
{
    free(node->memory);
}

static uint64_t least(const node_t *node)
{
    uint64_t low = UINT64_MAX;
    for (int i = 0; i < node->n; i++)
        low = node->entered[i] < low ? node->entered[i] : low;
    return low;
}

/** What a view says is what the naive minimum over all says. */
static void check(node_t *node, uint64_t complete)
{
    for (int i = 0; i < node->n; i++) {
        UNIT_CHECK(nicbarrier_shm_completed(&node->view[i]) == complete);
        UNIT_CHECK(nicbarrier_shm_done(&node->view[i], complete));
        UNIT_CHECK(!nicbarrier_shm_done(&node->view[i], complete + 1));
    }
}

/* Processes enter in any order, several epochs at once; flat and as trees of any fanout. */
START_TEST(complete_without_network)
{
    unit_random_t random = {unit_seed() + (uint64_t)_i};
    node_t node;

    make(&node, 1 + (int)unit_below(&random, PROCESSES_MAX), 2 + (int)unit_below(&random, 7),
         false);
    for (int k = 0; k < 200; k++) {
        const int i = (int)unit_below(&random, (uint64_t)node.n);
        if (node.entered[i] < least(&node) + 4) {
            node.entered[i] += 1 + unit_below(&random, 3);
            nicbarrier_shm_enter(&node.view[i], node.entered[i]);
            nicbarrier_shm_depart(&node.view[i]);
        }
        check(&node, least(&node));
    }
    unmake(&node);
}
END_TEST

/* Complete is what the leader says. */
START_TEST(complete_with_network)
{
    unit_random_t random = {unit_seed() + 1000 + (uint64_t)_i};
    node_t node;
    uint64_t released = 0;

    make(&node, 2 + (int)unit_below(&random, PROCESSES_MAX - 1), 2 + (int)unit_below(&random, 7),
         true);
    for (int k = 0; k < 200; k++) {
        const int i = (int)unit_below(&random, (uint64_t)node.n);
        if (node.entered[i] < least(&node) + 4) {
            node.entered[i] += 1 + unit_below(&random, 3);
            nicbarrier_shm_enter(&node.view[i], node.entered[i]);
        }
        for (int j = 0; j < node.n; j++)
            UNIT_CHECK(nicbarrier_shm_arrived(&node.view[j]) == least(&node));
        if (unit_once_in(&random, 4) && least(&node) > released) {
            released += 1 + unit_below(&random, least(&node) - released);
            nicbarrier_shm_release(&node.view[0], released);
        }
        check(&node, released);
    }
    unmake(&node);
}
END_TEST

/* ---- threads in place of processes ---------------------------------------------------------- */

typedef struct process {
    node_t *node;
    pthread_t thread;
    int me;
    uint64_t last;
    bool failed;
} process_t;

/** Microseconds; longer than a test may take. */
#define FOR_EVER (2 * UNIT_SECONDS * 1000000u)

/** Barriers, by sleeping only. */
static void *by_sleeping(void *arg)
{
    process_t *p = arg;
    nicbarrier_shm_t *s = &p->node->view[p->me];

    for (uint64_t e = 1; e <= p->last; e++) {
        nicbarrier_shm_enter(s, e);
        nicbarrier_shm_depart(s);
        while (s->network && p->me == 0 && nicbarrier_shm_arrived(s) < e)
            nicbarrier_shm_sleep_for_node(s, e, FOR_EVER);
        if (s->network && p->me == 0)
            nicbarrier_shm_release(s, e);
        while (!nicbarrier_shm_done(s, e))
            nicbarrier_shm_sleep(s, e, FOR_EVER);
        nicbarrier_shm_depart(s);
    }
    return NULL;
}

/* Nobody sleeps on when its epoch is complete. */
START_TEST(sleepers_are_woken)
{
    process_t process[6];
    node_t node;

    make(&node, 6, _i == 0 ? 8 : 2, _i == 2);
    for (int i = 0; i < node.n; i++) {
        process[i] = (process_t){.node = &node, .me = i, .last = 2000};
        ck_assert_int_eq(pthread_create(&process[i].thread, NULL, by_sleeping, &process[i]), 0);
    }
    for (int i = 0; i < node.n; i++)
        pthread_join(process[i].thread, NULL);
    for (int i = 0; i < node.n; i++)
        node.entered[i] = 2000;
    check(&node, 2000);
    unmake(&node);
}
END_TEST

static void *until_failed(void *arg)
{
    process_t *p = arg;
    nicbarrier_shm_t *s = &p->node->view[p->me];

    nicbarrier_shm_enter(s, 1);
    while (!nicbarrier_shm_done(s, 1) && !nicbarrier_shm_failed(s))
        nicbarrier_shm_sleep(s, 1, FOR_EVER);
    p->failed = nicbarrier_shm_failed(s);
    return NULL;
}

/* The leader's connection is lost: who sleeps in the barrier gets to know. */
START_TEST(sleepers_hear_of_failure)
{
    process_t process[3];
    node_t node;

    make(&node, 4, 2, true);
    for (int i = 0; i < 3; i++) {
        process[i] = (process_t){.node = &node, .me = i + 1};
        ck_assert_int_eq(pthread_create(&process[i].thread, NULL, until_failed, &process[i]), 0);
    }
    nicbarrier_shm_enter(&node.view[0], 1);
    while (atomic_load(&node.view[0].head->completion.sleepers) < 3)
        sched_yield();
    ck_assert(!nicbarrier_shm_failed(&node.view[1]));
    nicbarrier_shm_fail(&node.view[0]);
    for (int i = 0; i < 3; i++) {
        pthread_join(process[i].thread, NULL);
        ck_assert(process[i].failed);
    }
    unmake(&node);
}
END_TEST

int main(void)
{
    return UNIT_RUN("nicbarrier_shm", UNIT_LOOP(complete_without_network, 0, 100),
                    UNIT_LOOP(complete_with_network, 0, 100), UNIT_LOOP(sleepers_are_woken, 0, 3),
                    UNIT_ONCE(sleepers_hear_of_failure));
}
