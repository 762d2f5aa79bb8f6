/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The rule of epochs, against a model that keeps sets of epochs where the rule keeps their
 * greatest; and bounds. Groups are those of check_nicbarrier_epoch and of test/explore/rule.c.
 */
#include "coll_nicbarrier/epoch/rule.h"

#include <string.h>

#include "coll_nicbarrier/schedule/schedule.h"
#include "test/unit/unit.h"

/* ---- the model ------------------------------------------------------------------------------ */

/** Epochs 1 .. EPOCHS as a set: bit e - 1. */
enum { EPOCHS = 60 };

typedef struct model {
    uint32_t nsteps;
    uint64_t sends, waits;
    uint64_t entered, completed, blocked; /**< the last: steps */
    bool failed, told;
    uint64_t sent[NICBARRIER_RULE_STEPS], received[NICBARRIER_RULE_STEPS];
} model_t;

static uint64_t up_to(uint64_t epoch)
{
    return epoch == 0 ? 0 : UINT64_MAX >> (64 - epoch);
}

static bool contains(uint64_t set, uint64_t part)
{
    return (part & ~set) == 0;
}

/** An epoch goes through a step when it was sent there and has been heard of there. */
static uint64_t model_advance(model_t *m)
{
    uint64_t ready = m->entered, out = 0;

    m->blocked = 0;
    for (uint32_t k = 0; k < m->nsteps; k++) {
        if ((m->sends >> k & 1) && !contains(m->sent[k], ready)) {
            m->sent[k] |= ready;
            out |= UINT64_C(1) << k;
        }
        if ((m->waits >> k & 1) && !contains(m->received[k], ready)) {
            m->blocked |= UINT64_C(1) << k;
            ready &= m->received[k];
        }
    }
    m->completed |= ready;
    if (m->failed && !m->told)
        out = m->sends;
    m->told = m->failed;
    return out;
}

static nicbarrier_word_t model_receive(model_t *m, uint32_t k, uint64_t epoch, bool failed)
{
    if (k >= m->nsteps || !(m->waits >> k & 1))
        return NICBARRIER_WORD_WRONG;
    const bool new = !contains(m->received[k], up_to(epoch)) || (failed && !m->failed);
    m->received[k] |= up_to(epoch);
    m->failed |= failed;
    return new ? NICBARRIER_WORD_NEW : NICBARRIER_WORD_OLD;
}

static void compare(const nicbarrier_rule_t *r, const model_t *m)
{
    UNIT_CHECK(up_to(r->entered) == m->entered);
    UNIT_CHECK(up_to(r->completed) == m->completed);
    UNIT_CHECK(r->blocked == m->blocked);
    for (uint32_t k = 0; k < m->nsteps; k++) {
        const uint64_t word = nicbarrier_rule_word(r, k);
        UNIT_CHECK(up_to(word & ~NICBARRIER_WORD_FAILED) == m->sent[k]);
        UNIT_CHECK((word >> 63 != 0) == m->failed);
    }
}

/* One member, to which anything may be said. */
START_TEST(as_the_model)
{
    unit_random_t random = {unit_seed() + (uint64_t)_i};
    const uint32_t nsteps = (uint32_t)unit_below(&random, NICBARRIER_RULE_STEPS + 1);
    const uint64_t all = nsteps == 0 ? 0 : UINT64_MAX >> (64 - nsteps);
    const uint64_t fail_once_in = unit_once_in(&random, 3) ? 40 : 100000;
    model_t m = {.nsteps = nsteps,
                 .sends = (unit_random64(&random) | unit_random64(&random)) & all,
                 .waits = (unit_random64(&random) & unit_random64(&random)) & all};
    nicbarrier_rule_t r;

    memset(&r, 0x5a, sizeof(r));
    nicbarrier_rule_init(&r, nsteps, m.sends, m.waits);
    for (int i = 0; i < 600; i++) {
        const uint64_t most = (uint64_t)i / 10 + 1; /* so that all goes on for a while */
        const uint32_t k = (uint32_t)unit_below(&random, (uint64_t)nsteps + 2);
        const bool failed = unit_once_in(&random, fail_once_in);
        const uint64_t epoch = unit_below(&random, most + 1);
        if (unit_once_in(&random, 4)) {
            nicbarrier_rule_enter(&r, epoch);
            m.entered |= up_to(epoch);
        } else if (unit_once_in(&random, fail_once_in)) {
            nicbarrier_rule_fail(&r);
            m.failed = true;
        } else {
            const uint64_t word = epoch | (failed ? NICBARRIER_WORD_FAILED : 0);
            UNIT_CHECK(nicbarrier_rule_receive(&r, k, word) == model_receive(&m, k, epoch, failed));
        }
        if (!unit_once_in(&random, 3)) {
            UNIT_CHECK(nicbarrier_rule_advance(&r) == model_advance(&m));
            compare(&r, &m);
        }
    }
}
END_TEST

