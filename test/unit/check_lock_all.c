/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * MPI_Win_lock_all: locks that are taken one by one as targets are used (lockq.h), in any order,
 * beside exclusive locks of single targets (lockq.h). Nobody waits for ever, exclusive locks get
 * their turn, and what is sent follows what is used and not how many processes there are.
 */
#include "osc_nicstride/protocol/lockq.h"

#include <stdlib.h>

#include "test/unit/unit.h"

enum { PROCESSES = 6, TARGETS = 4, EPOCHS = 40 };

typedef struct process {
    uint64_t since;  /* when it came into lock_all; 0: its epoch is one exclusive lock */
    unsigned epochs; /* still to come */
    unsigned left;   /* targets of the epoch that it has not asked for */
    bool inside, waits;
    bool has[TARGETS];
} process_t;

typedef struct world {
    process_t p[PROCESSES];
    nicstride_lockq_t *q[TARGETS];
    unsigned n;
    uint64_t now;
    bool says; /* requests say since when their processes are in lock_all */
} world_t;

static void hand_on(world_t *w, unsigned t)
{
    uint32_t to;

    while (nicstride_lockq_next_grant(w->q[t], &to)) {
        UNIT_CHECK(w->p[to].waits && !w->p[to].has[t]);
        w->p[to].waits = false;
        w->p[to].has[t] = true;
    }
}

static void begin(unit_random_t *r, world_t *w, process_t *p)
{
    p->inside = true;
    p->epochs--;
    p->since = unit_once_in(r, 2) ? 0 : ++w->now;
    p->left = p->since == 0 ? 1 : 1 + (unsigned)unit_below(r, TARGETS);
}

/** It uses one target more, of those that it has not used. */
static void use(unit_random_t *r, world_t *w, uint32_t i)
{
    process_t *p = &w->p[i];
    unsigned t = (unsigned)unit_below(r, TARGETS);

    while (p->has[t])
        t = (t + 1) % TARGETS;
    p->left--;
    switch (nicstride_lockq_request(
        w->q[t], i, p->since == 0 ? NICSTRIDE_LOCK_EXCLUSIVE : NICSTRIDE_LOCK_SHARED,
        w->says ? p->since : 0)) {
    case NICSTRIDE_LOCKQ_GRANTED:
        p->has[t] = true;
        break;
    case NICSTRIDE_LOCKQ_QUEUED:
        p->waits = true;
        break;
    default:
        UNIT_CHECK(false);
    }
}

static void leave(world_t *w, uint32_t i)
{
    process_t *p = &w->p[i];

    p->inside = false;
    for (unsigned t = 0; t < TARGETS; t++) {
        if (!p->has[t])
            continue;
        p->has[t] = false;
        UNIT_CHECK(nicstride_lockq_release(w->q[t], i));
        hand_on(w, t);
    }
}

/** False where all that is left waits for ever. */
static bool run(unit_random_t *r, world_t *w)
{
    for (;;) {
        unsigned ready = 0, ended = 0, pick;
        uint32_t i = 0;

        for (unsigned k = 0; k < w->n; k++) {
            ready += !w->p[k].waits && (w->p[k].inside || w->p[k].epochs > 0);
            ended += !w->p[k].inside && w->p[k].epochs == 0;
        }
        if (ready == 0)
            return ended == w->n;
        pick = (unsigned)unit_below(r, ready);
        for (;; i++) {
            const process_t *p = &w->p[i];

            if (!p->waits && (p->inside || p->epochs > 0) && pick-- == 0)
                break;
        }
        if (!w->p[i].inside)
            begin(r, w, &w->p[i]);
        else if (w->p[i].left > 0)
            use(r, w, i);
        else
            leave(w, i);
    }
}

/** How many of the runs ended. */
static unsigned runs_that_end(bool says, unsigned runs)
{
    unit_random_t r = {unit_seed()};
    unsigned ended = 0;

    for (unsigned k = 0; k < runs; k++) {
        world_t w = {.n = 2 + (unsigned)unit_below(&r, PROCESSES - 1), .says = says};

        for (unsigned t = 0; t < TARGETS; t++) {
            w.q[t] = malloc(nicstride_lockq_size(w.n));
            UNIT_CHECK(w.q[t] != NULL);
            nicstride_lockq_init(w.q[t], w.n);
        }
        for (unsigned i = 0; i < w.n; i++)
            w.p[i].epochs = EPOCHS;
        ended += run(&r, &w);
        for (unsigned t = 0; t < TARGETS; t++)
            free(w.q[t]);
    }
    return ended;
}

