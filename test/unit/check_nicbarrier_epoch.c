/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The barrier protocol in a simulated cluster: nobody leaves before all have entered, everybody
 * leaves, whatever the network does; and where the protocol is broken on purpose, this shows.
 */
#include "coll_nicbarrier/epoch/nack.h"
#include "coll_nicbarrier/epoch/rule.h"

#include <string.h>

#include "test/unit/nicbarrier_sim.h"
#include "test/unit/unit.h"

#define USEC UINT64_C(1000)
#define MSEC UINT64_C(1000000)

static const nicbarrier_timing_t timing = {
    .first = 1 * MSEC, .cap = 16 * MSEC, .most = 1000 * MSEC};

/* ---- clusters ------------------------------------------------------------------------------- */

static sim_config_t random_config(unit_random_t *r)
{
    const unsigned rates[] = {0, 1, 20, 100, 300};

    return (sim_config_t){.schedule = (nicbarrier_schedule_kind_t)unit_below(r, 3),
                          .n = (int32_t)(2 + unit_below(r, unit_once_in(r, 4) ? 63 : 15)),
                          .groups = (int)(1 + unit_below(r, 4)),
                          .barriers = (int)(1 + unit_below(r, 30)),
                          .outstanding = (int)(1 + unit_below(r, 8)),
                          /* Also across the end of 32 bits. */
                          .start = unit_once_in(r, 2) ? 0 : UINT32_MAX - unit_below(r, 20),
                          .loss = rates[unit_below(r, 5)],
                          .twice = rates[unit_below(r, 4)],
                          .late = rates[unit_below(r, 4)],
                          .stops = unit_once_in(r, 3) ? 20 : 0,
                          .seed = unit_random64(r)};
}

static void check_sound(const sim_config_t *c)
{
    const sim_result_t r = sim_run(c);

    if (r.left_early || !r.all_left || r.wrong > 0)
        ck_abort_msg("schedule %d n %d groups %d barriers %d outstanding %d start %" PRIu64
                     " loss %u twice %u late %u stops %u seed %" PRIu64 ": %s after %" PRIu64 " ms",
                     (int)c->schedule, (int)c->n, c->groups, c->barriers, c->outstanding, c->start,
                     c->loss, c->twice, c->late, c->stops, c->seed,
                     r.left_early ? "left early"
                     : r.all_left ? "refused"
                                  : "hangs",
                     r.nanoseconds / MSEC);
}

START_TEST(any_cluster)
{
    unit_random_t random = {unit_seed() + 1000 * (uint64_t)_i};

    for (int i = 0; i < 150; i++) {
        const sim_config_t c = random_config(&random);
        check_sound(&c);
    }
}
END_TEST

START_TEST(large_clusters)
{
    for (int schedule = 0; schedule < 3; schedule++) {
        const sim_config_t c = {.schedule = (nicbarrier_schedule_kind_t)schedule,
                                .n = 256 - schedule,
                                .groups = 2,
                                .barriers = 20,
                                .outstanding = 4,
                                .start = UINT32_MAX - 10,
                                .loss = 20,
                                .twice = 20,
                                .late = 20,
                                .stops = 2,
                                .seed = unit_seed()};
        check_sound(&c);
    }
}
END_TEST

/* In a network that loses nothing and is fast nobody asks, and the number of messages is what the
 * schedule says: no acknowledgements. */
START_TEST(no_message_too_many)
{
    const sim_config_t c = {.schedule = NICBARRIER_DISSEMINATION,
                            .n = 16,
                            .groups = 1,
                            .barriers = 100,
                            .outstanding = 1,
                            .seed = unit_seed()};
    const sim_result_t r = sim_run(&c);

    ck_assert(r.all_left);
    ck_assert_uint_eq(r.messages, 16 * 4 * 100);
    ck_assert_uint_eq(r.answers + r.tomb_answers, 0);
}
END_TEST

