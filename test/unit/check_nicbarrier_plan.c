/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Plans from random facts: all ranks conclude the same, and it is what a naive count says.
 */
#include "coll_nicbarrier/agree/plan.h"

#include <string.h>

#include "test/unit/unit.h"

enum { RANKS_MAX = 40, ENGINES = 3 };

/** Shared memory, puts and datagrams, as the component has them. */
static const nicbarrier_options_t any = {.engine = NICBARRIER_ANY_ENGINE};

typedef struct world {
    int32_t size;
    nicbarrier_options_t options;
    nicbarrier_facts_t facts[RANKS_MAX];
    int32_t room[RANKS_MAX][3 * RANKS_MAX];
    nicbarrier_plan_t plan[RANKS_MAX];
} world_t;

/** Whoever is on one host, at most `hosts`, shares memory; or, broken, anybody names anybody. */
static void make(world_t *w, unit_random_t *random, bool broken)
{
    int32_t host[RANKS_MAX];
    const uint64_t hosts = 1 + unit_below(random, 6);

    w->size = 2 + (int32_t)unit_below(random, RANKS_MAX - 1);
    w->options = any;
    w->options.engine = (int)unit_below(random, ENGINES + 1) - 1;
    w->options.ppn = (int32_t)unit_below(random, 5);
    for (int32_t r = 0; r < w->size; r++) {
        nicbarrier_facts_t *f = &w->facts[r];
        *f = (nicbarrier_facts_t){.key = unit_random64(random)};
        f->place = unit_below(random, 4);
        for (int i = 1; i < ENGINES; i++)
            f->score[i] = (uint8_t)unit_below(random, 3);
        host[r] = (int32_t)unit_below(random, hosts);
        while (host[f->first] != host[r])
            f->first++;
        if (broken)
            f->first = (int32_t)unit_below(random, (uint64_t)w->size + 2) - 1;
    }
}

static void plan_all(world_t *w)
{
    for (int32_t r = 0; r < w->size; r++)
        w->plan[r] = nicbarrier_plan(&w->options, w->facts, w->size, r, w->room[r]);
}

/** Who leads, and by what number of its node each rank knows itself. */
static void check_ranks(const world_t *w)
{
    int32_t leaders = 0;

    for (int32_t r = 0; r < w->size; r++) {
        const nicbarrier_plan_t *p = &w->plan[r];
        int32_t index = 0, n = 0;
        for (int32_t m = 0; m < w->size; m++) {
            const bool member = w->plan[m].first == p->first;
            index += member && m < r;
            n += member;
        }
        UNIT_CHECK(p->index == index && p->n == n);
        UNIT_CHECK((p->index == 0) == (p->first == r));
        UNIT_CHECK(p->limit == nicbarrier_limit(&w->options, n, w->size));
        UNIT_CHECK(p->limit >= 1 && p->limit <= n);
        UNIT_CHECK(p->leader == (index % p->limit == 0 ? leaders : -1));
        UNIT_CHECK(p->leader < 0 || w->plan[0].rank[p->leader] == r);
        leaders += p->leader >= 0;
    }
    UNIT_CHECK(w->plan[0].leaders == leaders);
}

/** Those behind one leader have all positions, in the order of their places. */
static void check_positions(const world_t *w)
{
    for (int32_t r = 0; r < w->size; r++) {
        const nicbarrier_plan_t *p = &w->plan[r];
        const int32_t mine = nicbarrier_plan_position(p, w->facts, r);
        int32_t n = 0, before = 0;
        for (int32_t m = 0; m < w->size; m++) {
            const nicbarrier_plan_t *q = &w->plan[m];
            if (q->first != p->first || q->index / p->limit != p->index / p->limit)
                continue;
            const int32_t theirs = nicbarrier_plan_position(q, w->facts, m);
            n++;
            before += theirs < mine;
            UNIT_CHECK((theirs == mine) == (m == r));
            UNIT_CHECK(theirs >= mine || w->facts[m].place <= w->facts[r].place);
        }
        UNIT_CHECK(mine == before && mine < n);
    }
}

