/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Engine datagram with a stepper that goes on by itself (nicbarrier_adapter.h): what it is for, and
 * what happens where it cannot, or can no longer. That barriers are right is tested with those of
 * other engines (check_nicbarrier_conformance).
 */
#include "test/unit/nicbarrier_adapter.h"
#include "test/unit/nicbarrier_group.h"

#include "common/support/clock.h"

static void calm(int me)
{
    (void)me;
    adapter_config.calm = true;
}

/* ---- without any processor of the hosts ------------------------------------------------------ */

/* All enter and compute: the end is there to be seen, and no thread had to do anything for it. */
static void by_itself(test_t *t)
{
    begin(t, 70, NULL, 0);
    barriers(t, 1, 1);
    meet(t, 1);
    const uint64_t taken = COUNT(stepper_taken);
    enter(t, 5);
    meet(t, 2);
    /* The adapters need a moment, but nobody calls the engine. */
    while (engine->completed(t->net) < 5)
        nap(1);
    check(t, 5);
    (void)engine->progress(t->net);
    EXPECT(COUNT(stepper_taken) > taken);
    EXPECT(COUNT(nacks) == 0 && COUNT(stepper_fallbacks) == 0);
    meet(t, 3);
    engine->disconnect(t->net);
}

START_TEST(goes_on_by_itself)
{
    run(&(scenario_t){.run = by_itself, .n = 5, .nack_usec = NEVER_USEC, .prepare = calm});
}
END_TEST

/* A thread that sleeps on the network is woken by the end, though no packet needs it; without the
 * helper thread, which may take the packet that wakes it. */
static void sleeping(test_t *t)
{
    begin(t, 71, NULL, 0);
    barriers(t, 1, 1);
    nicbarrier_datagram_stop_thread();
    for (uint64_t e = 2; e <= 10; e++) {
        nap(t->me == (int)e % t->n ? 50 : 0);
        enter(t, e);
        while (engine->completed(t->net) < e) {
            engine->wait(t->net, NEVER_USEC);
            (void)engine->progress(t->net);
        }
    }
    engine->disconnect(t->net);
}

START_TEST(sleepers_are_woken)
{
    run(&(scenario_t){.run = sleeping, .n = 4, .nack_usec = NEVER_USEC, .prepare = calm});
}
END_TEST

/* Member 0 leads a node. Another process of that (played by member 1, beside its own part) enters
 * for it, and sees the end. */
static void behind(test_t *t)
{
    begin(t, 72, NULL, 0);
    barriers(t, 1, 1);
    if (t->me == 0)
        t->shared->follower_len = engine->follower_record(t->net, t->shared->follower);
    meet(t, 1);
    if (t->me == 1) {
        nicbarrier_follower_t *b = engine->attach(t->shared->follower, t->shared->follower_len);
        EXPECT(b != NULL && (engine->known(b) == 1 || engine->known(b) == 0));
        atomic_store(&t->shared->entered[0], 2);
        engine->notify(b, 2, false);
        barriers(t, 2, 2);
        for (int i = 0; i < 1000 && engine->known(b) < 2; i++)
            nap(1);
        EXPECT(engine->known(b) == 2);
        meet(t, 2);
        meet(t, 3);
        EXPECT(engine->known(b) == 2); /* also when the leader has freed its group */
        engine->detach(b);
    } else {
        meet(t, 2);
        EXPECT(engine->completed(t->net) == 2);
        engine->disconnect(t->net);
        meet(t, 3);
    }
    if (t->me == 1)
        engine->disconnect(t->net);
}

START_TEST(others_enter_for_a_leader)
{
    run(&(scenario_t){.run = behind, .n = 2, .nack_usec = NEVER_USEC, .prepare = calm});
}
END_TEST

/* Member 0 polls for a while, so that no timer of its barriers before runs any more. */
static void let_timers_run_out(test_t *t)
{
    const uint64_t begun = onic_now_nsec();

    while (onic_now_nsec() - begun < 5000000)
        (void)engine->progress(t->net);
}

/* As `behind`, barrier after barrier, and words are lost. The leader polls, which keeps its helper
 * thread away, but has nothing to enter itself: it asks for what it has missed all the same. */
static void behind_with_losses(test_t *t)
{
    nicbarrier_follower_t *b = NULL;

    begin(t, 79, NULL, 0);
    barriers(t, 1, 1);
    if (t->me == 0)
        t->shared->follower_len = engine->follower_record(t->net, t->shared->follower);
    meet(t, 1);
    if (t->me == 1)
        b = engine->attach(t->shared->follower, t->shared->follower_len);
    else /* so that it stays away also where this process has to wait for a processor */
        nicbarrier_datagram_stop_thread();
    for (uint64_t e = 2; e <= 20; e++) {
        if (t->me == 0) {
            let_timers_run_out(t);
            atomic_store(&t->shared->arrived[2], (int)e);
            while (engine->completed(t->net) < e)
                (void)engine->progress(t->net);
        } else {
            while (atomic_load(&t->shared->arrived[2]) < (int)e)
                (void)engine->progress(t->net);
            atomic_store(&t->shared->entered[0], e);
            engine->notify(b, e, true);
            barriers(t, e, e);
        }
    }
    EXPECT(COUNT(stepper_fallbacks) == 0);
    atomic_fetch_add(&t->shared->arrived[3], 1);
    while (atomic_load(&t->shared->arrived[3]) < t->n)
        (void)engine->progress(t->net);
    if (b != NULL)
        engine->detach(b);
    engine->disconnect(t->net);
}

