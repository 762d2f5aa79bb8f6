/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The tests of engines themselves (nicbarrier_conformance.h), by the engine in memory: it passes
 * them, and each kind of broken one does not.
 */
#include "common/config.h"

#include "test/unit/nicbarrier_here.h"
#include "test/unit/nicbarrier_memory_engine.h"

static memory_mutant_t mutant;

static void memory_begin(int n, nicbarrier_schedule_kind_t schedule, uint64_t seed)
{
    memory_engine_reset(seed, mutant);
    here_begin(&nicbarrier_engine_memory, n, schedule);
}

static const conformance_row_t in_memory = {
    .name = "memory",
    .begin = memory_begin,
    .pass = memory_engine_pass,
    .end = here_end,
    .fail = here_fail,
    .connect = here_connect,
    IN_THIS_PROCESS,
    .cannot = {[CONFORMANCE_CUT] = "it has no connections",
               [CONFORMANCE_TOGETHER] = "its memory is for one thread"},
};

/* Each kind of broken engine is noticed by some of them, and a sound one by none. */
START_TEST(broken_engines_are_noticed)
{
    int noticed = 0;

    mutant = (memory_mutant_t)_i;
    for (int which = 0; which < 24; which++)
        noticed += conformance_count_failures(&in_memory, which);
    memory_engine_reset(0, MEMORY_SOUND);
    if (mutant == MEMORY_SOUND)
        ck_assert_int_eq(noticed, 0);
    else
        ck_assert_int_gt(noticed, 0);
}
END_TEST

int main(void)
{
    const conformance_row_t *const rows[] = {&in_memory};
    Suite *suite =
        UNIT_SUITE("nicbarrier_memory", UNIT_LOOP(broken_engines_are_noticed, 0, MEMORY_MUTANTS));

    conformance_add(suite, rows, 1);
    return unit_run_suite(suite);
}
