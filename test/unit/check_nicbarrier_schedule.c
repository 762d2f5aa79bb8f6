/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The schedules are executed for all ranks at once: every message is awaited in just one place, at
 * the end everyone has heard of everyone, and it takes as many messages one after another as the
 * paper says.
 */
#include "coll_nicbarrier/schedule/schedule.h"

#include <string.h>

#include "test/unit/unit.h"

static const nicbarrier_schedule_kind_t kinds[] = {NICBARRIER_DISSEMINATION, NICBARRIER_PAIRWISE,
                                                   NICBARRIER_GATHER_BROADCAST};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

enum { EVERY_N = 100, LARGE_N = 100000, LARGE_TIMES = 5 };

/** All ranks' steps, and how far they are. */
typedef struct world {
    int32_t n;
    int *nsteps;
    nicbarrier_step_t (*steps)[NICBARRIER_STEPS_MAX];
    int *at;    /**< the step each rank is in */
    bool *sent; /**< of that step */
    int *hops;  /**< messages one after another before this rank got there */
    int (*arrived)[NICBARRIER_STEPS_MAX]; /**< likewise, with the message of a step; 0: none has */
} world_t;

static void *zeros(int32_t n, size_t size)
{
    void *p = calloc((size_t)n, size);

    ck_assert_ptr_nonnull(p);
    return p;
}

static void world_init(world_t *w, nicbarrier_schedule_kind_t kind, int32_t n)
{
    *w = (world_t){.n = n,
                   .nsteps = zeros(n, sizeof(*w->nsteps)),
                   .steps = zeros(n, sizeof(*w->steps)),
                   .at = zeros(n, sizeof(*w->at)),
                   .sent = zeros(n, sizeof(*w->sent)),
                   .hops = zeros(n, sizeof(*w->hops)),
                   .arrived = zeros(n, sizeof(*w->arrived))};
    for (int32_t r = 0; r < n; r++) {
        w->nsteps[r] = nicbarrier_schedule(kind, r, n, w->steps[r]);
        UNIT_CHECK(w->nsteps[r] >= 0 && w->nsteps[r] <= NICBARRIER_STEPS_MAX);
        UNIT_CHECK(n == 1 ? w->nsteps[r] == 0 : w->nsteps[r] > 0);
    }
}

static void world_fini(world_t *w)
{
    free(w->nsteps);
    free(w->steps);
    free(w->at);
    free(w->sent);
    free(w->hops);
    free(w->arrived);
}

/* ---- every send has its wait and every wait its send ---------------------------------------- */

static void check_names(const world_t *w, int32_t r, int k)
{
    const nicbarrier_step_t *s = &w->steps[r][k];

    UNIT_CHECK(s->send_to != NICBARRIER_NOBODY || s->wait_for != NICBARRIER_NOBODY);
    if (s->send_to != NICBARRIER_NOBODY) {
        UNIT_CHECK(s->send_to >= 0 && s->send_to < w->n && s->send_to != r);
        UNIT_CHECK(s->send_at < w->nsteps[s->send_to]);
        const nicbarrier_step_t *there = &w->steps[s->send_to][s->send_at];
        UNIT_CHECK(there->wait_for == r && there->wait_at == k);
    } else {
        UNIT_CHECK(s->send_at == 0);
    }
    if (s->wait_for != NICBARRIER_NOBODY) {
        UNIT_CHECK(s->wait_for >= 0 && s->wait_for < w->n && s->wait_for != r);
        UNIT_CHECK(s->wait_at < w->nsteps[s->wait_for]);
        const nicbarrier_step_t *there = &w->steps[s->wait_for][s->wait_at];
        UNIT_CHECK(there->send_to == r && there->send_at == k);
    } else {
        UNIT_CHECK(s->wait_at == 0);
    }
}

static void check_all_names(const world_t *w)
{
    for (int32_t r = 0; r < w->n; r++)
        for (int k = 0; k < w->nsteps[r]; k++)
            check_names(w, r, k);
}

