/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The barrier protocol in a simulated cluster: nobody leaves before all have entered, everybody
 * leaves, whatever the network does; and where the protocol is broken on purpose, this shows.
 */
#include "coll_nicbarrier/epoch/epoch.h"

#include <string.h>

#include "coll_nicbarrier/engines/datagram/tombstone.h"
#include "test/unit/nicbarrier_sim.h"
#include "test/unit/unit.h"

#define USEC UINT64_C(1000)
#define MSEC UINT64_C(1000000)

static const nicbarrier_timing_t timing = {
    .first = 1 * MSEC, .min = MSEC / 2, .max = 4 * MSEC, .cap = 16 * MSEC};

/* ---- clusters ---------------------------------------------------------------------------------
 */

static sim_config_t random_config(unit_random_t *r)
{
    const unsigned rates[] = {0, 1, 20, 100, 300};

    return (sim_config_t){.schedule = (nicbarrier_schedule_kind_t)unit_below(r, 3),
                          .degree = (int)(NICBARRIER_DEGREE_MIN + unit_below(r, 15)),
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
                          .tombstones_lost = unit_once_in(r, 3) ? 500 : 0,
                          .seed = unit_random64(r)};
}

static void check_sound(const sim_config_t *c)
{
    const sim_result_t r = sim_run(c);

    if (r.left_early || !r.all_left || r.wrong > 0)
        ck_abort_msg(
            "schedule %d degree %d n %d groups %d barriers %d outstanding %d start %" PRIu64
            " loss %u twice %u late %u stops %u seed %" PRIu64 ": %s after %" PRIu64 " ms",
            (int)c->schedule, c->degree, (int)c->n, c->groups, c->barriers, c->outstanding,
            c->start, c->loss, c->twice, c->late, c->stops, c->seed,
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
                                .degree = 4,
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

/* A loss costs a time-out of half a millisecond at least, if the receiver must ask. Of two ranks it
 * need not, as long as the other one's next message comes through: in one barrier of 2500 both are
 * lost. Of 16, each barrier loses one or two messages. */
START_TEST(losses_cost_little)
{
    ck_assert_uint_lt(cost_of_loss(2, 20000), 3 * USEC);
    ck_assert_uint_lt(cost_of_loss(16, 1000), 3 * MSEC / 2);
}
END_TEST

/* ---- what is broken shows ---------------------------------------------------------------------
 */

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

/* ---- one member alone -------------------------------------------------------------------------
 */

/* Member 0 of a pair. */
static void pair(nicbarrier_epochs_t *e)
{
    nicbarrier_step_t steps[NICBARRIER_STEPS_MAX];
    const int n = nicbarrier_schedule(NICBARRIER_DISSEMINATION, 0, 0, 2, steps);

    nicbarrier_epochs_init(e, steps, n, &timing);
}

static nicbarrier_packet_t packet(nicbarrier_packet_kind_t kind, uint64_t epoch)
{
    return (nicbarrier_packet_t){.kind = (uint8_t)kind, .sender = 1, .key = 1, .epoch = epoch};
}

/* NACKs come after 1, 2, 4, 8, 16, 16 ... ms and ask for the oldest that is missing. */
START_TEST(back_off)
{
    nicbarrier_epochs_t e;
    nicbarrier_message_t out[NICBARRIER_STEPS_MAX];
    const uint64_t waits[] = {1, 2, 4, 8, 16, 16, 16};
    uint64_t now = 5 * MSEC;

    pair(&e);
    ck_assert_uint_eq(e.deadline, NICBARRIER_NEVER);
    nicbarrier_epochs_enter(&e, 3);
    ck_assert_int_eq(nicbarrier_epochs_advance(&e, now, out), 1);
    ck_assert_uint_eq(out[0].epoch, 3);
    /* One cannot be outside again of what one has entered. */
    nicbarrier_epochs_enter(&e, 2);
    ck_assert_uint_eq(e.entered, 3);
    for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        now += waits[i] * MSEC;
        ck_assert_uint_eq(e.deadline, now);
        ck_assert_int_eq(nicbarrier_epochs_expire(&e, now - 1, out), 0);
        ck_assert_int_eq(nicbarrier_epochs_expire(&e, now, out), 1);
        ck_assert_int_eq(out[0].to, 1);
        ck_assert_uint_eq(out[0].epoch, 1);
    }
    /* News begin a new wait; being complete ends all waiting. */
    const nicbarrier_packet_t two = packet(NICBARRIER_PACKET_AGAIN, 2);
    const nicbarrier_packet_t three = packet(NICBARRIER_PACKET_AGAIN, 3);
    ck_assert_int_eq(nicbarrier_epochs_receive(&e, &two, now), NICBARRIER_NEW);
    ck_assert_int_eq(nicbarrier_epochs_advance(&e, now, out), 0);
    ck_assert_uint_eq(e.completed, 2);
    ck_assert_int_eq(nicbarrier_epochs_expire(&e, now + MSEC, out), 1);
    ck_assert_uint_eq(out[0].epoch, 3);
    ck_assert_int_eq(nicbarrier_epochs_receive(&e, &three, now), NICBARRIER_NEW);
    ck_assert_int_eq(nicbarrier_epochs_advance(&e, now, out), 0);
    ck_assert_uint_eq(e.completed, 3);
    ck_assert_int_eq(nicbarrier_epochs_expire(&e, NICBARRIER_NEVER - 1, out), 0);
    ck_assert_uint_eq(e.deadline, NICBARRIER_NEVER);
}
END_TEST

/* The first time-out follows the time that steps take, between its limits. */
START_TEST(time_out_adapts)
{
    const struct {
        uint64_t wait, least, most;
    } cases[] = {{10 * USEC, timing.min, timing.min},
                 {2 * MSEC, 2 * MSEC, 5 * MSEC / 2},
                 {60 * MSEC, timing.max, timing.max}};
    nicbarrier_epochs_t e;
    nicbarrier_message_t out[NICBARRIER_STEPS_MAX];
    uint64_t now = 0, epoch = 0;

    pair(&e);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int times = 0; times < 100; times++) {
            const nicbarrier_packet_t p = packet(NICBARRIER_PACKET_EPOCH, ++epoch);
            nicbarrier_epochs_enter(&e, epoch);
            nicbarrier_epochs_advance(&e, now, out);
            now += cases[i].wait;
            ck_assert_int_eq(nicbarrier_epochs_receive(&e, &p, now), NICBARRIER_NEW);
            nicbarrier_epochs_advance(&e, now, out);
            ck_assert_uint_eq(e.completed, epoch);
        }
        nicbarrier_epochs_enter(&e, ++epoch);
        nicbarrier_epochs_advance(&e, now, out);
        ck_assert_uint_ge(e.slot[0].deadline - now, cases[i].least);
        ck_assert_uint_le(e.slot[0].deadline - now, cases[i].most);
        /* Its end is a repeated message, which does not count. */
        const nicbarrier_packet_t again = packet(NICBARRIER_PACKET_AGAIN, epoch);
        now += 30 * MSEC;
        nicbarrier_epochs_receive(&e, &again, now);
        nicbarrier_epochs_advance(&e, now, out);
    }
}
END_TEST

