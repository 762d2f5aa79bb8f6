/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * How accumulates exclude each other: which locks bytes have, against a loop over single bytes;
 * what part of memory a piece of a layout reaches; updates by atomics, against plain ones and from
 * several threads.
 */
#include "osc_nicstride/protocol/atomics.h"
#include "osc_nicstride/protocol/discipline.h"

#include <pthread.h>
#include <string.h>

#include "test/unit/unit.h"

/* ---- disciplines ----------------------------------------------------------------------------- */

START_TEST(disciplines)
{
    nicstride_discipline_t d = nicstride_discipline(1 << 20, 0);

    /* Without a wish the window has all locks. */
    UNIT_CHECK(d.shift <= 15 && (UINT64_C(64) << d.shift) >= 1 << 20);
    UNIT_CHECK(!nicstride_by_atomics(d, 8, 8) && !nicstride_by_atomics(d, 1, 1));
    /* Small ones have no lock for less than a line, very large ones several stripes for a lock. */
    UNIT_CHECK(nicstride_discipline(8, 0).shift == 6 && nicstride_discipline(0, 0).shift == 6);
    UNIT_CHECK(nicstride_discipline(UINT64_C(1) << 40, 0).shift == 20);
    /* A wish for single elements, and for many at once. */
    for (uint32_t wish = 1; wish <= 8; wish++) {
        d = nicstride_discipline(1 << 20, wish);
        UNIT_CHECK(nicstride_by_atomics(d, 8, 8) && nicstride_by_atomics(d, 1, 1));
        UNIT_CHECK(!nicstride_by_atomics(d, 16, 16) && !nicstride_by_atomics(d, 6, 8) &&
                   !nicstride_by_atomics(d, 3, 3));
    }
    d = nicstride_discipline(1 << 20, 9);
    UNIT_CHECK(!d.atomics && d.shift == 6);
    UNIT_CHECK(nicstride_discipline(1 << 20, 4096).shift == 12);
    UNIT_CHECK(nicstride_discipline(1 << 20, 4097).shift == 13);
    UNIT_CHECK(nicstride_discipline(1 << 20, NICSTRIDE_GRANULARITY_MAX).shift == 30);
    /* Own memory has one lock, whatever its addresses are. */
    d = nicstride_discipline_of_one();
    UNIT_CHECK(!d.atomics && nicstride_stripes(d, 5, INT64_MAX) == 1);
}
END_TEST

START_TEST(stripes_of_bytes)
{
    unit_random_t r = {unit_seed()};

    for (int round = 0; round < 3000; round++) {
        const nicstride_discipline_t d = {.shift = (uint8_t)(6 + unit_below(&r, 4))};
        const uint64_t from = unit_below(&r, 1 << 16);
        const uint64_t to = from + 1 + unit_below(&r, unit_once_in(&r, 3) ? 100 : 1 << 15);
        nicstride_stripes_t expected = 0;

        for (uint64_t i = from; i < to; i++)
            expected |= UINT64_C(1) << (i >> d.shift) % NICSTRIDE_STRIPES;
        UNIT_CHECK(nicstride_stripes(d, from, to) == expected);
    }
}
END_TEST

/* ---- what a piece reaches -------------------------------------------------------------------- */

static void random_layout(unit_random_t *r, onic_layout_t *l)
{
    const uint64_t levels = unit_below(r, 4);

    if (unit_once_in(r, 4)) {
        onic_runs_t runs = {0};
        int64_t at = 0;

        for (uint64_t left = 1 + unit_below(r, 20); left > 0; left--) {
            at += (int64_t)unit_below(r, 90) - 30;
            UNIT_CHECK(onic_runs_add(&runs, (onic_run_t){at, 1 + unit_below(r, 20), 1, 0}) ==
                       ONIC_LAYOUT_OK);
        }
        UNIT_CHECK(onic_layout_from_runs(l, &runs, 3) == ONIC_LAYOUT_OK);
    } else {
        UNIT_CHECK(onic_layout_contig(l, (int64_t)unit_below(r, 50) - 20, 1 + unit_below(r, 40)) ==
                   ONIC_LAYOUT_OK);
    }
    for (uint64_t i = 0; i < levels; i++)
        UNIT_CHECK(onic_layout_repeat(l, 1 + unit_below(r, 6), (int64_t)unit_below(r, 800) - 400) ==
                   ONIC_LAYOUT_OK);
}

