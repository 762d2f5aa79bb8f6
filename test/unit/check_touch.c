/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What is touched before the first put into it. */
#include "osc_nicstride/methods/touch.h"

#include "test/unit/unit.h"

static onic_layout_t columns(uint64_t block, uint64_t count, int64_t stride)
{
    onic_layout_t l;

    UNIT_CHECK(onic_layout_contig(&l, 0, block) == ONIC_LAYOUT_OK);
    UNIT_CHECK(onic_layout_repeat(&l, count, stride) == ONIC_LAYOUT_OK);
    return l;
}

static bool pays(uint64_t block, uint64_t count, int64_t stride)
{
    const onic_layout_t l = columns(block, count, stride);

    return nicstride_touch_pays(&l);
}

START_TEST(many_pages_pay)
{
    onic_layout_t l;

    ck_assert(pays(8, 1024, 8192));
    ck_assert(pays(8, 1024, -8192));
    ck_assert(pays(8, 512, 4096));
    ck_assert(pays(8, 256, 2048));
    ck_assert(pays(2048, 1000, 4096));
    /* Two pages in a piece, one piece alone, all in a page. */
    ck_assert(!pays(8, 1024, 32768));
    ck_assert(!pays(8, 2, 1 << 20));
    ck_assert(!pays(8, 64, 512));
    ck_assert(!pays(8, 100, 16));
    /* Planes of a cube: each has many pages, but few of all. */
    l = columns(8, 64, 64 * 8);
    UNIT_CHECK(onic_layout_repeat(&l, 64, 64 * 64 * 8) == ONIC_LAYOUT_OK);
    ck_assert(nicstride_touch_pays(&l));
    l = columns(64 * 8, 2, 1024);
    UNIT_CHECK(onic_layout_repeat(&l, 64, 1 << 20) == ONIC_LAYOUT_OK);
    ck_assert(!nicstride_touch_pays(&l));
    UNIT_CHECK(onic_layout_contig(&l, 0, 16 << 20) == ONIC_LAYOUT_OK);
    ck_assert(!nicstride_touch_pays(&l));
    UNIT_CHECK(onic_layout_contig(&l, 0, 0) == ONIC_LAYOUT_OK);
    ck_assert(!nicstride_touch_pays(&l));
}
END_TEST

/* Each byte has one part, the parts are in order, and a range has those of its bytes. */
START_TEST(parts_of_ranges)
{
    unit_random_t r = {unit_seed() + (uint64_t)_i};
    const uint64_t size = 1 + unit_below(&r, unit_once_in(&r, 2) ? 200 : (uint64_t)1 << 40);
    const uint64_t a = unit_below(&r, size), b = a + unit_below(&r, size - a);
    const uint64_t first = nicstride_touch_parts(size, a, a + 1);
    const uint64_t last = nicstride_touch_parts(size, b, b + 1);

    UNIT_CHECK(first != 0 && (first & (first - 1)) == 0);
    UNIT_CHECK(last >= first && (last & (last - 1)) == 0);
    UNIT_CHECK(nicstride_touch_parts(size, a, b + 1) == (last | (last - first)));
    UNIT_CHECK(nicstride_touch_parts(size, 0, 1) == 1);
}
END_TEST

int main(void)
{
    const TTest *const each[] = {parts_of_ranges};
    const TTest *const tests[] = {many_pages_pay};

    return unit_run_loop("touch", each, 1, 1000, tests, sizeof(tests) / sizeof(tests[0]));
}