/* A rank that once was away for an hour is not waited for patiently ever after. */
START_TEST(long_absence_is_forgotten)
{
    nicbarrier_epochs_t e;
    nicbarrier_message_t out[NICBARRIER_STEPS_MAX];
    uint64_t now = 0;

    pair(&e);
    for (uint64_t epoch = 1; epoch <= 40; epoch++) {
        const nicbarrier_packet_t p = packet(NICBARRIER_PACKET_EPOCH, epoch);
        nicbarrier_epochs_enter(&e, epoch);
        nicbarrier_epochs_advance(&e, now, out);
        now += epoch == 1 ? 3600 * 1000 * MSEC : 10 * USEC;
        nicbarrier_epochs_receive(&e, &p, now);
        nicbarrier_epochs_advance(&e, now, out);
    }
    nicbarrier_epochs_enter(&e, 41);
    nicbarrier_epochs_advance(&e, now, out);
    ck_assert_uint_eq(e.slot[0].deadline - now, timing.min);
}
END_TEST

START_TEST(wrong_packets)
{
    nicbarrier_epochs_t e;
    nicbarrier_message_t out;
    const nicbarrier_packet_t good = packet(NICBARRIER_PACKET_EPOCH, 1);
    nicbarrier_packet_t wrong[5] = {good, good, good, good, good};

    pair(&e);
    wrong[0].at = 1;
    wrong[1].from_at = 1;
    wrong[2].sender = 0;
    wrong[3].at = NICBARRIER_STEPS_MAX - 1;
    wrong[4].epoch = NICBARRIER_AHEAD_MAX + 1;
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(nicbarrier_epochs_receive(&e, &wrong[i], 0), NICBARRIER_WRONG);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(nicbarrier_epochs_answer(&e, &wrong[i], &out), NICBARRIER_WRONG);
    ck_assert_int_eq(nicbarrier_epochs_receive(&e, &good, 0), NICBARRIER_NEW);
    ck_assert_int_eq(nicbarrier_epochs_receive(&e, &good, 0), NICBARRIER_OLD);
    ck_assert_int_eq(nicbarrier_epochs_answer(&e, &good, &out), NICBARRIER_OLD);
    ck_assert_uint_eq(e.completed, 0);
}
END_TEST