START_TEST(reach_of_pieces)
{
    unit_random_t r = {unit_seed()};
    unsigned exact = 0, regular = 0;

    for (int round = 0; round < 3000; round++) {
        int64_t from, to, low = INT64_MAX, high = INT64_MIN, at;
        onic_layout_t l;
        onic_cursor_t c;
        uint64_t n;

        random_layout(&r, &l);
        const uint64_t pos = unit_below(&r, l.size), len = 1 + unit_below(&r, l.size - pos);
        nicstride_reach_of(&l, pos, len, &from, &to);
        onic_cursor_init(&c, &l, pos);
        for (uint64_t left = len; left > 0; left -= n) {
            UNIT_CHECK(onic_cursor_next(&c, left, &at, &n));
            low = at < low ? at : low;
            high = at + (int64_t)n > high ? at + (int64_t)n : high;
        }
        UNIT_CHECK(from <= low && high <= to && from >= l.lb && to <= l.ub);
        if (l.nruns == 0) {
            regular++;
            exact += from == low && to == high;
            UNIT_CHECK(l.nlevels > 0 || (from == low && to == high));
        }
        onic_layout_fini(&l);
    }
    /* What is not exact begins or ends inside a level. */
    ck_assert_uint_gt(exact, regular / 3);
}
END_TEST

START_TEST(alignment)
{
    unit_random_t r = {unit_seed()};
    unsigned aligned = 0;

    for (int round = 0; round < 6000; round++) {
        const uint64_t size = UINT64_C(1) << unit_below(&r, 4), base = unit_below(&r, 4) * 4;
        bool all = true;
        onic_layout_t l;
        onic_cursor_t c;
        int64_t at;
        uint64_t n;

        random_layout(&r, &l);
        onic_cursor_init(&c, &l, 0);
        while (onic_cursor_next(&c, l.size, &at, &n))
            all = all && (base + (uint64_t)at) % size == 0 && n % size == 0;
        const bool said = onic_is_aligned(&l, base, size);
        UNIT_CHECK(all || !said);
        aligned += said && size > 1;
        onic_layout_fini(&l);
    }
    ck_assert_uint_gt(aligned, 10);
}
END_TEST

/* ---- atomics --------------------------------------------------------------------------------- */

enum { MOST = 64, THREADS = 4, TIMES = 20000 };

static uint64_t number(const void *at, size_t size)
{
    uint64_t v = 0;

    memcpy(&v, at, size);
    return v;
}

/** What the processor does not do: on numbers of any size, not commutative. */
static void reduce(void *ctx, const void *src, void *dst, size_t n)
{
    const size_t size = *(const size_t *)ctx;

    UNIT_CHECK(n == 1);
    const uint64_t v = number(dst, size) * 3 + number(src, size) + 1;
    memcpy(dst, &v, size);
}

static uint64_t expected_of(bool adds, uint64_t was, uint64_t v)
{
    return adds ? was + v : was * 3 + v + 1;
}

