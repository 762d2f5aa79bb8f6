/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Attached memory against a map that has a mark for every byte of a small piece of the address
 * space, which lies at its bottom, in the middle and at its very top.
 */
#include "osc_nicstride/region.h"

#include <string.h>

#include "test/unit/unit.h"

#define WORLD       192 /* bytes */
#define MAX_REGIONS 64

static const uint64_t origins[] = {0, 0x7ffffffff000, INT64_MAX - 64, UINT64_MAX - WORLD + 1};
#define ORIGINS (sizeof(origins) / sizeof(origins[0]))

/** The naive table: regions in no order, offsets in the world. */
typedef struct naive {
    uint64_t base[MAX_REGIONS];
    uint64_t size[MAX_REGIONS];
    size_t n;
} naive_t;

/* The region that holds a byte, or -1. */
static int naive_owner(const naive_t *v, uint64_t byte)
{
    for (size_t i = 0; i < v->n; i++)
        if (byte >= v->base[i] && byte < v->base[i] + v->size[i])
            return (int)i;
    return -1;
}

static bool naive_covers(const naive_t *v, uint64_t from, uint64_t size)
{
    for (uint64_t b = from; b < from + size; b++)
        if (b >= WORLD || naive_owner(v, b) < 0)
            return false;
    return true;
}

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
    const uint64_t generation = t->generation;

    if (v->n == MAX_REGIONS)
        return;
    if (naive_overlaps(v, base, size)) {
        UNIT_CHECK(nicstride_regions_attach(t, world + base, size) == NICSTRIDE_REGION_OVERLAP);
        UNIT_CHECK(t->generation == generation);
        return;
    }
    UNIT_CHECK(nicstride_regions_attach(t, world + base, size) == NICSTRIDE_REGION_OK);
    UNIT_CHECK(t->generation != generation);
    v->base[v->n] = base;
    v->size[v->n++] = size;
}

static void random_detach(unit_random_t *r, nicstride_regions_t *t, naive_t *v, uint64_t world)
{
    const bool known = v->n > 0 && !unit_once_in(r, 4);
    const uint64_t base = known ? v->base[unit_below(r, v->n)] : unit_below(r, WORLD);
    const uint64_t generation = t->generation;
    const bool there = naive_detach(v, base);

    UNIT_CHECK(nicstride_regions_detach(t, world + base) ==
               (there ? NICSTRIDE_REGION_OK : NICSTRIDE_REGION_NONE));
    UNIT_CHECK((t->generation != generation) == there);
}

static void random_find(unit_random_t *r, const nicstride_regions_t *t, const naive_t *v,
                        uint64_t world)
{
    const uint64_t from = unit_below(r, WORLD);
    const uint64_t size = unit_below(r, 40);
    const uint64_t must = size > 0 ? size : 1;
    nicstride_region_t found;

    if (from + size > WORLD && world + WORLD - 1 > UINT64_MAX - size)
        UNIT_CHECK(!nicstride_regions_find(t, world + from, size, &found));
    UNIT_CHECK(nicstride_regions_find(t, world + from, size, &found) ==
               naive_covers(v, from, must));
    if (!naive_covers(v, from, must))
        return;
    UNIT_CHECK(found.base - world <= from);
    UNIT_CHECK(found.base - world + found.size >= from + size);
    UNIT_CHECK(naive_covers(v, found.base - world, found.size));
    /* It begins and ends where regions do. */
    UNIT_CHECK(v->base[naive_owner(v, found.base - world)] == found.base - world);
    const int last = naive_owner(v, found.base - world + found.size - 1);
    UNIT_CHECK(v->base[last] + v->size[last] == found.base - world + found.size);
    /* It takes in no more of them than are needed. */
    UNIT_CHECK(naive_owner(v, from) == naive_owner(v, found.base - world));
    UNIT_CHECK(naive_owner(v, from + must - 1) == last);
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
            check_table(&t, &v, world);
        }
        nicstride_regions_fini(&t);
    }
}
END_TEST

/* ---- layouts -------------------------------------------------------------------------------- */

#define MAX_BYTES 4096