/* ---- execution ------------------------------------------------------------------------------ */

/** True if the rank could send the message of its step, or go on to the next one. */
static bool move(world_t *w, int32_t r)
{
    const int k = w->at[r];
    const nicbarrier_step_t *s = &w->steps[r][k];
    const bool sends = !w->sent[r];

    if (sends && s->send_to != NICBARRIER_NOBODY) {
        UNIT_CHECK(w->arrived[s->send_to][s->send_at] == 0);
        w->arrived[s->send_to][s->send_at] = w->hops[r] + 1;
    }
    w->sent[r] = true;
    if (s->wait_for != NICBARRIER_NOBODY) {
        if (w->arrived[r][k] == 0)
            return sends;
        if (w->arrived[r][k] > w->hops[r])
            w->hops[r] = w->arrived[r][k];
    }
    w->at[r]++;
    w->sent[r] = false;
    return true;
}

/** Each rank as far as it gets, in turn, until nobody moves any more. If one is late, which never
 *  begins, nobody may get to the end: all have heard of all there. */
static void execute(world_t *w, int32_t late)
{
    bool moved = true;

    memset(w->at, 0, (size_t)w->n * sizeof(*w->at));
    memset(w->sent, 0, (size_t)w->n * sizeof(*w->sent));
    memset(w->hops, 0, (size_t)w->n * sizeof(*w->hops));
    memset(w->arrived, 0, (size_t)w->n * sizeof(*w->arrived));
    while (moved) {
        moved = false;
        for (int32_t r = 0; r < w->n; r++)
            while (r != late && w->at[r] < w->nsteps[r] && move(w, r))
                moved = true;
    }
    for (int32_t r = 0; r < w->n; r++)
        UNIT_CHECK((w->at[r] == w->nsteps[r]) == (late == NICBARRIER_NOBODY));
}

/* ---- what theory says ----------------------------------------------------------------------- */

static int floor_log2(int32_t n)
{
    return 31 - __builtin_clz((unsigned)n);
}

static bool power_of_two(int32_t n)
{
    return (n & (n - 1)) == 0;
}

/* Levels below the root of a heap-ordered tree. */
static int tree_height(int32_t n)
{
    int64_t full = 1, level = 1;
    int height = 0;

    for (; full < n; height++) {
        level *= NICBARRIER_DEGREE;
        full += level;
    }
    return height;
}

static int theory(nicbarrier_schedule_kind_t kind, int32_t n)
{
    switch (kind) {
    case NICBARRIER_DISSEMINATION:
        return floor_log2(n) + !power_of_two(n);
    case NICBARRIER_PAIRWISE:
        return floor_log2(n) + (power_of_two(n) ? 0 : 2);
    case NICBARRIER_GATHER_BROADCAST:
        return 2 * tree_height(n);
    }
    return -1;
}

/* The paper counts steps for dissemination and pairwise exchange, and messages one after another
 * for the tree. With a single guest pairwise exchange has one message less in a row than steps. */
static void check_length(const world_t *w, nicbarrier_schedule_kind_t kind)
{
    int hops = 0, nsteps = 0;

    for (int32_t r = 0; r < w->n; r++) {
        hops = w->hops[r] > hops ? w->hops[r] : hops;
        nsteps = w->nsteps[r] > nsteps ? w->nsteps[r] : nsteps;
        if (kind == NICBARRIER_DISSEMINATION)
            UNIT_CHECK(w->nsteps[r] == theory(kind, w->n));
    }
    if (kind == NICBARRIER_PAIRWISE && !power_of_two(w->n))
        UNIT_CHECK(hops == theory(kind, w->n) || hops == theory(kind, w->n) - 1);
    else
        UNIT_CHECK(hops == theory(kind, w->n));
    if (kind == NICBARRIER_GATHER_BROADCAST)
        UNIT_CHECK(nsteps <= 2 * NICBARRIER_DEGREE + 1);
    else
        UNIT_CHECK(nsteps == theory(kind, w->n));
}

