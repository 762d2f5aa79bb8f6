/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Attached memory against a map that has a mark for every byte of a small piece of the address
 * space, which lies at its bottom, in the middle and at its very top.
 */
#include "test/unit/region_naive.h"

static bool naive_overlaps(const naive_t *v, uint64_t from, uint64_t size)
{
    for (uint64_t b = from; b < from + size; b++)
        if (naive_owner(v, b) >= 0)
            return true;
    return false;
}

static bool naive_detach(naive_t *v, uint64_t base)
{
    int found = -1;

    for (size_t i = 0; i < v->n; i++)
        if (v->base[i] == base && (found < 0 || v->size[i] == 0))
            found = (int)i;
    if (found < 0)
        return false;
    v->n--;
    v->base[found] = v->base[v->n];
    v->size[found] = v->size[v->n];
    return true;
}

/* ---- attach, detach, find ------------------------------------------------------------------- */

static void random_attach(unit_random_t *r, nicstride_regions_t *t, naive_t *v, uint64_t world)
{
    const uint64_t base = unit_below(r, WORLD);
    const uint64_t most = WORLD - base < 16 ? WORLD - base : 16;
    const uint64_t size = unit_below(r, most + 1);

    if (v->n == MAX_REGIONS)
        return;
    if (naive_overlaps(v, base, size)) {
        UNIT_CHECK(nicstride_regions_attach(t, world + base, size) == NICSTRIDE_REGION_OVERLAP);
        return;
    }
    UNIT_CHECK(nicstride_regions_attach(t, world + base, size) == NICSTRIDE_REGION_OK);
    v->base[v->n] = base;
    v->size[v->n++] = size;
}

static void random_detach(unit_random_t *r, nicstride_regions_t *t, naive_t *v, uint64_t world)
{
    const bool known = v->n > 0 && !unit_once_in(r, 4);
    const uint64_t base = known ? v->base[unit_below(r, v->n)] : unit_below(r, WORLD);
    const bool there = naive_detach(v, base);

    UNIT_CHECK(nicstride_regions_detach(t, world + base) ==
               (there ? NICSTRIDE_REGION_OK : NICSTRIDE_REGION_NONE));
}

static void random_find(unit_random_t *r, const nicstride_regions_t *t, const naive_t *v,
                        uint64_t world)
{
    const uint64_t from = unit_below(r, WORLD), size = unit_below(r, 40);
    const bool wraps = from + size > WORLD && world + WORLD - 1 > UINT64_MAX - size;

    UNIT_CHECK(nicstride_regions_hold(t, world + from, size) ==
               (!wraps && naive_covers(v, from, size > 0 ? size : 1)));
}

/* What is shown is what is attached, as long as there are not too many regions for that. */
static void random_shown(unit_random_t *r, const nicstride_regions_t *t, const naive_t *v,
                         uint64_t world)
{
    static nicstride_shown_t shown;
    const uint64_t from = unit_below(r, WORLD), size = 1 + unit_below(r, WORLD - from);

    nicstride_regions_show(t, &shown);
    UNIT_CHECK(nicstride_shown_holds(&shown, world + from, size) == naive_covers(v, from, size));
    /* Not while it changes. */
    atomic_fetch_add(&shown.version, 1);
    UNIT_CHECK(!nicstride_shown_holds(&shown, world + from, size));
    atomic_fetch_add(&shown.version, 1);
}

static void check_table(const nicstride_regions_t *t, const naive_t *v, uint64_t world)
{
    UNIT_CHECK(t->n == v->n);
    for (size_t i = 0; i < v->n; i++) {
        size_t k = 0;
        while (k < t->n &&
               (t->region[k].base != world + v->base[i] || t->region[k].size != v->size[i]))
            k++;
        UNIT_CHECK(k < t->n);
    }
}

START_TEST(random_tables)
{
    unit_random_t r = {unit_seed()};

    for (int round = 0; round < 400; round++) {
        const uint64_t world = origins[unit_below(&r, ORIGINS)];
        nicstride_regions_t t = {0};
        naive_t v = {.n = 0};
        for (int i = 0; i < 150; i++) {
            if (unit_once_in(&r, 3))
                random_detach(&r, &t, &v, world);
            else
                random_attach(&r, &t, &v, world);
            random_find(&r, &t, &v, world);
            random_shown(&r, &t, &v, world);
            check_table(&t, &v, world);
        }
        nicstride_regions_fini(&t);
    }
}
END_TEST

/* ---- single points -------------------------------------------------------------------------- */

START_TEST(many_regions)
{
    enum { N = 10000, PITCH = 4096, SIZE = 3000 };
    unit_random_t r = {unit_seed()};
    nicstride_regions_t t = {0};
    static nicstride_shown_t shown;
    static uint32_t order[N];

    for (uint32_t i = 0; i < N; i++) {
        const uint32_t k = (uint32_t)unit_below(&r, i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    for (uint32_t i = 0; i < N; i++)
        UNIT_CHECK(nicstride_regions_attach(&t, (uint64_t)order[i] * PITCH, SIZE) ==
                   NICSTRIDE_REGION_OK);
    ck_assert_uint_eq(t.n, N);
    for (uint64_t i = 0; i < N; i++) {
        UNIT_CHECK(nicstride_regions_hold(&t, i * PITCH + 100, SIZE - 100));
        UNIT_CHECK(!nicstride_regions_hold(&t, i * PITCH + 100, SIZE));
    }
    nicstride_regions_show(&t, &shown);
    for (uint64_t i = 0; i < N; i++) {
        UNIT_CHECK(nicstride_shown_holds(&shown, i * PITCH, SIZE) == (i < NICSTRIDE_SHOWN_REGIONS));
        UNIT_CHECK(!nicstride_shown_holds(&shown, i * PITCH, SIZE + 1));
    }
    /* Whatever another process may have written. */
    atomic_store(&shown.n, UINT64_MAX);
    UNIT_CHECK(!nicstride_shown_holds(&shown, 5, SIZE));

    /* One block in each region is covered; one byte longer, and it is not. */
    onic_layout_t l = {.size = (uint64_t)SIZE * N, .block = SIZE, .nlevels = 1};
    l.level[0] = (onic_stride_t){N, PITCH};
    l.ub = (int64_t)(N - 1) * PITCH + SIZE;
    ck_assert(nicstride_regions_cover(&t, 0, &l, 0, l.size));
    l.block = SIZE + 1;
    l.ub++;
    ck_assert(!nicstride_regions_cover(&t, 0, &l, 0, l.size));

    for (uint32_t i = 0; i < N; i++)
        UNIT_CHECK(nicstride_regions_detach(&t, (uint64_t)order[N - 1 - i] * PITCH) ==
                   NICSTRIDE_REGION_OK);
    ck_assert_uint_eq(t.n, 0);
    nicstride_regions_fini(&t);
}
END_TEST

int main(void)
{
    return UNIT_RUN("region", UNIT_ONCE(random_tables), UNIT_ONCE(many_regions));
}
