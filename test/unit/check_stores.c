/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Plain or streaming stores into slots, on machines that are made up. */
#include "common/node/stores.h"
#include "test/unit/tree.h"

enum { PIECE = 16384 };

/** Time of a piece by plain and by streaming stores. */
typedef struct machine {
    uint64_t nsec[2];
} machine_t;

/* Streaming stores that are not many times as fast do not pay: the receiver's loads are dearer. */
static const machine_t near = {{500, 600}}, less_near = {{1700, 600}}, far = {{6800, 600}};

/** Moves so many pieces; returns how many of them went by streaming stores. */
static unsigned run(onic_stores_t *s, const machine_t *m, unsigned pieces, uint64_t *took)
{
    unsigned streamed = 0;

    for (unsigned i = 0; i < pieces; i++) {
        bool timed;
        const bool streams = onic_stores_choose(s, &timed);
        uint64_t nsec = m->nsec[streams] * (uint64_t)rnd(90, 110) / 100;

        *took += nsec;
        /* Preempted now and then. */
        if (rnd(0, 60) == 0)
            nsec += (uint64_t)rnd(1, 4000) * 1000;
        streamed += streams;
        if (timed)
            onic_stores_note(s, streams, PIECE, nsec);
    }
    return streamed;
}

/** Most pieces are written in the cheaper way, and trials lose little. */
static void check_ends_in(onic_stores_t *s, const machine_t *m, unsigned settle, bool streams)
{
    const unsigned pieces = 20000;
    uint64_t took = 0, ignored = 0;
    unsigned streamed;

    (void)run(s, m, settle, &ignored);
    streamed = run(s, m, pieces, &took);
    UNIT_CHECK((streams ? streamed : pieces - streamed) > pieces * 9 / 10);
    UNIT_CHECK((double)took < 1.15 * (double)pieces * (double)m->nsec[streams]);
}

START_TEST(a_constant_machine)
{
    for (int i = 0; i < 200; i++) {
        onic_stores_t a = {0}, b = {0}, c = {0};

        check_ends_in(&a, &near, 64, false);
        check_ends_in(&b, &less_near, 64, false);
        check_ends_in(&c, &far, 64, true);
    }
}
END_TEST

START_TEST(a_machine_that_changes)
{
    for (int i = 0; i < 50; i++) {
        onic_stores_t s = {0};

        for (int k = 0; k < 4; k++) {
            check_ends_in(&s, &near, 2 * ONIC_STORES_TRIAL, false);
            check_ends_in(&s, &far, 64, true);
        }
    }
}
END_TEST

/** The first pieces of all: both ways are known after two. */
START_TEST(a_short_transfer)
{
    onic_stores_t s = {0};
    uint64_t took = 0;
    bool timed;

    ck_assert(!onic_stores_choose(&s, &timed) && timed);
    onic_stores_note(&s, false, PIECE, far.nsec[0]);
    ck_assert(onic_stores_choose(&s, &timed) && timed);
    onic_stores_note(&s, true, PIECE, far.nsec[1]);
    ck_assert(run(&s, &far, 4, &took) == 4);
}
END_TEST

START_TEST(times_of_any_length)
{
    onic_stores_t s = {0};

    for (int i = 0; i < 100000; i++) {
        const uint64_t time = rnd64() >> rnd(0, 63);
        bool timed;

        onic_stores_note(&s, onic_stores_choose(&s, &timed),
                         (uint64_t)rnd(ONIC_STORES_LEAST, PIECE), time >> 11);
        ck_assert(atomic_load(&s.left) <= ONIC_STORES_TRIAL);
    }
}
END_TEST

int main(void)
{
    tree_seed();
    return UNIT_RUN("stores", UNIT_ONCE(a_constant_machine), UNIT_ONCE(a_machine_that_changes),
                    UNIT_ONCE(a_short_transfer), UNIT_ONCE(times_of_any_length));
}
