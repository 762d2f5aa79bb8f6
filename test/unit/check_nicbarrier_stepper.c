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
    EXPECT(COUNT(stepper_taken) > 0 && COUNT(stepper_fallbacks) == 0);
    engine->disconnect(t->net);
    added_stepper.ends_at = t->me < 2 ? 10 : 0;
    begin(t, 79, NULL, 4);
    barriers(t, 1, 20);
    EXPECT(COUNT(stepper_fallbacks) == (t->me < 2));
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
    return UNIT_RUN("nicbarrier_stepper", UNIT_ONCE(is_chosen));
}