/* ---- tests ---------------------------------------------------------------------------------- */

START_TEST(all_small_numbers)
{
    const nicbarrier_schedule_kind_t kind = kinds[_i];

    for (int32_t n = 1; n <= EVERY_N; n++) {
        world_t w;

        world_init(&w, kind, n);
        check_all_names(&w);
        execute(&w, NICBARRIER_NOBODY);
        check_length(&w, kind);
        for (int32_t late = 0; n > 1 && late < n; late++)
            execute(&w, late);
        world_fini(&w);
    }
}
END_TEST

START_TEST(many_ranks)
{
    const nicbarrier_schedule_kind_t kind = kinds[_i];
    unit_random_t random = {unit_seed() + (uint64_t)_i};

    for (int i = 0; i < LARGE_TIMES; i++) {
        /* The largest, a power of two and its neighbours, then any. */
        const int32_t special[] = {LARGE_N, 65535, 65536, 65537};
        const int32_t n = i < 4 ? special[i] : (int32_t)(2 + unit_below(&random, LARGE_N - 1));
        world_t w;

        world_init(&w, kind, n);
        check_all_names(&w);
        execute(&w, NICBARRIER_NOBODY);
        check_length(&w, kind);
        execute(&w, (int32_t)unit_below(&random, (uint64_t)n));
        execute(&w, n - 1);
        execute(&w, 0);
        world_fini(&w);
    }
}
END_TEST

/* Numbers at the end of the range of ranks must not overflow. */
START_TEST(as_many_ranks_as_there_can_be)
{
    const int32_t n = INT32_MAX;
    const int32_t ranks[] = {0, 1, n / 2, n / 2 + 1, n - 2, n - 1};

    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        nicbarrier_step_t mine[NICBARRIER_STEPS_MAX], theirs[NICBARRIER_STEPS_MAX];
        const nicbarrier_schedule_kind_t kind = kinds[_i];
        const int nmine = nicbarrier_schedule(kind, ranks[i], n, mine);

        ck_assert_int_gt(nmine, 0);
        for (int k = 0; k < nmine; k++) {
            const int32_t to = mine[k].send_to, from = mine[k].wait_for;
            if (to != NICBARRIER_NOBODY) {
                ck_assert_int_gt(nicbarrier_schedule(kind, to, n, theirs), mine[k].send_at);
                ck_assert_int_eq(theirs[mine[k].send_at].wait_for, ranks[i]);
                ck_assert_int_eq(theirs[mine[k].send_at].wait_at, k);
            }
            if (from != NICBARRIER_NOBODY) {
                ck_assert_int_gt(nicbarrier_schedule(kind, from, n, theirs), mine[k].wait_at);
                ck_assert_int_eq(theirs[mine[k].wait_at].send_to, ranks[i]);
                ck_assert_int_eq(theirs[mine[k].wait_at].send_at, k);
            }
        }
    }
}
END_TEST

START_TEST(wrong_arguments)
{
    const int tree = NICBARRIER_GATHER_BROADCAST;
    const struct {
        int schedule;
        int32_t rank, n;
    } wrong[] = {{0, 0, 0}, {0, 0, -1}, {0, -1, 4}, {0, 4, 4}, {tree + 1, 0, 4}};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        nicbarrier_step_t steps[NICBARRIER_STEPS_MAX];
        ck_assert_int_eq(nicbarrier_schedule((nicbarrier_schedule_kind_t)wrong[i].schedule,
                                             wrong[i].rank, wrong[i].n, steps),
                         -1);
    }
}
END_TEST

int main(void)
{
    return UNIT_RUN("nicbarrier_schedule", UNIT_LOOP(all_small_numbers, 0, KINDS),
                    UNIT_LOOP(many_ranks, 0, KINDS),
                    UNIT_LOOP(as_many_ranks_as_there_can_be, 0, KINDS), UNIT_ONCE(wrong_arguments));
}
