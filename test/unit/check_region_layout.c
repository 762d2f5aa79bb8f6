/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Whether a layout or a piece of contiguous memory lies in attached memory or in a window, against
 * a look at each of its bytes.
 */
#include <string.h>

#include "test/unit/region_naive.h"

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
        UNIT_CHECK(nicstride_regions_cover(&t, world + (uint64_t)base, &s.layout, 0,
                                           s.layout.size) == all);
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

/* Of layouts of 2^40 blocks only those that a message moves are walked. */
START_TEST(huge_layouts)
{
    nicstride_regions_t t = {0};
    onic_layout_t l = {.size = 8ull << 40, .block = 8, .nlevels = 2};
    const uint64_t gap = ((1ull << 19) - 1) << 23, len = 1 << 20;

    l.level[0] = (onic_stride_t){1u << 20, 16};
    l.level[1] = (onic_stride_t){1u << 20, -(1 << 25)};
    l.offset = (int64_t)((1u << 20) - 1) << 25;
    l.ub = l.offset + ((1 << 20) - 1) * 16 + 8;
    ck_assert_int_eq(nicstride_regions_attach(&t, 4096, 1ull << 44), NICSTRIDE_REGION_OK);
    ck_assert_int_eq(nicstride_regions_attach(&t, 4104 + (1ull << 44), 1ull << 46),
                     NICSTRIDE_REGION_OK);
    /* 8 bytes are missing: where a block is, or between two blocks. */
    ck_assert(!nicstride_regions_cover(&t, 4096, &l, gap, len));
    ck_assert(nicstride_regions_cover(&t, 4096, &l, gap - len, len));
    ck_assert(nicstride_regions_cover(&t, 4096, &l, gap + 8, len));
    ck_assert(!nicstride_regions_cover(&t, 4096, &l, gap + 7, len));
    ck_assert(nicstride_regions_cover(&t, 4104, &l, gap, len));
    ck_assert(!nicstride_regions_cover(&t, 4095, &l, gap, len));
    ck_assert(nicstride_regions_cover(&t, 4104, &l, l.size - len, 2 * len));
    ck_assert(!nicstride_regions_cover(&t, 4095, &l, l.size - (8 << 20), len));

    /* The same bytes over and over. */
    l.level[1].stride = l.level[0].stride = 0;
    l.offset = 0;
    l.ub = 8;
    ck_assert(nicstride_regions_cover(&t, 4096, &l, 0, l.size));
    ck_assert(!nicstride_regions_cover(&t, 4089, &l, 0, l.size));
    nicstride_regions_fini(&t);
}
END_TEST

START_TEST(bounds)
{
    const onic_layout_t none = {.size = 0};
    onic_layout_t l = {.size = 10, .lb = -5, .ub = 5, .offset = -5, .block = 10};
    const nicstride_regions_t nothing = {0};

    ck_assert(nicstride_layout_fits(&none, INT64_MIN, 0));
    ck_assert(nicstride_regions_cover(&nothing, 4096, &none, 0, none.size));
    ck_assert(!nicstride_regions_cover(&nothing, 4096, &l, 0, l.size));
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
        const bool fits = disp >= 0 && end <= (__int128)v[3] && end <= INT64_MAX;

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
    return UNIT_RUN("region_layout", UNIT_ONCE(random_layouts), UNIT_ONCE(huge_layouts),
                    UNIT_ONCE(bounds), UNIT_ONCE(bytes));
}
