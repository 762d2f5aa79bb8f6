/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The agreement among simulated ranks: whatever fails at whomever, all come to their ends with the
 * verdict that the failures mean, and leaders have the endpoints of exactly their partners. What it
 * costs at scale is counted and compared with the formula.
 */
#include <string.h>

#include "common/support/bytes.h"
#include "test/unit/nicbarrier_agree_sim.h"

enum { ROUNDS = 300, MOST = 40 };

/* ---- a random world ---------------------------------------------------------------------------
 */

typedef struct world {
    sim_t sim;
    int32_t n;
    int32_t node[MOST];
    nicbarrier_setup_t common;
} world_t;

static void lay_out(world_t *w, unit_random_t *random)
{
    const int32_t nodes = 1 + (int32_t)unit_below(random, (uint64_t)w->n);
    const int32_t each = (w->n + nodes - 1) / nodes;
    const uint64_t layout = unit_below(random, 3);

    for (int32_t r = 0; r < w->n; r++)
        w->node[r] = layout == 0   ? r / each
                     : layout == 1 ? r % nodes
                                   : (int32_t)unit_below(random, (uint64_t)nodes);
}

static void world_init(world_t *w, uint64_t seed)
{
    unit_random_t random = {seed};

    w->n = 1 + (int32_t)unit_below(&random, MOST);
    w->n = w->n > 1 ? w->n : 2;
    lay_out(w, &random);
    w->common = (nicbarrier_setup_t){
        .number = 1 + (uint32_t)unit_below(&random, 3),
        .settings = 7,
        .job = 3,
        .ppn = unit_once_in(&random, 2) ? 0 : (int32_t)(1 + unit_below(&random, 5)),
        .engine = unit_once_in(&random, 2) ? NICBARRIER_ANY_ENGINE : (int8_t)unit_below(&random, 3),
        .schedule = (uint8_t)unit_below(&random, 3)};
    sim_init(&w->sim, w->n, w->node, w->common);
    w->sim.random = random;
}

/* ---- what must come of it ---------------------------------------------------------------------
 */

typedef struct outcome {
    int engine; /**< NICBARRIER_ANY_ENGINE: declined */
    int32_t leaders;
    int32_t leader[MOST];
} outcome_t;

static int32_t limit_on(const world_t *w, int32_t n)
{
    const bool network = w->common.engine > 0;

    if (!network && (n == w->n || w->common.engine == 0))
        return n;
    if (w->common.ppn > 0)
        return w->common.ppn < n ? w->common.ppn : n;
    return network && n == w->n ? 1 : n;
}

typedef struct members {
    int32_t n;
    int32_t rank[MOST];
} members_t;

static members_t members_of(const world_t *w, int32_t node)
{
    members_t m = {0};

    for (int32_t r = 0; r < w->n; r++)
        if (w->node[r] == node)
            m.rank[m.n++] = r;
    return m;
}

static bool is_apart(const world_t *w, const members_t *m)
{
    bool apart = w->sim.rank[m->rank[0]].faults.make;

    for (int32_t i = 1; i < m->n; i++)
        apart |= w->sim.rank[m->rank[i]].faults.unmapped;
    return apart;
}

/** Adds a node; false where a failure of one of its processes ends all. */
static bool add_node(const world_t *w, int32_t node, bool *leads, int32_t *nodes)
{
    const members_t m = members_of(w, node);
    const int32_t limit = limit_on(w, m.n);
    const bool shares = limit > 1, apart = shares && is_apart(w, &m);

    for (int32_t i = 0; i < m.n; i++) {
        leads[m.rank[i]] = !shares || apart || i % limit == 0;
        if (shares && w->sim.rank[m.rank[i]].faults.settle)
            return false;
    }
    *nodes += apart ? m.n : m.n > 0;
    return true;
}