START_TEST(atomic_updates)
{
    static _Alignas(8) unsigned char memory[MOST * 8 + 8], before[MOST * 8 + 8];
    static unsigned char source[MOST * 8 + 1], old[MOST * 8 + 1];
    unit_random_t r = {unit_seed()};

    for (int round = 0; round < 5000; round++) {
        size_t size = (size_t)1 << unit_below(&r, 4), n = 1 + unit_below(&r, MOST);
        nicstride_apply_t a = {.kind = (nicstride_apply_kind_t)unit_below(&r, 3),
                               .adds = unit_once_in(&r, 2),
                               .size = size,
                               .extent = size,
                               .reduce = reduce,
                               .ctx = &size};
        const bool fetch = a.kind == NICSTRIDE_APPLY_NO_OP || unit_once_in(&r, 2);

        for (size_t i = 0; i < sizeof(memory); i++)
            memory[i] = (unsigned char)unit_random64(&r);
        for (size_t i = 0; i < sizeof(source); i++)
            source[i] = (unsigned char)unit_random64(&r);
        memcpy(before, memory, sizeof(memory));
        nicstride_atomic_apply(&a, memory, source + 1, fetch ? old + 1 : NULL, n);
        if (fetch)
            UNIT_CHECK(memcmp(old + 1, before, n * size) == 0);
        UNIT_CHECK(memcmp(memory + n * size, before + n * size, 8) == 0);
        for (size_t i = 0; i < n; i++) {
            const uint64_t was = number(before + i * size, size);
            const uint64_t v = number(source + 1 + i * size, size);
            uint64_t then = a.kind == NICSTRIDE_APPLY_NO_OP     ? was
                            : a.kind == NICSTRIDE_APPLY_REPLACE ? v
                                                                : expected_of(a.adds, was, v);

            UNIT_CHECK(memcmp(memory + i * size, &then, size) == 0);
        }
    }
}
END_TEST

START_TEST(compare_and_swap)
{
    for (size_t size = 1; size <= 8; size *= 2) {
        _Alignas(8) unsigned char at[8] = {1, 2, 3, 4, 5, 6, 7, 8};
        unsigned char compare[8] = {1, 2, 3, 4, 5, 6, 7, 8}, next[8] = {9, 9, 9, 9, 9, 9, 9, 9};
        unsigned char was[8] = {0};

        nicstride_atomic_cas(at, size, compare, next, was);
        UNIT_CHECK(memcmp(at, next, size) == 0 && memcmp(was, compare, size) == 0);
        nicstride_atomic_cas(at, size, compare, compare, compare);
        UNIT_CHECK(memcmp(at, next, size) == 0 && memcmp(compare, next, size) == 0);
    }
}
END_TEST

/** All threads update the same elements, each in another way, but all by adding. */
static _Alignas(8) double shared_double;
static _Alignas(8) uint32_t shared_number[2];

static void add_one(void *ctx, const void *src, void *dst, size_t n)
{
    (void)ctx;
    UNIT_CHECK(n == 1);
    *(uint32_t *)dst += *(const uint32_t *)src;
}

static void add_double(void *ctx, const void *src, void *dst, size_t n)
{
    (void)ctx;
    UNIT_CHECK(n == 1);
    *(double *)dst += *(const double *)src;
}

static void *update_shared(void *arg)
{
    const nicstride_apply_t by_loop = {.size = 4, .extent = 4, .reduce = add_one};
    const nicstride_apply_t native = {.adds = true, .size = 4, .extent = 4};
    const nicstride_apply_t doubles = {.size = 8, .extent = 8, .reduce = add_double};
    const uint32_t ones[2] = {1, 1};
    const double one = 1;

    for (int i = 0; i < TIMES; i++) {
        nicstride_atomic_apply(&doubles, &shared_double, &one, NULL, 1);
        nicstride_atomic_apply(i % 2 ? &by_loop : &native, shared_number, ones, NULL, 2);
    }
    return arg;
}

START_TEST(threads)
{
    pthread_t thread[THREADS];

    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, update_shared, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    UNIT_CHECK(shared_double == THREADS * TIMES);
    UNIT_CHECK(shared_number[0] == THREADS * TIMES && shared_number[1] == THREADS * TIMES);
}
END_TEST

int main(void)
{
    return UNIT_RUN("discipline", UNIT_ONCE(disciplines), UNIT_ONCE(stripes_of_bytes),
                    UNIT_ONCE(reach_of_pieces), UNIT_ONCE(alignment), UNIT_ONCE(atomic_updates),
                    UNIT_ONCE(compare_and_swap), UNIT_ONCE(threads));
}