START_TEST(others_enter_and_words_are_lost)
{
    run(&(scenario_t){.run = behind_with_losses, .n = 2, .drop = 300, .prepare = calm});
}
END_TEST

/* Member 0 has nothing to do but barriers of one group, which it finds complete without a look at
 * the network. It answers the question of another group all the same. */
static void busy_elsewhere(test_t *t)
{
    begin(t, 82, NULL, 0);
    nicbarrier_net_t *other = t->net;
    begin(t, 83, NULL, 1);
    barriers(t, 1, 1);
    meet(t, 2);
    if (t->me == 0)
        nicbarrier_datagram_stop_thread();
    else
        engine->enter(other, 1);
    for (uint64_t e = 2; e <= 1000; e++) {
        enter(t, e);
        while (t->me == 0 && engine->completed(t->net) < e)
            sched_yield();
        await(t, e);
    }
    if (t->me == 1) {
        look_on(t, 20);
        EXPECT(other->partner[0].alive);
        atomic_store(&t->shared->arrived[4], 1);
    }
    while (atomic_load(&t->shared->arrived[4]) == 0)
        nap(1);
    engine->enter(other, 1);
    while (engine->completed(other) < 1)
        (void)engine->progress(other);
    atomic_fetch_add(&t->shared->arrived[3], 1);
    while (atomic_load(&t->shared->arrived[3]) < t->n)
        (void)engine->progress(other);
    engine->disconnect(other);
    engine->disconnect(t->net);
}

START_TEST(other_groups_are_answered)
{
    run(&(scenario_t){.run = busy_elsewhere, .n = 2, .prepare = calm});
}
END_TEST

/* ---- partners that the engine does not hear itself ------------------------------------------- */

/* A trial in which one comes late, and packets are lost: what the adapter hears counts. */
static void trial(test_t *t)
{
    nicbarrier_reason_t why = {""};

    begin(t, 73, NULL, 0);
    if (t->me == 0)
        nap(1500);
    enter(t, 1);
    while (engine->completed(t->net) < 1) {
        (void)engine->progress(t->net);
        EXPECT(!engine->hopeless(t->net, &why));
        nap(1);
    }
    check(t, 1);
    meet(t, 1);
    engine->disconnect(t->net);
}

START_TEST(silence_of_packets_kept)
{
    run(&(scenario_t){.run = trial, .n = 4, .drop = 300});
}
END_TEST

/* ---- where it cannot ------------------------------------------------------------------------- */

static void dies(int me)
{
    adapter_config.dies_at = me == 0 ? 40 : me == 1 ? 57 : 0;
}

static void absent(int me)
{
    adapter_config.absent = me == 0;
}

static void many(test_t *t)
{
    begin(t, 74, NULL, 0);
    barriers(t, 1, 200);
}

static void dying_one(test_t *t)
{
    many(t);
    EXPECT(COUNT(stepper_fallbacks) == 1 || t->me >= 2);
    EXPECT(COUNT(stepper_taken) > 0);
    meet(t, 1);
    engine->disconnect(t->net);
}

START_TEST(is_gone)
{
    run(&(scenario_t){.run = dying_one, .n = 5, .drop = _i * 100, .prepare = dies});
}
END_TEST

/* One member has none: it takes its steps itself. */
static void without_one(test_t *t)
{
    many(t);
    EXPECT((COUNT(stepper_taken) > 0) == (t->me != 0));
    EXPECT(COUNT(stepper_fallbacks) == 0);
    meet(t, 1);
    engine->disconnect(t->net);
}

START_TEST(some_have_none)
{
    run(&(scenario_t){.run = without_one,
                      .n = 6,
                      .schedule = NICBARRIER_GATHER_BROADCAST,
                      .nack_usec = NEVER_USEC,
                      .prepare = absent});
}
END_TEST

/* ---- the parameter --------------------------------------------------------------------------- */

static void by_name(test_t *t)
{
    nicbarrier_reason_t why = {""};

    nicbarrier_datagram_config.stepper = "host";
    begin(t, 75, NULL, 0);
    barriers(t, 1, 20);
    EXPECT(COUNT(stepper_taken) == 0);
    engine->disconnect(t->net);
    nicbarrier_datagram_config.stepper = "adapter";
    begin(t, 76, NULL, 1);
    barriers(t, 1, 20);
    EXPECT(COUNT(stepper_taken) > 0);
    engine->disconnect(t->net);
    adapter_config.absent = true;
    EXPECT(!joins(t, 77, NULL, 2, &why));
    EXPECT(strcmp(why.text, "there is no adapter") == 0);
    engine->disconnect(t->net);
    nicbarrier_datagram_config.stepper = "other";
    EXPECT(!joins(t, 78, NULL, 3, &why));
    EXPECT(strstr(why.text, "no stepper of that name") != NULL);
    engine->disconnect(t->net);
}

START_TEST(is_chosen)
{
    run(&(scenario_t){.run = by_name, .n = 3});
}
END_TEST

int main(void)
{
    return UNIT_RUN("nicbarrier_stepper", UNIT_LOOP(is_gone, 0, 3), UNIT_ONCE(goes_on_by_itself),
                    UNIT_ONCE(sleepers_are_woken), UNIT_ONCE(others_enter_for_a_leader),
                    UNIT_ONCE(others_enter_and_words_are_lost),
                    UNIT_ONCE(other_groups_are_answered), UNIT_ONCE(silence_of_packets_kept),
                    UNIT_ONCE(some_have_none), UNIT_ONCE(is_chosen));
}
