/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Whether programs compute behind their barriers: some programs, and random ones beside a
 *  reference that remembers everything. */
#include "coll_nicbarrier/component/overlap.h"

#include "test/unit/unit.h"

#define SHORT (NICBARRIER_OVERLAP_LONG / 2)
#define LONG  (2 * NICBARRIER_OVERLAP_LONG)

typedef struct program {
    nicbarrier_overlap_t overlap;
    uint64_t now;
    uint64_t begun, done;
    unsigned handed; /* times that a long absence was expected */
} program_t;

static void begin(program_t *p)
{
    nicbarrier_overlap_back(&p->overlap, p->now);
    p->begun++;
    p->handed += nicbarrier_overlap_leave(&p->overlap, p->begun, p->now);
}

static void finish(program_t *p)
{
    nicbarrier_overlap_back(&p->overlap, p->now);
    while (p->done < p->begun)
        nicbarrier_overlap_done(&p->overlap, ++p->done);
}

/* `burst` barriers one behind the other, then the absence, then waiting for all. */
static unsigned rounds(program_t *p, unsigned n, unsigned burst, uint64_t absence)
{
    p->handed = 0;
    for (unsigned i = 0; i < n; i++) {
        for (unsigned k = 0; k < burst; k++) {
            begin(p);
            p->now += 100;
        }
        p->now += absence;
        finish(p);
        p->now += LONG; /* with nothing outstanding: does not count */
    }
    return p->handed;
}

START_TEST(computing_is_learnt_in_two)
{
    program_t p = {.now = 1};

    ck_assert_uint_eq(rounds(&p, 2, 1, LONG), 0);
    ck_assert_uint_eq(rounds(&p, 10, 1, LONG), 10);
}
END_TEST

START_TEST(waiting_at_once_is_not_computing)
{
    program_t p = {.now = 1};

    ck_assert_uint_eq(rounds(&p, 100, 1, SHORT), 0);
    ck_assert_uint_eq(rounds(&p, 100, 8, 0), 0);
}
END_TEST

START_TEST(overlap_changes)
{
    program_t p = {.now = 1};

    (void)rounds(&p, 10, 1, LONG);
    ck_assert_uint_eq(rounds(&p, 10, 1, SHORT), 2);
    ck_assert_uint_eq(rounds(&p, 10, 1, LONG), 8);
}
END_TEST

START_TEST(one_exception_changes_nothing)
{
    program_t p = {.now = 1};

    (void)rounds(&p, 10, 1, LONG);
    (void)rounds(&p, 1, 1, SHORT);
    ck_assert_uint_eq(rounds(&p, 1, 1, LONG), 1);
    (void)rounds(&p, 10, 1, SHORT);
    (void)rounds(&p, 1, 1, LONG);
    ck_assert_uint_eq(rounds(&p, 1, 1, SHORT), 0);
}
END_TEST

/* All of them were outstanding while the program computed, though it came back soon from most. */
START_TEST(bursts_count_as_one)
{
    program_t p = {.now = 1};

    (void)rounds(&p, 2, 5, LONG);
    ck_assert_uint_eq(rounds(&p, 10, 5, LONG), 50);
}
END_TEST

/* What was complete before anybody left says nothing. */
START_TEST(nobody_left)
{
    program_t p = {.now = 1};

    (void)rounds(&p, 2, 1, LONG);
    for (int i = 0; i < 10; i++) {
        p.begun++;
        finish(&p);
    }
    ck_assert_uint_eq(rounds(&p, 1, 1, LONG), 1);
}
END_TEST

/* ---- random programs ------------------------------------------------------------------------ */

enum { BARRIERS = 2000 };

/* For each barrier: begun and found complete when, and the absences that it saw. */
typedef struct reference {
    bool left[BARRIERS + 1], saw[BARRIERS + 1];
    uint64_t begun, done, left_at;
    bool away;
    int known;
} reference_t;

static void reference_back(reference_t *r, uint64_t now)
{
    for (uint64_t b = 1; r->away && b <= r->begun; b++)
        if (b > r->done && r->left[b] && now - r->left_at >= NICBARRIER_OVERLAP_LONG)
            r->saw[b] = true;
    r->away = false;
}

static void reference_done(reference_t *r)
{
    r->done++;
    if (r->saw[r->done])
        r->known = r->known < NICBARRIER_OVERLAP_MAX ? r->known + 1 : r->known;
    else if (r->left[r->done])
        r->known = r->known > 0 ? r->known - 1 : 0;
}

static bool reference_leave(reference_t *r, uint64_t now)
{
    for (uint64_t b = r->done + 1; b <= r->begun; b++)
        r->left[b] = true;
    r->away = true;
    r->left_at = now;
    return r->known >= NICBARRIER_OVERLAP_AWAY;
}

START_TEST(as_the_reference)
{
    static reference_t r;
    unit_random_t random = {unit_seed() + (uint64_t)_i};
    nicbarrier_overlap_t h = {0};
    uint64_t now = 1;

    r = (reference_t){.begun = 0};
    while (r.begun < BARRIERS) {
        now += unit_once_in(&random, 3) ? unit_below(&random, LONG) : unit_below(&random, 1000);
        nicbarrier_overlap_back(&h, now);
        reference_back(&r, now);
        r.begun += unit_once_in(&random, 2);
        for (uint64_t n = unit_below(&random, 4); n > 0 && r.done < r.begun; n--) {
            reference_done(&r);
            nicbarrier_overlap_done(&h, r.done);
        }
        if (r.done < r.begun)
            UNIT_CHECK(nicbarrier_overlap_leave(&h, r.begun, now) == reference_leave(&r, now));
    }
}
END_TEST

int main(void)
{
    return UNIT_RUN("nicbarrier_overlap", UNIT_LOOP(as_the_reference, 0, 50),
                    UNIT_ONCE(computing_is_learnt_in_two),
                    UNIT_ONCE(waiting_at_once_is_not_computing), UNIT_ONCE(overlap_changes),
                    UNIT_ONCE(one_exception_changes_nothing), UNIT_ONCE(bursts_count_as_one),
                    UNIT_ONCE(nobody_left));
}