/* ---- tombstones -------------------------------------------------------------------------------
 */

START_TEST(tombstones)
{
    static nicbarrier_tombstones_t t;
    uint64_t epoch;

    ck_assert(!nicbarrier_tombstones_answer(&t, 1, 1, &epoch));
    nicbarrier_tombstones_add(&t, 1, 5);
    nicbarrier_tombstones_add(&t, 2, 0);
    ck_assert(nicbarrier_tombstones_answer(&t, 1, 3, &epoch));
    ck_assert_uint_eq(epoch, 5);
    ck_assert(!nicbarrier_tombstones_answer(&t, 1, 6, &epoch));
    ck_assert(!nicbarrier_tombstones_answer(&t, 2, 1, &epoch));
    ck_assert(!nicbarrier_tombstones_answer(&t, 3, 1, &epoch));
    for (uint64_t i = 0; i < NICBARRIER_TOMBSTONES - 2; i++)
        nicbarrier_tombstones_add(&t, 1000 + i, i);
    ck_assert(nicbarrier_tombstones_answer(&t, 1, 3, &epoch) && epoch == 5);
    ck_assert(!nicbarrier_tombstones_answer(&t, 3, 1, &epoch));
    /* From now on some are forgotten, the oldest first. */
    nicbarrier_tombstones_add(&t, 9, 9);
    ck_assert(nicbarrier_tombstones_answer(&t, 1, 3, &epoch) && epoch == 3);
    ck_assert(!nicbarrier_tombstones_answer(&t, 2, 1, &epoch));
    ck_assert(nicbarrier_tombstones_answer(&t, 9, 1, &epoch) && epoch == 9);
}
END_TEST

int main(void)
{
    const TTest *const each[] = {any_cluster};
    const TTest *const tests[] = {
        large_clusters, no_message_too_many, losses_cost_little,        broken_protocols_show,
        back_off,       time_out_adapts,     long_absence_is_forgotten, wrong_packets,
        tombstones};

    return unit_run_loop("nicbarrier_epoch", each, 1, 8, tests, sizeof(tests) / sizeof(tests[0]));
}