/* Nanoseconds that a barrier takes longer if 2 % of the packets are lost. */
static uint64_t cost_of_loss(int32_t n, int barriers)
{
    sim_config_t c = {.schedule = NICBARRIER_DISSEMINATION,
                      .n = n,
                      .groups = 1,
                      .barriers = barriers,
                      .outstanding = 1,
                      .seed = unit_seed()};
    const sim_result_t without = sim_run(&c);
    c.loss = 20;
    const sim_result_t with = sim_run(&c);

    ck_assert(without.all_left && with.all_left);
    return (with.nanoseconds - without.nanoseconds) / (uint64_t)barriers;
}

/* A loss costs a time-out of a millisecond, if the receiver must ask. Of two ranks it
 * need not, as long as the other one's next message comes through: in one barrier of 2500 both are
 * lost. Of 16, each barrier loses one or two messages. */
START_TEST(losses_cost_little)
{
    ck_assert_uint_lt(cost_of_loss(2, 20000), 3 * USEC);
    ck_assert_uint_lt(cost_of_loss(16, 1000), 2 * MSEC);
}
END_TEST

/* ---- what is broken shows ------------------------------------------------------------------- */

static int broken_runs(sim_mutant_t mutant, int times)
{
    unit_random_t random = {unit_seed()};
    int broken = 0;

    for (int i = 0; i < times; i++) {
        sim_config_t c = {.schedule = NICBARRIER_DISSEMINATION,
                          .n = (int32_t)(3 + unit_below(&random, 14)),
                          .groups = 3,
                          .barriers = 20,
                          .outstanding = 4,
                          .loss = 50,
                          .late = 20,
                          .mutant = mutant,
                          .seed = unit_random64(&random)};
        const sim_result_t r = sim_run(&c);
        broken += r.left_early || !r.all_left;
    }
    return broken;
}

START_TEST(broken_protocols_show)
{
    enum { TIMES = 20 };
    static const int least[SIM_MUTANTS] = {
        [SIM_NO_TOMBSTONE] = TIMES / 2, [SIM_NO_ANSWER] = TIMES * 3 / 4,
        [SIM_NO_NACK] = TIMES * 3 / 4,  [SIM_NOT_CUMULATIVE] = TIMES * 3 / 4,
        [SIM_ONE_NACK] = TIMES / 2,     [SIM_STEP_SKIPPED] = TIMES / 4};

    for (int mutant = SIM_SOUND; mutant < SIM_MUTANTS; mutant++) {
        const int broken = broken_runs((sim_mutant_t)mutant, TIMES);
        if (mutant == SIM_SOUND ? broken > 0 : broken < least[mutant])
            ck_abort_msg("mutant %d: %d of %d runs are broken", mutant, broken, TIMES);
    }
}
END_TEST

/* ---- late and lost -------------------------------------------------------------------------- */

static sim_config_t with_one_that_computes(int32_t n, uint64_t nsec, int barriers)
{
    return (sim_config_t){.schedule = NICBARRIER_DISSEMINATION,
                          .n = n,
                          .groups = 1,
                          .barriers = barriers,
                          .outstanding = 1,
                          .computes = nsec,
                          .seed = unit_seed()};
}

/* To wait for 10 seconds for a process that computes costs some eighty NACKs for each step that
 * waits, and not sixty in a second. */
START_TEST(who_computes_is_not_asked_again_and_again)
{
    const uint64_t seconds = 10;

    for (int32_t n = 2; n <= 16; n *= 2) {
        sim_config_t c = with_one_that_computes(n, seconds * 1000 * MSEC, 2);
        const sim_result_t r = sim_run(&c);
        /* Process 0 acts four times with a pause before each: it makes the group, connects, and
         * enters twice; others wait for the latter. */
        const uint64_t waiters = (uint64_t)(n - 1), waits = 3;
        ck_assert(r.all_left);
        ck_assert_uint_ge(r.nanoseconds, 3 * seconds * 1000 * MSEC);
        ck_assert_uint_gt(r.late, 0);
        /* Each waits in one step for somebody; some in one more, who waits in turn. */
        if (r.nacks > waiters * waits * 100)
            ck_abort_msg("%d processes: %" PRIu64 " NACKs", (int)n, r.nacks);
    }
}
END_TEST