START_TEST(no_circles)
{
    ck_assert_uint_eq(runs_that_end(true, 2000), 2000);
    /* First come, first served, is not enough. */
    ck_assert_uint_lt(runs_that_end(false, 2000), 2000);
}
END_TEST

/** Two processes whose epochs overlap without end, so that one of them always has the lock. */
START_TEST(exclusive_gets_in)
{
    nicstride_lockq_t *q = malloc(nicstride_lockq_size(3));
    uint32_t origin;
    uint64_t now = 1;

    UNIT_CHECK(q != NULL);
    nicstride_lockq_init(q, 3);
    ck_assert_int_eq(nicstride_lockq_request(q, 0, NICSTRIDE_LOCK_SHARED, now),
                     NICSTRIDE_LOCKQ_GRANTED);
    ck_assert_int_eq(nicstride_lockq_request(q, 2, NICSTRIDE_LOCK_EXCLUSIVE, 0),
                     NICSTRIDE_LOCKQ_QUEUED);
    /* In lock_all before that: passes. */
    ck_assert_int_eq(nicstride_lockq_request(q, 1, NICSTRIDE_LOCK_SHARED, now),
                     NICSTRIDE_LOCKQ_GRANTED);
    ck_assert(nicstride_lockq_release(q, 0));
    ck_assert(!nicstride_lockq_next_grant(q, &origin));
    /* Its next epoch: does not. */
    now = 100;
    ck_assert_int_eq(nicstride_lockq_request(q, 0, NICSTRIDE_LOCK_SHARED, now),
                     NICSTRIDE_LOCKQ_QUEUED);
    ck_assert(nicstride_lockq_release(q, 1));
    ck_assert(nicstride_lockq_next_grant(q, &origin));
    ck_assert_uint_eq(origin, 2);
    ck_assert(!nicstride_lockq_next_grant(q, &origin));
    ck_assert(nicstride_lockq_release(q, 2));
    ck_assert(nicstride_lockq_next_grant(q, &origin));
    ck_assert_uint_eq(origin, 0);
    free(q);
}
END_TEST

/** Messages of one epoch that uses `used` of `n` targets, all locks being free, by call. */
typedef struct messages {
    unsigned lock_all, operations, unlock_all, answers;
} messages_t;

static messages_t epoch_of(unsigned n, unsigned used, unsigned operations)
{
    nicstride_lazy_t *held = calloc(used > 0 ? used : 1, sizeof(*held));
    messages_t m = {0};

    UNIT_CHECK(held != NULL && used <= n);
    for (unsigned t = 0; t < used; t++) {
        nicstride_lazy_begin(&held[t], NICSTRIDE_LOCK_SHARED, 1);
        UNIT_CHECK(nicstride_lazy_keep(&held[t], &t, sizeof(t), 1));
        for (unsigned k = 1; k < operations; k++) {
            /* What does not fit beside it waits for the lock, which is asked for once. */
            m.operations += nicstride_lazy_ask(&held[t], false) != 0;
            nicstride_lazy_acknowledged(&held[t], 1);
            UNIT_CHECK(held[t].state == NICSTRIDE_LAZY_NOT);
            m.operations++;
        }
        /* The release goes along, or by itself. */
        m.unlock_all += nicstride_lazy_ask(&held[t], true) != 0 || !held[t].release;
        m.answers++;
    }
    free(held);
    return m;
}

START_TEST(messages_follow_use)
{
    static const unsigned sizes[] = {1000, 10000}, uses[] = {0, 1, 16};

    for (unsigned i = 0; i < 2; i++) {
        for (unsigned k = 0; k < 3; k++) {
            const messages_t one = epoch_of(sizes[i], uses[k], 1),
                             two = epoch_of(sizes[i], uses[k], 2);

            printf("%5u processes, %2u used: lock_all %u, operations %u, unlock_all %u, answers %u "
                   "messages\n",
                   sizes[i], uses[k], one.lock_all, one.operations, one.unlock_all, one.answers);
            ck_assert_uint_eq(one.lock_all + one.operations + one.unlock_all, uses[k]);
            ck_assert_uint_eq(two.operations + two.unlock_all, 3 * uses[k]);
        }
    }
}
END_TEST

int main(void)
{
    return UNIT_RUN("lock_all", UNIT_ONCE(no_circles), UNIT_ONCE(exclusive_gets_in),
                    UNIT_ONCE(messages_follow_use));
}