static bool fails_at(const world_t *w, const outcome_t *o, int engine)
{
    for (int32_t i = 0; i < o->leaders; i++) {
        const sim_faults_t *f = &w->sim.rank[o->leader[i]].faults;
        if (((f->prepare | f->keep | f->connect | f->trial) & 1U << engine) != 0)
            return true;
    }
    return false;
}

static outcome_t outcome_of(const world_t *w)
{
    outcome_t o = {.engine = NICBARRIER_ANY_ENGINE};
    bool leads[MOST] = {false}, sound = true;
    int32_t nodes = 0;

    for (int32_t r = 0; r < w->n; r++)
        sound &= !w->sim.rank[r].faults.failed;
    for (int32_t node = 0; node < w->n && sound; node++)
        sound = add_node(w, node, leads, &nodes) && sound;
    for (int32_t node = 0; node < w->n; node++)
        sound &= add_node(w, node, leads, &(int32_t){0});
    if (!sound)
        return o;
    for (int32_t r = 0; r < w->n; r++)
        if (leads[r])
            o.leader[o.leaders++] = r;
    if (o.leaders == 1) {
        o.engine = 0;
        return o;
    }
    for (int32_t i = 0; i < o.leaders && w->common.schedule == NICBARRIER_GATHER_BROADCAST; i++)
        if (w->sim.rank[o.leader[i]].faults.table)
            return o;
    for (int engine = 1; engine <= 2 && o.engine == NICBARRIER_ANY_ENGINE; engine++)
        if ((w->common.engine < 0 || w->common.engine == engine) && !fails_at(w, &o, engine))
            o.engine = engine;
    return o;
}

/* ---- checks -----------------------------------------------------------------------------------
 */

static void check_partners(const world_t *w, const outcome_t *o, int32_t i)
{
    nicbarrier_step_t steps[NICBARRIER_STEPS_MAX];
    const sim_rank_t *r = &w->sim.rank[o->leader[i]];
    const int n = nicbarrier_schedule((nicbarrier_schedule_kind_t)w->common.schedule,
                                      NICBARRIER_DEGREE, i, o->leaders, steps);
    bool is_partner[MOST] = {false};
    uint32_t partners = 0, xor = 0;

    for (int k = 0; k < n; k++) {
        if (steps[k].send_to >= 0)
            is_partner[steps[k].send_to] = true;
        if (steps[k].wait_for >= 0)
            is_partner[steps[k].wait_for] = true;
    }
    for (int32_t p = 0; p < o->leaders; p++) {
        partners += is_partner[p];
        xor ^= is_partner[p] ? (uint32_t)p * 2654435761u : 0;
    }
    UNIT_CHECK(r->index == i && r->connections == partners && r->connections_xor == xor);
    UNIT_CHECK(r->connected && r->expects && r->key == w->sim.rank[o->leader[0]].key);
}

static void check_world(const world_t *w)
{
    const outcome_t o = outcome_of(w);
    const sim_t *sim = &w->sim;
    const int32_t speaker = nicbarrier_protocol_speaker(&sim->rank[0].m);

    UNIT_CHECK(sim_ended(sim) == w->n);
    for (int32_t r = 0; r < w->n; r++) {
        const nicbarrier_protocol_t *m = &sim->rank[r].m;
        UNIT_CHECK(m->verdict == (o.engine < 0 ? NICBARRIER_DECLINED : NICBARRIER_AGREED));
        UNIT_CHECK(m->engine == o.engine && sim->rank[r].mail == 0);
        UNIT_CHECK(nicbarrier_protocol_speaker(m) == speaker);
        UNIT_CHECK(sim->rank[r].connected == (o.engine > 0 && m->leads));
    }
    for (int32_t i = 0; i < o.leaders && o.engine > 0; i++)
        check_partners(w, &o, i);
}

static void run_and_check(world_t *w)
{
    sim_run(&w->sim);
    check_world(w);
    sim_fini(&w->sim);
}