/* A loss behind a long wait makes that longer by a part, though nobody repeats without being asked.
 */
START_TEST(losses_behind_long_waits)
{
    const uint64_t computes = 300 * MSEC;
    const int barriers = 100;
    sim_config_t c = with_one_that_computes(8, computes, barriers);
    const sim_result_t without = sim_run(&c);
    c.loss = 100;
    const sim_result_t with = sim_run(&c);

    ck_assert(without.all_left && with.all_left);
    const uint64_t cost = (with.nanoseconds - without.nanoseconds) / (uint64_t)barriers;
    if (cost > computes / 16 + 16 * MSEC)
        ck_abort_msg("a barrier takes %" PRIu64 " us longer", cost / USEC);
}
END_TEST

/* ---- failure -------------------------------------------------------------------------------- */

START_TEST(all_hear_of_a_failure)
{
    unit_random_t random = {unit_seed()};

    for (int i = 0; i < 300; i++) {
        sim_config_t c = random_config(&random);
        c.groups = 1;
        c.outstanding = 1;
        c.stops = 0;
        c.barriers = 20;
        c.fails = 1 + (int)unit_below(&random, 15);
        const sim_result_t r = sim_run(&c);
        if (r.left_early || !r.all_left || r.failed != (uint64_t)c.n || r.wrong > 0)
            ck_abort_msg("schedule %d n %d loss %u seed %" PRIu64 ": %" PRIu64 " have heard",
                         (int)c.schedule, (int)c.n, c.loss, c.seed, r.failed);
    }
}
END_TEST

/* ---- one member alone ----------------------------------------------------------------------- */

/* Member 0 of a pair. */
typedef struct member {
    nicbarrier_rule_t rule;
    nicbarrier_nacks_t nacks;
} member_t;

static void pair(member_t *m)
{
    nicbarrier_rule_init(&m->rule, 1, 1, 1);
    nicbarrier_nacks_init(&m->nacks, &timing);
}

/* Returns the steps in which something is sent. */
static uint64_t enter(member_t *m, uint64_t epoch, uint64_t now)
{
    nicbarrier_rule_enter(&m->rule, epoch);
    const uint64_t out = nicbarrier_rule_advance(&m->rule);
    nicbarrier_nacks_follow(&m->nacks, &m->rule, now);
    return out;
}

static void hear(member_t *m, uint64_t epoch, uint64_t now)
{
    ck_assert_int_eq(nicbarrier_rule_receive(&m->rule, 0, epoch), NICBARRIER_WORD_NEW);
    nicbarrier_nacks_received(&m->nacks, 0);
    (void)nicbarrier_rule_advance(&m->rule);
    nicbarrier_nacks_follow(&m->nacks, &m->rule, now);
}

static uint64_t expire(member_t *m, uint64_t now)
{
    return nicbarrier_nacks_expire(&m->nacks, &m->rule, now);
}

/* NACKs come after 1, 2, 4, 8, 16, 16 ... ms; where somebody has been waited for very long they
 * come less often. */
START_TEST(back_off)
{
    member_t m;
    const uint64_t waits[] = {1, 2, 4, 8, 16, 16, 16};
    uint64_t now = 5 * MSEC;

    pair(&m);
    ck_assert_uint_eq(m.nacks.deadline, NICBARRIER_NEVER);
    ck_assert_uint_eq(enter(&m, 3, now), 1);
    for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        now += waits[i] * MSEC;
        ck_assert_uint_eq(m.nacks.deadline, now);
        ck_assert_uint_eq(expire(&m, now - 1), 0);
        ck_assert_uint_eq(expire(&m, now), 1);
    }
    for (int i = 0; i < 1000; i++)
        ck_assert_uint_eq(expire(&m, now = m.nacks.deadline), 1);
    ck_assert_uint_eq(m.nacks.deadline - now, timing.most);
    /* News begin a new wait; being complete ends all waiting. */
    hear(&m, 2, now);
    ck_assert_uint_eq(m.rule.completed, 2);
    ck_assert_uint_eq(expire(&m, now + MSEC), 1);
    hear(&m, 3, now);
    ck_assert_uint_eq(m.rule.completed, 3);
    ck_assert_uint_eq(expire(&m, NICBARRIER_NEVER - 1), 0);
    ck_assert_uint_eq(m.nacks.deadline, NICBARRIER_NEVER);
}
END_TEST

