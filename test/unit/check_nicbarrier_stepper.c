/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Engine datagram with a stepper that has a state of its own (nicbarrier_added_stepper.h): that it
 * is chosen, and what happens where it cannot have a group, or ceases. That barriers are right is
 * tested with those of other engines (check_nicbarrier_conformance).
 */
#include "test/unit/nicbarrier_added_stepper.h"
#include "test/unit/nicbarrier_group.h"

static void many(test_t *t)
{
    begin(t, 74, NULL, 0);
    barriers(t, 1, 200);
}

/* Two of them end early: what they have done stays done. */
static void ends(int me)
{
    added_stepper.ends_at = me == 0 ? 40 : me == 1 ? 57 : 0;
}

static void ended(test_t *t)
{
    many(t);
    EXPECT(COUNT(stepper_fallbacks) == (t->me < 2));
    EXPECT(COUNT(stepper_taken) > 0);
    meet(t, 1);
    engine->disconnect(t->net);
}

START_TEST(is_gone)
{
    run(&(scenario_t){.run = ended, .n = 5, .drop = _i * 100, .prepare = ends});
}
END_TEST

/* One member has none: it takes its steps itself. */
static void absent(int me)
{
    added_stepper.absent = me == 0;
}

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
    run(&(scenario_t){
        .run = without_one, .n = 6, .schedule = NICBARRIER_GATHER_BROADCAST, .prepare = absent});
}
END_TEST

/* What is complete is seen at the first look, and known to all who look for a failure. */
static void shown(test_t *t)
{
    many(t);
    meet(t, 1);
    if (t->me == 0)
        engine->fail(t->net);
    else
        enter(t, 201);
    while (!engine->failed(t->net))
        look_on(t, 1);
    EXPECT(engine->completed(t->net) == 200);
    engine->disconnect(t->net);
}

START_TEST(failures)
{
    run(&(scenario_t){.run = shown, .n = 4, .drop = 100});
}
END_TEST

static void by_name(test_t *t)
{
    nicbarrier_reason_t why = {""};

    nicbarrier_datagram_config.stepper = "host";
    begin(t, 75, NULL, 0);
    barriers(t, 1, 20);
    EXPECT(COUNT(stepper_taken) == 0);
    engine->disconnect(t->net);
    nicbarrier_datagram_config.stepper = "added";
    begin(t, 76, NULL, 1);
    barriers(t, 1, 20);
    EXPECT(COUNT(stepper_taken) > 0);
    engine->disconnect(t->net);
    added_stepper.absent = true;
    EXPECT(!joins(t, 77, NULL, 2, &why));
    EXPECT(strcmp(why.text, "there is no such stepper") == 0);
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
    return UNIT_RUN("nicbarrier_stepper", UNIT_LOOP(is_gone, 0, 3), UNIT_ONCE(some_have_none),
                    UNIT_ONCE(failures), UNIT_ONCE(is_chosen));
}