/** A layout made by hand, with the memory of its runs, and the offsets of all its bytes. */
typedef struct sample {
    onic_layout_t layout;
    onic_run_t run[5];
    int64_t byte[MAX_BYTES];
    size_t n;
} sample_t;

static void add_bytes(sample_t *s, int64_t offset, uint64_t block)
{
    for (uint64_t b = 0; b < block; b++) {
        UNIT_CHECK(s->n < MAX_BYTES);
        s->byte[s->n++] = offset + (int64_t)b;
    }
}

static void add_leaf(sample_t *s, int64_t offset)
{
    if (s->layout.nruns == 0)
        add_bytes(s, offset, s->layout.block);
    for (uint32_t i = 0; i < s->layout.nruns; i++)
        for (uint64_t k = 0; k < s->run[i].count; k++)
            add_bytes(s, offset + s->run[i].offset + (int64_t)k * s->run[i].stride,
                      s->run[i].block);
}

static void add_levels(sample_t *s, uint32_t nlevels, int64_t offset)
{
    if (nlevels == 0) {
        add_leaf(s, offset);
        return;
    }
    const onic_stride_t level = s->layout.level[nlevels - 1];
    for (uint64_t i = 0; i < level.count; i++)
        add_levels(s, nlevels - 1, offset + (int64_t)i * level.stride);
}

static int64_t small(unit_random_t *r, int64_t magnitude)
{
    return (int64_t)unit_below(r, 2 * (uint64_t)magnitude + 1) - magnitude;
}

static void random_layout(unit_random_t *r, sample_t *s)
{
    onic_layout_t *l = &s->layout;

    memset(s, 0, sizeof(*s));
    l->offset = small(r, 40);
    if (unit_once_in(r, 2)) {
        l->nruns = 2 + (uint32_t)unit_below(r, 4);
        l->runs = s->run;
    }
    l->nlevels = (uint32_t)unit_below(r, l->nruns > 0 ? 4 : 5);
    for (uint32_t i = 0; i < l->nlevels; i++)
        l->level[i] = (onic_stride_t){2 + unit_below(r, 3), small(r, i == 0 ? 12 : 30)};
    for (uint32_t i = 0; i < l->nruns; i++)
        s->run[i] = (onic_run_t){.offset = small(r, 40),
                                 .block = 1 + unit_below(r, 4),
                                 .count = 1 + unit_below(r, 3),
                                 .stride = small(r, 9)};
    l->block = l->nruns == 0 ? 1 + unit_below(r, 6) : 0;

    add_levels(s, l->nlevels, l->offset);
    l->size = s->n;
    l->lb = l->ub = s->byte[0];
    for (size_t i = 0; i < s->n; i++) {
        l->lb = s->byte[i] < l->lb ? s->byte[i] : l->lb;
        l->ub = s->byte[i] + 1 > l->ub ? s->byte[i] + 1 : l->ub;
    }
}

/* Attached memory with about one gap, so that layouts fit or just do not. */
static void random_memory(unit_random_t *r, nicstride_regions_t *t, naive_t *v, uint64_t world,
                          const sample_t *s, int64_t base)
{
    bool touched[WORLD] = {false};
    uint64_t at = 0;

    for (size_t i = 0; i < s->n; i++)
        if (base + s->byte[i] >= 0 && base + s->byte[i] < WORLD)
            touched[base + s->byte[i]] = true;

    while (at < WORLD && v->n < MAX_REGIONS) {
        uint64_t size = 1 + unit_below(r, 60);
        size = size < WORLD - at ? size : WORLD - at;
        UNIT_CHECK(nicstride_regions_attach(t, world + at, size) == NICSTRIDE_REGION_OK);
        v->base[v->n] = at;
        v->size[v->n++] = size;
        at += size;
        /* A gap: bytes that the layout does not touch, and once in a while one that it does. */
        while (at < WORLD && (touched[at] ? unit_once_in(r, 10) : !unit_once_in(r, 5)))
            at++;
    }
}