/* ---- bounds --------------------------------------------------------------------------------- */

START_TEST(words_that_cannot_be)
{
    /* Not known to the compiler, and two of them steps if only their lower bits count. */
    static const volatile uint32_t no_step[] = {3, 32, 33, 64, 66, UINT32_MAX};
    const uint64_t failed = NICBARRIER_WORD_FAILED, most = NICBARRIER_OUTSTANDING_MAX;
    nicbarrier_rule_t r;

    nicbarrier_rule_init(&r, 3, 7, 5);
    ck_assert_int_eq(nicbarrier_rule_receive(&r, 0, most + 1), NICBARRIER_WORD_WRONG);
    ck_assert_int_eq(nicbarrier_rule_receive(&r, 0, (most + 1) | failed), NICBARRIER_WORD_WRONG);
    ck_assert_int_eq(nicbarrier_rule_receive(&r, 0, UINT64_MAX), NICBARRIER_WORD_WRONG);
    ck_assert_int_eq(nicbarrier_rule_receive(&r, 1, 1), NICBARRIER_WORD_WRONG);
    ck_assert_int_eq(nicbarrier_rule_receive(&r, 1, failed), NICBARRIER_WORD_WRONG);
    for (size_t i = 0; i < sizeof(no_step) / sizeof(no_step[0]); i++)
        ck_assert_int_eq(nicbarrier_rule_receive(&r, no_step[i], 1), NICBARRIER_WORD_WRONG);
    ck_assert(!r.failed && r.received[0] == 0 && r.received[2] == 0);
    ck_assert_int_eq(nicbarrier_rule_receive(&r, 0, most), NICBARRIER_WORD_NEW);
    ck_assert_int_eq(nicbarrier_rule_receive(&r, 0, most), NICBARRIER_WORD_OLD);
    ck_assert_int_eq(nicbarrier_rule_receive(&r, 2, 0), NICBARRIER_WORD_OLD);
    nicbarrier_rule_enter(&r, 7);
    ck_assert_int_eq(nicbarrier_rule_receive(&r, 2, most + 8), NICBARRIER_WORD_WRONG);
    ck_assert_int_eq(nicbarrier_rule_receive(&r, 2, most + 7), NICBARRIER_WORD_NEW);
    ck_assert_uint_eq(nicbarrier_rule_advance(&r), 7);
    ck_assert_uint_eq(r.completed, 7);
    ck_assert_uint_eq(nicbarrier_rule_word(&r, 2), 7);
    ck_assert_uint_eq(nicbarrier_rule_word(&r, 33), 0);
    ck_assert_uint_eq(nicbarrier_rule_word(&r, UINT32_MAX), 0);
}
END_TEST

/* As many steps as there can be, and none. */
START_TEST(numbers_of_steps)
{
    nicbarrier_rule_t r;

    nicbarrier_rule_init(&r, NICBARRIER_RULE_STEPS, UINT64_C(1) << 31, UINT64_C(1) << 31);
    nicbarrier_rule_enter(&r, 2);
    ck_assert_uint_eq(nicbarrier_rule_advance(&r), UINT64_C(1) << 31);
    ck_assert_uint_eq(r.blocked, UINT64_C(1) << 31);
    ck_assert_uint_eq(r.completed, 0);
    ck_assert_int_eq(nicbarrier_rule_receive(&r, 31, 2 | NICBARRIER_WORD_FAILED),
                     NICBARRIER_WORD_NEW);
    ck_assert_uint_eq(nicbarrier_rule_advance(&r), UINT64_C(1) << 31);
    ck_assert_uint_eq(r.completed, 2);
    ck_assert_uint_eq(nicbarrier_rule_word(&r, 31), 2 | NICBARRIER_WORD_FAILED);
    ck_assert_uint_eq(nicbarrier_rule_advance(&r), 0);

    nicbarrier_rule_init(&r, 0, 0, 0);
    nicbarrier_rule_enter(&r, 9);
    ck_assert_uint_eq(nicbarrier_rule_advance(&r), 0);
    ck_assert_uint_eq(r.completed, 9);
}
END_TEST

/* No schedule has more steps than the rule. */
_Static_assert(NICBARRIER_STEPS_MAX <= NICBARRIER_RULE_STEPS, "all schedules fit");
_Static_assert(NICBARRIER_RULE_STEPS < 64, "a bit for each step");

int main(void)
{
    unit_in_one_process();
    return UNIT_RUN("nicbarrier_rule", UNIT_LOOP(as_the_model, 0, 300),
                    UNIT_ONCE(words_that_cannot_be), UNIT_ONCE(numbers_of_steps));
}