START_TEST(all_is_well)
{
    world_t w;

    world_init(&w, unit_seed() + (uint64_t)_i);
    run_and_check(&w);
}
END_TEST

/** One failure, or several, at random ranks. */
static void add_fault(world_t *w)
{
    unit_random_t *random = &w->sim.random;
    sim_faults_t *f = &w->sim.rank[unit_below(random, (uint64_t)w->n)].faults;
    const uint8_t engines = (uint8_t)(2U << unit_below(random, 2) | 2U << unit_below(random, 2));

    switch (unit_below(random, 10)) {
    case 0:
        f->failed = true;
        break;
    case 1:
        f->make = true;
        break;
    case 2:
        f->unnamed = true;
        break;
    case 3:
        f->unmapped = true;
        break;
    case 4:
        f->settle = true;
        break;
    case 5:
        f->table = true;
        break;
    case 6:
        f->prepare |= engines;
        break;
    case 7:
        f->connect |= engines;
        break;
    case 8:
        f->keep |= engines;
        break;
    default:
        f->trial |= engines;
    }
}

START_TEST(failures)
{
    world_t w;

    world_init(&w, unit_seed() + 1000003u * (uint64_t)_i);
    for (uint64_t faults = 1 + unit_below(&w.sim.random, 3); faults > 0; faults--)
        add_fault(&w);
    run_and_check(&w);
}
END_TEST

static void all_decline(world_t *w)
{
    sim_run(&w->sim);
    UNIT_CHECK(sim_ended(&w->sim) == w->n);
    for (int32_t r = 0; r < w->n; r++)
        UNIT_CHECK(w->sim.rank[r].m.verdict == NICBARRIER_DECLINED);
    sim_fini(&w->sim);
}

/** One rank does not see what the others see. */
START_TEST(views_that_differ)
{
    world_t w;

    world_init(&w, unit_seed() + 77u * (uint64_t)_i);
    unit_random_t *random = &w.sim.random;
    nicbarrier_setup_t *s = &w.sim.rank[unit_below(random, (uint64_t)w.n)].m.setup;
    /* Whoever is alone in its own view counts itself. */
    if (s->n == 1 || unit_once_in(random, 2))
        s->first = (int32_t)(((uint64_t)s->first + 1 + unit_below(random, (uint64_t)w.n - 1)) %
                             (uint64_t)w.n);
    else
        s->n++;
    all_decline(&w);
}
END_TEST

START_TEST(settings_that_differ)
{
    world_t w;

    world_init(&w, unit_seed() + 78u * (uint64_t)_i);
    w.sim.rank[unit_below(&w.sim.random, (uint64_t)w.n)].m.setup.settings++;
    all_decline(&w);
}
END_TEST

/** No network engine serves several jobs; a single node is served. */
START_TEST(jobs_that_differ)
{
    world_t w;

    world_init(&w, unit_seed() + 79u * (uint64_t)_i);
    w.sim.rank[unit_below(&w.sim.random, (uint64_t)w.n)].m.setup.job++;
    const outcome_t o = outcome_of(&w);
    sim_run(&w.sim);
    UNIT_CHECK(sim_ended(&w.sim) == w.n);
    for (int32_t r = 0; r < w.n; r++)
        UNIT_CHECK(w.sim.rank[r].m.engine == (o.engine == 0 ? 0 : NICBARRIER_ANY_ENGINE));
    sim_fini(&w.sim);
}
END_TEST