START_TEST(random_layouts)
{
    unit_random_t r = {unit_seed()};
    static sample_t s;
    unsigned covered = 0, fitted = 0, rounds = 20000;

    for (unsigned round = 0; round < rounds; round++) {
        const uint64_t world = origins[unit_below(&r, ORIGINS)];
        nicstride_regions_t t = {0};
        naive_t v = {.n = 0};
        bool all = true, inside = true;
        random_layout(&r, &s);
        const int64_t base = unit_once_in(&r, 10) ? small(&r, WORLD) : small(&r, 8) - s.layout.lb;
        random_memory(&r, &t, &v, world, &s, base);
        for (size_t i = 0; i < s.n; i++) {
            const int64_t at = base + s.byte[i];
            all = all && at >= 0 && naive_covers(&v, (uint64_t)at, 1);
            inside = inside && at >= 0 && at < WORLD;
        }
        UNIT_CHECK(nicstride_regions_cover(&t, world + (uint64_t)base, &s.layout) == all);
        UNIT_CHECK(nicstride_layout_fits(&s.layout, base, WORLD) == inside);
        covered += all && t.n > 1;
        fitted += inside;
        nicstride_regions_fini(&t);
    }
    /* The cases are worth something: neither verdict is rare. */
    ck_assert_uint_gt(covered, rounds / 20);
    ck_assert_uint_gt(fitted - covered, rounds / 20);
}
END_TEST

/* ---- single points -------------------------------------------------------------------------- */

START_TEST(many_regions)
{
    enum { N = 10000, PITCH = 4096, SIZE = 3000 };
    unit_random_t r = {unit_seed()};
    nicstride_regions_t t = {0};
    nicstride_region_t found;
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
    ck_assert_uint_eq(t.generation, N);
    for (uint64_t i = 0; i < N; i++) {
        UNIT_CHECK(nicstride_regions_find(&t, i * PITCH + 100, SIZE - 100, &found));
        UNIT_CHECK(found.base == i * PITCH && found.size == SIZE);
        UNIT_CHECK(!nicstride_regions_find(&t, i * PITCH + 100, SIZE, &found));
    }

    /* One block in each region is covered; one byte longer, and it is not. */
    onic_layout_t l = {.size = (uint64_t)SIZE * N, .block = SIZE, .nlevels = 1};
    l.level[0] = (onic_stride_t){N, PITCH};
    l.ub = (int64_t)(N - 1) * PITCH + SIZE;
    ck_assert(nicstride_regions_cover(&t, 0, &l));
    l.block = SIZE + 1;
    l.ub++;
    ck_assert(!nicstride_regions_cover(&t, 0, &l));

    for (uint32_t i = 0; i < N; i++)
        UNIT_CHECK(nicstride_regions_detach(&t, (uint64_t)order[N - 1 - i] * PITCH) ==
                   NICSTRIDE_REGION_OK);
    ck_assert_uint_eq(t.n, 0);
    ck_assert_uint_eq(t.generation, 2 * N);
    nicstride_regions_fini(&t);
}
END_TEST

START_TEST(touching_regions_are_one)
{
    nicstride_regions_t t = {0};
    nicstride_region_t found;

    for (uint64_t i = 0; i < 1000; i++)
        nicstride_regions_attach(&t, 4096 + i * 16, 16);
    ck_assert(nicstride_regions_find(&t, 4096, 16000, &found));
    ck_assert_uint_eq(found.base, 4096);
    ck_assert_uint_eq(found.size, 16000);
    ck_assert(!nicstride_regions_find(&t, 4096, 16001, &found));
    ck_assert(!nicstride_regions_find(&t, 4095, 2, &found));
    ck_assert_int_eq(nicstride_regions_detach(&t, 4096 + 500 * 16), NICSTRIDE_REGION_OK);
    ck_assert(!nicstride_regions_find(&t, 4096, 16000, &found));
    ck_assert(nicstride_regions_find(&t, 4096, 8000, &found));
    ck_assert(!nicstride_regions_find(&t, 4096, 8001, &found));
    nicstride_regions_fini(&t);
}
END_TEST

