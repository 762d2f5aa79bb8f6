/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Places of connections, against rules that are read off the words in rc_terms.h. */
#include "common/verbs/rc_terms.h"
#include "test/unit/unit.h"

enum { PLACES = 12, ROUNDS = 20000 };

/** Is the answer what the words say? Each clause by itself, over all places. */
static void check_end(const onic_place_t *p, unsigned n, uint64_t now, int answer)
{
    bool all_taken = true, any_old = false;

    for (unsigned i = 0; i < n; i++) {
        all_taken &= p[i].state == ONIC_PLACE_BUSY || p[i].state == ONIC_PLACE_IDLE;
        any_old |= p[i].state == ONIC_PLACE_IDLE && p[i].used + ONIC_PLACE_TURNS * n <= now;
    }
    UNIT_CHECK((answer >= 0) == (all_taken && any_old));
    for (unsigned i = 0; answer >= 0 && i < n; i++)
        UNIT_CHECK(p[i].state != ONIC_PLACE_IDLE || p[i].used >= p[answer].used);
    UNIT_CHECK(answer < 0 || p[answer].state == ONIC_PLACE_IDLE);
}

START_TEST(the_oldest_idle_one_ends)
{
    unit_random_t r = {unit_seed()};
    int ends = 0;

    for (int round = 0; round < ROUNDS; round++) {
        const unsigned n = 2 + (unsigned)unit_below(&r, PLACES - 1);
        const uint64_t now = 20 * n;
        onic_place_t p[PLACES];
        int answer;

        for (unsigned i = 0; i < n; i++) {
            p[i].state = unit_once_in(&r, 4 * n) ? (onic_place_state_t)unit_below(&r, 4)
                         : unit_once_in(&r, 2)   ? ONIC_PLACE_BUSY
                                                 : ONIC_PLACE_IDLE;
            p[i].used = unit_below(&r, now + 1);
        }
        answer = onic_place_to_end(p, n, now);
        check_end(p, n, now, answer);
        ends += answer >= 0;
    }
    ck_assert_int_gt(ends, ROUNDS / 10);
    ck_assert_int_lt(ends, ROUNDS);
}
END_TEST

/** A process that uses `active` of its places in turn, and wants one more each time. */
static int end_after(unsigned n, unsigned active, int turns)
{
    onic_place_t p[PLACES] = {{0}};
    uint64_t now = 0;

    for (unsigned i = 0; i < n; i++)
        p[i] = (onic_place_t){ONIC_PLACE_IDLE, ++now};
    for (int turn = 0; turn < turns; turn++) {
        p[(unsigned)turn % active].used = ++now;
        const int answer = onic_place_to_end(p, n, ++now);

        if (answer >= 0)
            return answer;
    }
    return -1;
}

START_TEST(all_in_turn_stay_and_the_unused_go)
{
    for (unsigned n = 2; n <= PLACES; n++) {
        ck_assert_int_eq(end_after(n, n, 1000), -1);
        for (unsigned active = 1; active < n; active++)
            ck_assert_int_eq(end_after(n, active, 1000), (int)active);
    }
}
END_TEST

static bool is_free(const onic_served_place_t *p)
{
    return !p->taken;
}

static bool has_ended(const onic_served_place_t *p)
{
    return p->taken && p->ended;
}

static bool any(const onic_served_place_t *p, unsigned n, bool (*is)(const onic_served_place_t *))
{
    bool found = false;

    for (unsigned i = 0; i < n; i++)
        found |= is(&p[i]);
    return found;
}

/** Each process has one place at most, as the table is only changed by answers. */
START_TEST(who_asks_gets_a_place)
{
    unit_random_t r = {unit_seed()};

    for (int round = 0; round < ROUNDS / 100; round++) {
        const unsigned n = 1 + (unsigned)unit_below(&r, PLACES);
        onic_served_place_t p[PLACES] = {{0}};

        for (int step = 0; step < 100; step++) {
            const uint64_t process = unit_below(&r, 2 * PLACES);
            const int answer = onic_place_for(p, n, process);
            int own = -1;

            for (unsigned i = 0; i < n; i++) {
                UNIT_CHECK(own < 0 || !p[i].taken || p[i].process != process);
                if (p[i].taken && p[i].process == process)
                    own = (int)i;
            }
            UNIT_CHECK(own < 0 || answer == own);
            UNIT_CHECK((answer >= 0) == (own >= 0 || any(p, n, is_free) || any(p, n, has_ended)));
            if (answer >= 0 && own < 0)
                UNIT_CHECK(any(p, n, is_free) ? is_free(&p[answer]) : has_ended(&p[answer]));
            if (answer >= 0)
                p[answer] = (onic_served_place_t){.taken = true, .process = process};
            if (unit_once_in(&r, 4))
                p[unit_below(&r, n)].ended = true;
            if (unit_once_in(&r, 10))
                p[unit_below(&r, n)] = (onic_served_place_t){0};
        }
    }
}
END_TEST

int main(void)
{
    return UNIT_RUN("places", UNIT_ONCE(the_oldest_idle_one_ends),
                    UNIT_ONCE(all_in_turn_stay_and_the_unused_go),
                    UNIT_ONCE(who_asks_gets_a_place));
}