/** The worst score of a leader counts. */
START_TEST(scores)
{
    world_t w;
    bool leads = false;

    world_init(&w, unit_seed() + 80u * (uint64_t)_i);
    sim_rank_t *worst = &w.sim.rank[unit_below(&w.sim.random, (uint64_t)w.n)];
    worst->m.setup.candidate[1].score = (uint8_t)unit_below(&w.sim.random, 2) * 40;
    const uint8_t score = worst->m.setup.candidate[1].score;
    outcome_t o = outcome_of(&w);
    for (int32_t i = 0; i < o.leaders; i++)
        leads |= o.leader[i] == worst->me;
    sim_run(&w.sim);
    UNIT_CHECK(sim_ended(&w.sim) == w.n);
    if (o.engine == 1 && leads && w.common.engine < 0)
        o.engine = 2;
    else if (o.engine == 1 && leads && score == 0)
        o.engine = NICBARRIER_ANY_ENGINE;
    for (int32_t r = 0; r < w.n; r++)
        UNIT_CHECK(w.sim.rank[r].m.engine == o.engine);
    sim_fini(&w.sim);
}
END_TEST

/* ---- broken messages --------------------------------------------------------------------------
 */

static bool any(const unsigned char *bytes)
{
    (void)bytes;
    return true;
}

/** Where a broken message counts as one that says that its sender has failed. */
static bool counts(const unsigned char *bytes)
{
    const bool sweep = bytes[0] == NICBARRIER_HELLO || bytes[0] == NICBARRIER_LEADERS ||
                       bytes[0] == NICBARRIER_RESULT;

    return (sweep && bytes[1] == 0) || bytes[0] == NICBARRIER_ANSWER ||
           bytes[0] == NICBARRIER_ENDPOINT;
}

static bool counts_not(const unsigned char *bytes)
{
    return !counts(bytes);
}

static void world_with_harm(world_t *w, uint64_t seed, bool (*harmed)(const unsigned char *))
{
    world_init(w, seed);
    w->sim.harmed = harmed;
    w->sim.harm_at = (int32_t)unit_below(&w->sim.random, (uint64_t)w->n);
}

START_TEST(broken_messages_that_count)
{
    world_t w;

    world_with_harm(&w, unit_seed() + 81u * (uint64_t)_i, counts);
    w.sim.harm = (sim_harm_t)(SIM_CUT + _i % 3);
    sim_run(&w.sim);
    UNIT_CHECK(sim_ended(&w.sim) == w.n);
    for (int32_t r = 0; r < w.n; r++) {
        UNIT_CHECK(w.sim.rank[r].m.verdict == w.sim.rank[0].m.verdict);
        UNIT_CHECK(w.sim.rank[r].m.engine == w.sim.rank[0].m.engine);
        UNIT_CHECK(w.sim.rank[r].m.verdict != NICBARRIER_ERROR);
    }
    sim_fini(&w.sim);
}
END_TEST

/** Elsewhere it is refused: an error at whom it came to, and at nobody else. */
START_TEST(broken_messages_that_end_it)
{
    world_t w;

    world_with_harm(&w, unit_seed() + 82u * (uint64_t)_i, counts_not);
    w.sim.harm = (sim_harm_t)(SIM_CUT + _i % 3);
    sim_run(&w.sim);
    for (int32_t r = 0; r < w.n; r++)
        UNIT_CHECK((w.sim.rank[r].m.verdict == NICBARRIER_ERROR) ==
                   (w.sim.harm_done && r == w.sim.harm_to));
    sim_fini(&w.sim);
}
END_TEST

/** What an earlier agreement has left is as nothing. */
START_TEST(stale_messages)
{
    world_t w;

    world_with_harm(&w, unit_seed() + 83u * (uint64_t)_i, any);
    w.sim.harm = SIM_STALE;
    run_and_check(&w);
}
END_TEST

/* ---- what it costs ----------------------------------------------------------------------------
 */

typedef struct cost {
    uint64_t messages, bytes, most;
} cost_t;