START_TEST(empty_regions)
{
    nicstride_regions_t t = {0};
    nicstride_region_t found;

    /* Two empty ones and one with bytes at the same base, and one inside it. */
    ck_assert_int_eq(nicstride_regions_attach(&t, 100, 0), NICSTRIDE_REGION_OK);
    ck_assert_int_eq(nicstride_regions_attach(&t, 100, 50), NICSTRIDE_REGION_OK);
    ck_assert_int_eq(nicstride_regions_attach(&t, 100, 0), NICSTRIDE_REGION_OK);
    ck_assert_int_eq(nicstride_regions_attach(&t, 120, 0), NICSTRIDE_REGION_OK);
    ck_assert_int_eq(nicstride_regions_attach(&t, 120, 1), NICSTRIDE_REGION_OVERLAP);
    ck_assert_int_eq(nicstride_regions_attach(&t, UINT64_MAX, 0), NICSTRIDE_REGION_OK);
    ck_assert(nicstride_regions_find(&t, 120, 30, &found));
    ck_assert_uint_eq(found.base, 100);
    ck_assert_uint_eq(found.size, 50);
    ck_assert(!nicstride_regions_find(&t, 99, 1, &found));
    ck_assert(!nicstride_regions_find(&t, UINT64_MAX, 1, &found));

    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(nicstride_regions_detach(&t, 100), NICSTRIDE_REGION_OK);
        ck_assert(nicstride_regions_find(&t, 100, 50, &found));
    }
    ck_assert_int_eq(nicstride_regions_detach(&t, 100), NICSTRIDE_REGION_OK);
    ck_assert(!nicstride_regions_find(&t, 100, 1, &found));
    ck_assert_int_eq(nicstride_regions_detach(&t, 100), NICSTRIDE_REGION_NONE);
    ck_assert_int_eq(nicstride_regions_detach(&t, 120), NICSTRIDE_REGION_OK);
    nicstride_regions_fini(&t);
}
END_TEST

START_TEST(top_of_the_address_space)
{
    nicstride_regions_t t = {0};
    nicstride_region_t found;
    const uint64_t half = 1ull << 63;
    onic_layout_t l = {.size = 32, .lb = -16, .ub = 16, .offset = -16, .block = 32};

    ck_assert_int_eq(nicstride_regions_attach(&t, UINT64_MAX, 2), NICSTRIDE_REGION_BAD);
    ck_assert_int_eq(nicstride_regions_attach(&t, 1, UINT64_MAX), NICSTRIDE_REGION_OK);
    ck_assert_int_eq(nicstride_regions_attach(&t, 2, UINT64_MAX), NICSTRIDE_REGION_BAD);
    ck_assert(nicstride_regions_find(&t, UINT64_MAX, 1, &found));
    ck_assert(!nicstride_regions_find(&t, UINT64_MAX, 2, &found));
    ck_assert(!nicstride_regions_find(&t, 10, UINT64_MAX - 5, &found));
    ck_assert_int_eq(nicstride_regions_detach(&t, 1), NICSTRIDE_REGION_OK);

    /* Everything: its size is one more than fits. */
    ck_assert_int_eq(nicstride_regions_attach(&t, 0, half), NICSTRIDE_REGION_OK);
    ck_assert_int_eq(nicstride_regions_attach(&t, half, half), NICSTRIDE_REGION_OK);
    ck_assert(nicstride_regions_find(&t, 0, UINT64_MAX, &found));
    ck_assert_uint_eq(found.base, 0);
    ck_assert_uint_eq(found.size, UINT64_MAX);

    /* A layout may stand at the seam of the halves, but not wrap around. */
    ck_assert(nicstride_regions_cover(&t, half, &l));
    ck_assert(nicstride_regions_cover(&t, 16, &l));
    ck_assert(!nicstride_regions_cover(&t, 15, &l));
    ck_assert(nicstride_regions_cover(&t, UINT64_MAX - 15, &l));
    ck_assert(!nicstride_regions_cover(&t, UINT64_MAX - 14, &l));
    nicstride_regions_fini(&t);
}
END_TEST