/* What is sent already, or is not yet, or never; and of a group that has failed all is sent. */
START_TEST(answers)
{
    member_t m;

    pair(&m);
    ck_assert(!nicbarrier_nacks_answer(&m.rule, 1, 1));
    ck_assert(!nicbarrier_nacks_answer(&m.rule, 0, NICBARRIER_OUTSTANDING_MAX + 1));
    ck_assert(!nicbarrier_nacks_answer(&m.rule, 0, 1));
    enter(&m, 1, MSEC);
    ck_assert(nicbarrier_nacks_answer(&m.rule, 0, 1));
    ck_assert(!nicbarrier_nacks_answer(&m.rule, 0, 2));
    nicbarrier_rule_fail(&m.rule);
    ck_assert(nicbarrier_nacks_answer(&m.rule, 0, 2));
    ck_assert(!nicbarrier_nacks_answer(&m.rule, 0, NICBARRIER_OUTSTANDING_MAX + 2));
}
END_TEST

/* Nothing is wanted of a group that has failed. */
START_TEST(failed_groups_do_not_ask)
{
    member_t m;

    pair(&m);
    enter(&m, 1, MSEC);
    nicbarrier_rule_fail(&m.rule);
    ck_assert_uint_eq(nicbarrier_rule_advance(&m.rule), 1);
    nicbarrier_nacks_follow(&m.nacks, &m.rule, MSEC);
    ck_assert_uint_eq(expire(&m, NICBARRIER_NEVER - 1), 0);
}
END_TEST

/* One forged packet must not switch off synchronisation. */
START_TEST(wrong_words)
{
    member_t m;

    pair(&m);
    ck_assert_int_eq(nicbarrier_rule_receive(&m.rule, 1, 1), NICBARRIER_WORD_WRONG);
    ck_assert_int_eq(nicbarrier_rule_receive(&m.rule, NICBARRIER_STEPS_MAX, 1),
                     NICBARRIER_WORD_WRONG);
    for (int shift = 32; shift < 63; shift++)
        ck_assert_int_eq(nicbarrier_rule_receive(&m.rule, 0, UINT64_C(1) << shift),
                         NICBARRIER_WORD_WRONG);
    ck_assert_int_eq(nicbarrier_rule_receive(&m.rule, 0, NICBARRIER_OUTSTANDING_MAX + 1),
                     NICBARRIER_WORD_WRONG);
    ck_assert_int_eq(nicbarrier_rule_receive(&m.rule, 0, 1), NICBARRIER_WORD_NEW);
    ck_assert_int_eq(nicbarrier_rule_receive(&m.rule, 0, 1), NICBARRIER_WORD_OLD);
    ck_assert_uint_eq(m.rule.completed, 0);
}
END_TEST

int main(void)
{
    return UNIT_RUN(
        "nicbarrier_epoch", UNIT_LOOP(any_cluster, 0, 8), UNIT_ONCE(large_clusters),
        UNIT_ONCE(no_message_too_many), UNIT_ONCE(losses_cost_little),
        UNIT_ONCE(broken_protocols_show), UNIT_ONCE(who_computes_is_not_asked_again_and_again),
        UNIT_ONCE(losses_behind_long_waits), UNIT_ONCE(all_hear_of_a_failure), UNIT_ONCE(back_off),
        UNIT_ONCE(answers), UNIT_ONCE(failed_groups_do_not_ask), UNIT_ONCE(wrong_words));
}
