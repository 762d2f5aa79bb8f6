/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Measuring, and sharing what was measured: one publishes, nobody waits, garbage is bounded.
 */
#include "common/model/calibrate.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "test/unit/unit.h"

static onic_measured_t samples_of(double value)
{
    onic_measured_t s;

    for (size_t i = 0; i < ONIC_MODEL_SHARED_WORDS; i++)
        ((double *)&s)[i] = value;
    return s;
}

static bool same(const onic_measured_t *a, const onic_measured_t *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

/* Nothing, then the first one's, for good. */
START_TEST(first_one)
{
    onic_model_shared_t shared;
    const onic_measured_t one = samples_of(1), two = samples_of(2);
    onic_measured_t got = two;

    memset(&shared, 0, sizeof(shared));
    ck_assert(!onic_model_take(&shared, &got));
    ck_assert(same(&got, &two));
    ck_assert(onic_model_publish(&shared, &one));
    ck_assert(!onic_model_publish(&shared, &two));
    ck_assert(onic_model_take(&shared, &got));
    ck_assert(same(&got, &one));
}
END_TEST

/* Who ended while it published leaves the others to themselves, as does any other state. */
START_TEST(half_done)
{
    unit_random_t r = {unit_seed()};
    const onic_measured_t one = samples_of(1);
    onic_model_shared_t ready;

    memset(&ready, 0, sizeof(ready));
    ck_assert(onic_model_publish(&ready, &one));
    for (int i = 0; i < 10000; i++) {
        onic_model_shared_t shared = ready;
        onic_measured_t got;

        shared.state = i < 1000 ? (uint64_t)i + 1 : unit_random64(&r);
        if (i % 2 == 0 && i > 1000)
            shared.state = ready.state ^ UINT64_C(1) << unit_below(&r, 64);
        UNIT_CHECK(!onic_model_take(&shared, &got));
        UNIT_CHECK(!onic_model_publish(&shared, &one));
    }
}
END_TEST

/* Garbage that another process published spoils no number beyond its bounds. */
START_TEST(garbage)
{
    unit_random_t r = {unit_seed()};
    const double *was = (const double *)&onic_links_default;

    for (int i = 0; i < 20000; i++) {
        onic_links_t links = onic_links_default;
        const double *is = (const double *)&links;
        onic_model_shared_t shared;
        onic_measured_t got;

        memset(&shared, 0, sizeof(shared));
        got = samples_of(1);
        UNIT_CHECK(onic_model_publish(&shared, &got));
        for (size_t w = 0; w < ONIC_MODEL_SHARED_WORDS; w++)
            shared.sample[w] = unit_random64(&r);
        UNIT_CHECK(onic_model_take(&shared, &got));
        onic_links_fit(&links, &got);
        for (size_t k = 0; k < sizeof(links) / sizeof(double); k++)
            UNIT_CHECK(is[k] >= was[k] / ONIC_LINK_FACTOR && is[k] <= was[k] * ONIC_LINK_FACTOR);
    }
}
END_TEST

/** Samples with these parts only. */
static onic_measured_t part_of(const onic_measured_t *s, bool alone, bool node, bool net)
{
    onic_measured_t part = {.alone.call = 0};

    if (alone)
        part.alone = s->alone;
    if (node)
        part.node = s->node;
    if (net)
        part.net = s->net;
    return part;
}

/* Any part that is lacking is taken as a whole, and none that is there is changed. */
START_TEST(adds_what_lacks)
{
    const onic_measured_t one = samples_of(1), two = samples_of(2);

    for (int has = 0; has < 8; has++) {
        for (int comes = 0; comes < 8; comes++) {
            onic_measured_t known = part_of(&one, has & 1, has & 2, has & 4);
            const onic_measured_t others = part_of(&two, comes & 1, comes & 2, comes & 4);
            onic_measured_t want = known;

            if ((comes & ~has & 1) != 0)
                want.alone = two.alone;
            if ((comes & ~has & 2) != 0)
                want.node = two.node;
            if ((comes & ~has & 4) != 0)
                want.net = two.net;
            ck_assert(onic_measured_add(&known, &others) == ((comes & ~has) != 0));
            ck_assert(same(&known, &want));
            ck_assert(!onic_measured_add(&known, &others));
        }
    }
}
END_TEST

/* What was measured with single copy is better than what was measured without, not the other way
 * round; and what is no number is nothing. */
START_TEST(adds_single_copy)
{
    const onic_measured_t with = samples_of(1), nothing = samples_of(NAN);
    onic_measured_t known = part_of(&with, true, true, true), without = samples_of(2);

    without.alone.call = without.alone.pieces = without.alone.bytes = 0;
    ck_assert(!onic_measured_add(&known, &without));
    known = without;
    ck_assert(!onic_measured_add(&known, &nothing));
    ck_assert(onic_measured_add(&known, &with));
    ck_assert(memcmp(&known.alone, &with.alone, sizeof(known.alone)) == 0);
    ck_assert(memcmp(&known.node, &without.node, sizeof(known.node)) == 0);
    memset(&known, 0, sizeof(known));
    ck_assert(!onic_measured_add(&known, &nothing));
}
END_TEST

#define THREADS 4
#define ROUNDS  2000

/** A round: all publish and take at once. */
typedef struct party {
    pthread_barrier_t *meet;
    onic_model_shared_t *shared;
    double mine;
    unsigned published;
    bool mixed;
} party_t;

static void *take_part(void *arg)
{
    party_t *p = arg;

    for (int round = 0; round < ROUNDS; round++) {
        const onic_measured_t mine = samples_of(p->mine);
        onic_measured_t got;

        pthread_barrier_wait(p->meet);
        p->published += onic_model_publish(&p->shared[round], &mine);
        if (onic_model_take(&p->shared[round], &got)) {
            const onic_measured_t whole = samples_of(got.alone.call);

            p->mixed |= !same(&got, &whole);
        }
    }
    return NULL;
}

/* Of many at a time one publishes, and what is taken is all of one. */
START_TEST(at_once)
{
    static onic_model_shared_t shared[ROUNDS];
    pthread_barrier_t meet;
    pthread_t thread[THREADS];
    party_t party[THREADS];
    unsigned published = 0;

    ck_assert_int_eq(pthread_barrier_init(&meet, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++) {
        party[i] = (party_t){.meet = &meet, .shared = shared, .mine = i + 1};
        ck_assert_int_eq(pthread_create(&thread[i], NULL, take_part, &party[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        published += party[i].published;
        ck_assert(!party[i].mixed);
    }
    ck_assert_uint_eq(published, ROUNDS);
    pthread_barrier_destroy(&meet);
}
END_TEST

/* What this machine is measured to be is no nonsense. */
START_TEST(measured)
{
    onic_samples_t s;

    onic_calibrate(true, &s);
    ck_assert(s.dense > 0 && s.lines > s.dense && s.pages > 0 && s.packed > 0);
    /* Where the kernel allows single copy it takes longer than none, and more of it still longer.
     */
    if (s.call > 0)
        ck_assert(s.pieces > s.call && s.bytes > s.call);
    else
        ck_assert(s.pieces == 0 && s.bytes == 0);
    onic_calibrate(false, &s);
    ck_assert(s.call == 0 && s.pieces == 0 && s.bytes == 0 && s.dense > 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {first_one,        half_done, garbage, adds_what_lacks,
                                  adds_single_copy, at_once,   measured};

    return unit_run("model_calibrate", tests, sizeof(tests) / sizeof(tests[0]));
}