/* Layouts of 2^40 blocks must not be walked block by block. */
START_TEST(huge_layouts)
{
    nicstride_regions_t t = {0};
    onic_layout_t l = {.size = 8ull << 40, .block = 8, .nlevels = 2};

    l.level[0] = (onic_stride_t){1u << 20, 16};
    l.level[1] = (onic_stride_t){1u << 20, -(1 << 25)};
    l.offset = (int64_t)((1u << 20) - 1) << 25;
    l.ub = l.offset + ((1 << 20) - 1) * 16 + 8;
    ck_assert_int_eq(nicstride_regions_attach(&t, 4096, 1ull << 44), NICSTRIDE_REGION_OK);
    ck_assert_int_eq(nicstride_regions_attach(&t, 4104 + (1ull << 44), 1ull << 46),
                     NICSTRIDE_REGION_OK);
    /* 8 bytes are missing: where a block is, or between two blocks. */
    ck_assert(!nicstride_regions_cover(&t, 4096, &l));
    ck_assert(nicstride_regions_cover(&t, 4104, &l));
    ck_assert(!nicstride_regions_cover(&t, 4095, &l));

    /* The same bytes over and over. */
    l.level[1].stride = l.level[0].stride = 0;
    l.offset = 0;
    l.ub = 8;
    ck_assert(nicstride_regions_cover(&t, 4096, &l));
    ck_assert(!nicstride_regions_cover(&t, 4089, &l));
    nicstride_regions_fini(&t);
}
END_TEST

START_TEST(bounds)
{
    const onic_layout_t none = {.size = 0};
    onic_layout_t l = {.size = 10, .lb = -5, .ub = 5, .offset = -5, .block = 10};
    const nicstride_regions_t nothing = {0};

    ck_assert(nicstride_layout_fits(&none, INT64_MIN, 0));
    ck_assert(nicstride_regions_cover(&nothing, 4096, &none));
    ck_assert(!nicstride_regions_cover(&nothing, 4096, &l));
    ck_assert(nicstride_layout_fits(&l, 5, 10));
    ck_assert(!nicstride_layout_fits(&l, 4, 10));
    ck_assert(!nicstride_layout_fits(&l, 6, 10));
    ck_assert(!nicstride_layout_fits(&l, INT64_MIN, UINT64_MAX));
    ck_assert(!nicstride_layout_fits(&l, INT64_MAX, UINT64_MAX));
    ck_assert(nicstride_layout_fits(&l, INT64_MAX - 5, INT64_MAX));
    ck_assert(!nicstride_layout_fits(&l, INT64_MAX - 5, INT64_MAX - 1));
    l.lb = INT64_MIN;
    l.ub = INT64_MAX;
    ck_assert(!nicstride_layout_fits(&l, 0, UINT64_MAX));
    ck_assert(!nicstride_layout_fits(&l, INT64_MAX, UINT64_MAX));
}
END_TEST

/* Contiguous bytes: against arithmetic in 128 bits. */
START_TEST(bytes)
{
    static const uint64_t edges[] = {0, 1, 8, 4096, INT64_MAX, 1ull << 63, UINT64_MAX};
    unit_random_t r = {unit_seed()};
    unsigned inside = 0;

    for (int i = 0; i < 200000; i++) {
        uint64_t v[4], at = 0;

        for (int k = 0; k < 4; k++)
            v[k] = edges[unit_below(&r, sizeof(edges) / sizeof(edges[0]))] + unit_below(&r, 5) - 2;
        const int64_t disp = (int64_t)v[0];
        const __int128 begin = (__int128)disp + (__int128)v[1], end = begin + (__int128)v[2];
        const bool fits = disp >= 0 && end <= (__int128)v[3];

        UNIT_CHECK(nicstride_bytes_fit(disp, v[1], v[2], v[3], &at) == fits);
        if (fits)
            UNIT_CHECK((__int128)at == begin);
        inside += fits;
    }
    ck_assert_uint_gt(inside, 1000);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        random_tables, random_layouts,           many_regions, touching_regions_are_one,
        empty_regions, top_of_the_address_space, huge_layouts, bounds,
        bytes};

    return unit_run("region", tests, sizeof(tests) / sizeof(tests[0]));
}
