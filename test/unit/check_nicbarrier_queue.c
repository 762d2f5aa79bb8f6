/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Queues of barriers: members that begin, wait and look at any time. */
#include "coll_nicbarrier/component/queue.h"

#include "test/unit/unit.h"

enum { MEMBERS_MAX = 5, ITEMS = 60, BEFORE = 1 };

typedef struct group group_t;

/** One rank: its queue, and what the means have been told. */
typedef struct member {
    group_t *group;
    nicbarrier_queue_t queue;
    nicbarrier_item_t items[ITEMS];
    int begun, through; /**< barriers, of both kinds; items that are out of the queue */
    int items_begun;    /**< of them nonblocking */
    uint64_t entered;   /**< as the means know it */
    uint64_t waits_for; /**< the blocking barrier it is in, or 0 */
} member_t;

struct group {
    int n;
    int failure;
    member_t member[MEMBERS_MAX];
};

static uint64_t least_entered(const group_t *g)
{
    uint64_t low = UINT64_MAX;

    for (int i = 0; i < g->n; i++)
        low = g->member[i].entered < low ? g->member[i].entered : low;
    return low;
}

static void enter(void *arg, uint64_t epoch)
{
    member_t *m = arg;

    UNIT_CHECK(epoch == m->entered + 1);
    UNIT_CHECK(epoch <= m->queue.begun);
    /* What is complete here all have entered. */
    UNIT_CHECK(m->queue.complete <= least_entered(m->group));
    m->entered = epoch;
}

static bool done(void *arg, uint64_t epoch)
{
    const member_t *m = arg;

    UNIT_CHECK(epoch <= m->entered);
    return least_entered(m->group) >= epoch;
}

static int failure(void *arg)
{
    const member_t *m = arg;

    return m->group->failure;
}

static const nicbarrier_means_t means = {enter, done, failure};

static void make(group_t *g, int n)
{
    *g = (group_t){.n = n};
    for (int i = 0; i < n; i++) {
        g->member[i].group = g;
        g->member[i].entered = BEFORE;
        nicbarrier_queue_init(&g->member[i].queue, BEFORE, &means, &g->member[i]);
        UNIT_CHECK(nicbarrier_queue_is_idle(&g->member[i].queue));
    }
}

/** Begins the next: every third is a blocking one, on all members alike. */
static void begin(member_t *m)
{
    const bool blocking = m->begun % 3 == 2;

    if (m->begun == ITEMS || m->waits_for != 0)
        return;
    if (blocking) {
        if (nicbarrier_queue_is_through(&m->queue)) {
            m->waits_for = nicbarrier_queue_number_next(&m->queue);
            enter(m, m->waits_for);
        } else {
            m->waits_for = nicbarrier_queue_number(&m->queue);
        }
        UNIT_CHECK(m->waits_for == (uint64_t)m->begun + BEFORE + 1);
    } else {
        nicbarrier_item_t *item = &m->items[m->items_begun++];
        nicbarrier_queue_add(&m->queue, item);
        UNIT_CHECK(item->epoch == (uint64_t)m->begun + BEFORE + 1);
        UNIT_CHECK(!nicbarrier_queue_is_idle(&m->queue));
    }
    m->begun++;
}

/** The blocking barrier ends where it has been entered and is complete. */
static void look(member_t *m)
{
    if (m->waits_for == 0)
        return;
    if (m->group->failure != 0) {
        m->waits_for = 0;
    } else if (done(m, m->waits_for)) {
        nicbarrier_queue_reached(&m->queue, m->waits_for);
        m->waits_for = 0;
    }
}

static void harvest(member_t *m)
{
    for (nicbarrier_item_t *i = nicbarrier_queue_harvest(&m->queue); i != NULL; i = i->next) {
        /* In their order, each once. */
        UNIT_CHECK(i == &m->items[m->through]);
        m->through++;
        if (i->failure == 0)
            UNIT_CHECK(least_entered(m->group) >= i->epoch);
        else
            UNIT_CHECK(i->failure == m->group->failure);
    }
    UNIT_CHECK(nicbarrier_queue_is_idle(&m->queue) == (m->through == m->items_begun));
}

static void act(member_t *m, unit_random_t *random)
{
    switch (unit_below(random, 3)) {
    case 0:
        begin(m);
        break;
    case 1:
        look(m);
        break;
    default:
        harvest(m);
    }
}

static bool all_through(const group_t *g)
{
    for (int i = 0; i < g->n; i++)
        if (g->member[i].begun < ITEMS || g->member[i].waits_for != 0 ||
            g->member[i].through < g->member[i].items_begun)
            return false;
    return true;
}

/* Whatever the order in which things happen on the members: all barriers of all members end, in
 * their order, none before all have entered it. */
START_TEST(any_order)
{
    unit_random_t random = {unit_seed() + (uint64_t)_i};
    group_t g;
    long turns = 0;

    make(&g, 1 + (int)unit_below(&random, MEMBERS_MAX));
    while (!all_through(&g)) {
        UNIT_CHECK(turns++ < 1000000);
        act(&g.member[unit_below(&random, (uint64_t)g.n)], &random);
    }
    for (int i = 0; i < g.n; i++) {
        UNIT_CHECK(g.member[i].entered == BEFORE + ITEMS);
        UNIT_CHECK(g.member[i].queue.complete == BEFORE + ITEMS);
    }
}
END_TEST

/* After a failure everything ends: what was complete before may say so, all else says what failed.
 */
START_TEST(failures)
{
    unit_random_t random = {unit_seed() + 5000 + (uint64_t)_i};
    const uint64_t before = unit_below(&random, 600);
    group_t g;
    long turns = 0;

    make(&g, 2 + (int)unit_below(&random, MEMBERS_MAX - 1));
    for (uint64_t t = 0; t < before; t++)
        act(&g.member[unit_below(&random, (uint64_t)g.n)], &random);
    g.failure = 77;
    /* One is gone. */
    g.n--;
    while (!all_through(&g)) {
        UNIT_CHECK(turns++ < 1000000);
        act(&g.member[unit_below(&random, (uint64_t)g.n)], &random);
    }
}
END_TEST

int main(void)
{
    return UNIT_RUN("nicbarrier_queue", UNIT_LOOP(any_order, 0, 300), UNIT_LOOP(failures, 0, 300));
}