static void check_same(const world_t *w)
{
    const nicbarrier_plan_t *a = &w->plan[0];

    for (int32_t r = 1; r < w->size; r++) {
        const nicbarrier_plan_t *b = &w->plan[r];
        UNIT_CHECK(a->leaders == b->leaders);
        UNIT_CHECK(memcmp(a->score, b->score, sizeof(a->score)) == 0);
        UNIT_CHECK(memcmp(a->rank, b->rank, (size_t)a->leaders * sizeof(*a->rank)) == 0);
        UNIT_CHECK(nicbarrier_choose(a, &w->options) == nicbarrier_choose(b, &w->options));
    }
}

/** No other that serves does better at its worst leader. */
static void check_choice(const world_t *w)
{
    const nicbarrier_plan_t *p = &w->plan[0];
    int best = NICBARRIER_ANY_ENGINE, best_score = 0;

    for (int i = 1; i < ENGINES; i++) {
        int score = UINT8_MAX;
        for (int32_t k = 0; k < p->leaders; k++) {
            const int one = w->facts[p->rank[k]].score[i];
            score = one < score ? one : score;
        }
        if (w->options.engine >= 0 && w->options.engine != i)
            continue;
        if (score > best_score) {
            best = i;
            best_score = score;
        }
    }
    UNIT_CHECK(nicbarrier_choose(p, &w->options) == best);
}

static bool has(const int32_t *list, int n, int32_t what)
{
    int found = 0;

    for (int i = 0; i < n; i++)
        found += list[i] == what;
    UNIT_CHECK(found <= 1);
    return found == 1;
}

/** Partners have each other, and whom a step needs is one. */
static void check_partners(const world_t *w, nicbarrier_schedule_kind_t schedule)
{
    static int32_t partner[RANKS_MAX][NICBARRIER_PARTNERS_MAX];
    int n[RANKS_MAX];
    const nicbarrier_plan_t *p = &w->plan[0];

    for (int32_t k = 0; k < p->leaders; k++) {
        nicbarrier_group_t g = {.n = p->leaders, .me = k};
        nicbarrier_group_plan(&g, schedule);
        n[k] = nicbarrier_partners(&g, partner[k]);
        for (int i = 0; i < g.nsteps; i++) {
            UNIT_CHECK(g.step[i].send_to < 0 || has(partner[k], n[k], g.step[i].send_to));
            UNIT_CHECK(g.step[i].wait_for < 0 || has(partner[k], n[k], g.step[i].wait_for));
        }
    }
    for (int32_t k = 0; k < p->leaders; k++)
        for (int32_t other = 0; other < p->leaders; other++)
            UNIT_CHECK(has(partner[k], n[k], other) == has(partner[other], n[other], k));
}

static void check_all(world_t *w)
{
    plan_all(w);
    check_ranks(w);
    check_positions(w);
    check_same(w);
    check_choice(w);
    check_partners(w, NICBARRIER_DISSEMINATION);
    check_partners(w, NICBARRIER_PAIRWISE);
    check_partners(w, NICBARRIER_GATHER_BROADCAST);
}

static world_t world;

START_TEST(any_facts)
{
    unit_random_t random = {unit_seed() + (uint64_t)_i};

    make(&world, &random, false);
    check_all(&world);
    for (int32_t r = 0; r < world.size; r++)
        UNIT_CHECK(world.plan[r].first == world.facts[r].first);
}
END_TEST

/* Where ranks do not agree on who shares a node they conclude the same all the same. */
START_TEST(broken_views)
{
    unit_random_t random = {unit_seed() + 10000 + (uint64_t)_i};

    make(&world, &random, true);
    check_all(&world);
}
END_TEST

static int32_t limit(int engine, int32_t ppn, int32_t n, int32_t size)
{
    nicbarrier_options_t options = any;

    options.engine = engine;
    options.ppn = ppn;
    return nicbarrier_limit(&options, n, size);
}