static uint64_t partners_of(int32_t n)
{
    nicbarrier_step_t steps[NICBARRIER_STEPS_MAX];
    const int k = nicbarrier_schedule(NICBARRIER_DISSEMINATION, 0, 0, n, steps);
    uint64_t partners = 0;

    for (int i = 0; i < 2 * k; i++) {
        bool again = false;
        const int32_t p = i % 2 ? steps[i / 2].wait_for : steps[i / 2].send_to;
        for (int j = 0; j < i; j++)
            again |= p == (j % 2 ? steps[j / 2].wait_for : steps[j / 2].send_to);
        partners += !again;
    }
    return partners;
}

/** The formula of the README, where each of `nodes` nodes has one leader. */
static cost_t formula(uint64_t n, uint64_t nodes)
{
    const uint64_t ppn = n / nodes, others = n - nodes;
    const uint64_t k = (uint64_t)nicbarrier_fingers((int32_t)nodes);
    const uint64_t depth = (uint64_t)nicbarrier_fingers((int32_t)n);
    const uint64_t partners = partners_of((int32_t)nodes);
    const uint64_t words = 2 * (k - 1) + 2 * k;

    return (cost_t){.messages = 6 * (n - 1) + 3 * others + nodes * (words + partners),
                    .bytes = 6 * (n - 1) * NICBARRIER_SUMMARY_SIZE +
                             others * (2 * NICBARRIER_NODE_SIZE + NICBARRIER_WORD_SIZE) +
                             nodes * (words * NICBARRIER_WORD_SIZE +
                                      partners * (NICBARRIER_TOPIC_SIZE + SIM_ENDPOINT)),
                    .most = 3 * depth + 2 * (ppn - 1) + words + partners};
}

static void check_scale(int32_t n, int32_t ppn)
{
    const nicbarrier_setup_t common = {.number = 1, .settings = 1, .engine = -1};
    int32_t *node = calloc((size_t)n, sizeof(*node));
    uint64_t most = 0;
    sim_t sim;

    ck_assert_ptr_nonnull(node);
    for (int32_t r = 0; r < n; r++)
        node[r] = r / ppn;
    sim_init(&sim, n, node, common);
    free(node);
    sim.in_order = true;
    sim_run(&sim);
    UNIT_CHECK(sim_ended(&sim) == n);
    for (int32_t r = 0; r < n; r++) {
        UNIT_CHECK(sim.rank[r].m.verdict == NICBARRIER_AGREED && sim.rank[r].m.engine == 1);
        most = sim.rank[r].sent > most ? sim.rank[r].sent : most;
    }
    const cost_t cost = formula((uint64_t)n, (uint64_t)(n / ppn));
    printf("%d ranks, %d on a node: %" PRIu64 " messages, %" PRIu64 " bytes, %" PRIu64
           " of one rank at most, %zu bytes of state\n",
           (int)n, (int)ppn, sim.messages, sim.bytes, most, sizeof(nicbarrier_protocol_t));
    fflush(stdout);
    UNIT_CHECK(sim.messages == cost.messages && sim.bytes == cost.bytes && most == cost.most);
    sim_fini(&sim);
}

START_TEST(ten_thousand)
{
    check_scale(10000, 1);
    check_scale(10000, 100);
    UNIT_CHECK(sizeof(nicbarrier_protocol_t) <= 768);
}
END_TEST

START_TEST(a_million)
{
    check_scale(1000000, 100);
}
END_TEST

/** A million of them take half a minute: only where somebody asks for it. */
START_TEST(many_leaders)
{
    check_scale(getenv("ONIC_TEST_LONG") != NULL ? 1000000 : 100000, 1);
}
END_TEST

int main(void)
{
    const TTest *const each[] = {
        all_is_well,      failures, views_that_differ,          settings_that_differ,
        jobs_that_differ, scores,   broken_messages_that_count, broken_messages_that_end_it,
        stale_messages};
    const TTest *const tests[] = {ten_thousand, a_million, many_leaders};

    return unit_run_loop("nicbarrier_agree", each, sizeof(each) / sizeof(each[0]), ROUNDS, tests,
                         sizeof(tests) / sizeof(tests[0]));
}
