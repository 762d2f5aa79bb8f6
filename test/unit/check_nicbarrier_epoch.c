/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The timers of the barrier protocol: members alone, and many over a network that loses messages
 * (perf/sim). That nobody leaves early, and everybody leaves, whatever the network does, is shown
 * for few members in all states (test/explore/rule), and for engines by the tests of all of them.
 */
#include "coll_nicbarrier/epoch/nack.h"
#include "coll_nicbarrier/epoch/rule.h"

#include <string.h>

#include "perf/sim/barrier.h"
#include "test/unit/unit.h"

#define USEC UINT64_C(1000)
#define MSEC UINT64_C(1000000)

/** Nothing is lost, but members have timers. */
#define NO_LOSS 1e-12

static sim_barrier_result_t run(sim_barrier_t b)
{
    b.costs = (sim_barrier_costs_t){
        .enter = 1000, .first = 500, .send = 500, .receive = 500, .latency = 5000, .leave = 1000};
    b.silence = MSEC;
    b.seed += unit_seed();
    const sim_barrier_result_t r = sim_barrier(&b);

    if (r.early || !r.complete)
        ck_abort_msg("schedule %d, %d members, loss %g, jitter %g, seed %" PRIu64 ": %s",
                     (int)b.schedule, (int)b.members, b.loss, b.jitter, b.seed,
                     r.early ? "left early" : "hangs");
    return r;
}

/* Whatever is lost and late. */
START_TEST(any_cluster)
{
    static const double losses[] = {NO_LOSS, 0.001, 0.02, 0.1, 0.3};
    unit_random_t r = {unit_seed() + (uint64_t)_i};

    for (int i = 0; i < 100; i++)
        (void)run((sim_barrier_t){.schedule = (nicbarrier_schedule_kind_t)unit_below(&r, 3),
                                  .members = (int32_t)(2 + unit_below(&r, 63)),
                                  .barriers = (int)(1 + unit_below(&r, 30)),
                                  .jitter = (double)unit_below(&r, 1000 * USEC),
                                  .loss = losses[unit_below(&r, 5)],
                                  .seed = (uint64_t)i});
}
END_TEST

/** Nanoseconds that a barrier takes longer if so many of the packets are lost. */
static double cost_of_loss(int32_t n, int barriers, double loss, double late)
{
    const sim_barrier_result_t
        without =
            run((sim_barrier_t){.members = n, .barriers = barriers, .loss = NO_LOSS, .late = late}),
        with = run((sim_barrier_t){.members = n, .barriers = barriers, .loss = loss, .late = late});

    ck_assert(with.lost > 0 && without.lost == 0);
    return with.time - without.time;
}

/* A loss costs a time-out of a millisecond, if the receiver must ask. Of two ranks it
 * need not, as long as the other one's next message comes through: in one barrier of 2500 both are
 * lost. Of 16, each barrier loses one or two messages. Behind a long wait it makes that longer by a
 * part, though nobody repeats without being asked. */
START_TEST(losses_cost_little)
{
    const double computes = 300.0 * MSEC;

    ck_assert_double_lt(cost_of_loss(2, 20000, 0.02, 0), 3.0 * USEC);
    ck_assert_double_lt(cost_of_loss(16, 1000, 0.02, 0), 2.0 * MSEC);
    ck_assert_double_lt(cost_of_loss(8, 100, 0.1, computes), computes / 16 + 16.0 * MSEC);
}
END_TEST

/* To wait for 10 seconds for a process that computes costs some eighty NACKs for each step that
 * waits, and not sixty in a second. */
START_TEST(who_computes_is_not_asked_again_and_again)
{
    const int barriers = 2;

    for (int32_t n = 2; n <= 16; n *= 2) {
        const sim_barrier_result_t r = run((sim_barrier_t){
            .members = n, .barriers = barriers, .loss = NO_LOSS, .late = 10000.0 * MSEC});

        ck_assert_double_ge(r.time, 10000.0 * MSEC);
        ck_assert(r.nacks > 0 && r.repeats == 0);
        /* Each waits in one step for it, or for one who waits in turn. */
        if (r.nacks > (uint64_t)(n - 1) * (uint64_t)barriers * 100)
            ck_abort_msg("%d processes: %" PRIu64 " NACKs", (int)n, r.nacks);
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
    nicbarrier_nacks_init(&m->nacks, MSEC);
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
    ck_assert_uint_eq(m.nacks.deadline - now, NICBARRIER_NACK_MOST);
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

int main(void)
{
    return UNIT_RUN("nicbarrier_epoch", UNIT_LOOP(any_cluster, 0, 8), UNIT_ONCE(losses_cost_little),
                    UNIT_ONCE(who_computes_is_not_asked_again_and_again), UNIT_ONCE(back_off),
                    UNIT_ONCE(answers), UNIT_ONCE(failed_groups_do_not_ask));
}