START_TEST(limits)
{
    /* On one node shared memory needs no leaders, whatever ppn says. */
    ck_assert_int_eq(limit(NICBARRIER_ANY_ENGINE, 0, 8, 8), 8);
    ck_assert_int_eq(limit(NICBARRIER_ANY_ENGINE, 2, 8, 8), 8);
    ck_assert_int_eq(limit(0, 2, 8, 8), 8);
    /* A network engine that is asked for there works between all processes, or as ppn says. */
    ck_assert_int_eq(limit(2, 0, 8, 8), 1);
    ck_assert_int_eq(limit(2, 2, 8, 8), 2);
    ck_assert_int_eq(limit(2, 20, 8, 8), 8);
    /* Between nodes. */
    ck_assert_int_eq(limit(NICBARRIER_ANY_ENGINE, 0, 8, 16), 8);
    ck_assert_int_eq(limit(NICBARRIER_ANY_ENGINE, 3, 8, 16), 3);
    ck_assert_int_eq(limit(2, 0, 8, 16), 8);
    ck_assert_int_eq(limit(2, 1, 8, 16), 1);
    ck_assert_int_eq(limit(2, 4, 1, 16), 1);
}
END_TEST

static nicbarrier_processors_t processors(int32_t me)
{
    return nicbarrier_plan_processors(world.facts, 4, me, 8);
}

/* Ranks that are bound to processors of their own, that share them, and that are too many. */
START_TEST(sharing)
{
    nicbarrier_facts_t *f = world.facts;

    for (int r = 0; r < 4; r++)
        f[r] = (nicbarrier_facts_t){.processors = 1, .processor_set = (uint64_t)r};
    for (int r = 0; r < 4; r++)
        ck_assert_int_eq(processors(r), NICBARRIER_OWN);
    f[2].processor_set = f[3].processor_set;
    ck_assert_int_eq(processors(0), NICBARRIER_OWN);
    ck_assert_int_eq(processors(1), NICBARRIER_OWN);
    ck_assert_int_eq(processors(2), NICBARRIER_CROWDED);
    ck_assert_int_eq(processors(3), NICBARRIER_CROWDED);
    f[3].first = 3; /* on another node */
    ck_assert_int_eq(processors(2), NICBARRIER_OWN);
    ck_assert_int_eq(processors(3), NICBARRIER_OWN);

    /* Four share three. */
    for (int r = 0; r < 4; r++)
        f[r] = (nicbarrier_facts_t){.processors = 3, .processor_set = 7};
    for (int r = 0; r < 4; r++)
        ck_assert_int_eq(processors(r), NICBARRIER_CROWDED);
    /* One has one of them to itself, or with those that may go elsewhere. */
    f[0] = (nicbarrier_facts_t){.processors = 1, .processor_set = 1};
    ck_assert_int_eq(processors(0), NICBARRIER_OWN);
    for (int r = 1; r < 4; r++)
        ck_assert_int_eq(processors(r), NICBARRIER_SHARED);

    /* Alone on its node, but not bound: ranks of other communicators may be there, too. */
    for (int r = 0; r < 4; r++)
        f[r] = (nicbarrier_facts_t){.first = r, .processors = 8, .processor_set = 3};
    ck_assert_int_eq(processors(0), NICBARRIER_SHARED);

    /* Nobody knows. */
    for (int r = 0; r < 4; r++)
        f[r] = (nicbarrier_facts_t){.first = 0};
    ck_assert_int_eq(processors(0), NICBARRIER_SHARED);
}
END_TEST

int main(void)
{
    unit_in_one_process();
    return UNIT_RUN("nicbarrier_plan", UNIT_LOOP(any_facts, 0, 300),
                    UNIT_LOOP(broken_views, 0, 300), UNIT_ONCE(limits), UNIT_ONCE(sharing));
}
