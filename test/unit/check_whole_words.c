/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Whole words: random layouts, against all of their pieces one by one. */
#include "common/layout/layout.h"

#include "test/unit/unit.h"

/** Mostly multiples of a word, so that whole layouts are. */
static int64_t any_bytes(unit_random_t *r, int64_t most)
{
    const int64_t n = (int64_t)unit_below(r, (uint64_t)most);

    return unit_once_in(r, 12) ? n : n / 8 * 8;
}

static void make_strided(unit_random_t *r, onic_layout_t *l)
{
    int64_t extent = 1 + any_bytes(r, 64) + 7;

    extent = unit_once_in(r, 12) ? extent : extent / 8 * 8;
    UNIT_CHECK(onic_layout_contig(l, any_bytes(r, 100), (uint64_t)extent) == ONIC_LAYOUT_OK);
    for (uint64_t levels = unit_below(r, 4); levels > 0; levels--) {
        extent += any_bytes(r, 50);
        const uint64_t count = 1 + unit_below(r, 4);
        UNIT_CHECK(onic_layout_repeat(l, count, extent) == ONIC_LAYOUT_OK);
        extent *= (int64_t)count;
    }
}

static bool pieces_are_words(const onic_layout_t *l, uint64_t base)
{
    onic_cursor_t c;
    int64_t offset;
    uint64_t len;
    bool whole = true;

    onic_cursor_init(&c, l, 0);
    while (onic_cursor_next(&c, UINT64_MAX, &offset, &len))
        whole = whole && (base + (uint64_t)offset) % 8 == 0 && len % 8 == 0;
    return whole;
}

START_TEST(all_pieces)
{
    unit_random_t r = {unit_seed()};
    unsigned whole = 0, rounds = 50000;

    for (unsigned round = 0; round < rounds; round++) {
        const uint64_t base = (uint64_t)any_bytes(&r, 1 << 20);
        onic_layout_t l, list;
        onic_runs_t runs = {0};

        make_strided(&r, &l);
        UNIT_CHECK(onic_whole_words(&l, base) == pieces_are_words(&l, base));
        whole += onic_whole_words(&l, base);
        /* The same and another one as a list. */
        UNIT_CHECK(onic_runs_add_layout(&runs, &l, 0) == ONIC_LAYOUT_OK);
        make_strided(&r, &l);
        UNIT_CHECK(onic_runs_add_layout(&runs, &l, 10000 + any_bytes(&r, 1000)) == ONIC_LAYOUT_OK);
        UNIT_CHECK(onic_layout_from_runs(&list, &runs, 0) == ONIC_LAYOUT_OK);
        UNIT_CHECK(onic_whole_words(&list, base) == pieces_are_words(&list, base));
        onic_layout_fini(&list);
    }
    UNIT_CHECK(whole > rounds / 10 && whole < rounds - rounds / 10);
}
END_TEST

START_TEST(words_around)
{
    unit_random_t r = {unit_seed()};

    for (int round = 0; round < 100000; round++) {
        const uint64_t at = 4096 + unit_below(&r, 100000), len = 1 + unit_below(&r, 100000);
        const onic_words_t w = onic_words_around(at, len);

        UNIT_CHECK(w.at % 8 == 0 && w.len % 8 == 0);
        UNIT_CHECK(w.at <= at && at - w.at == w.before && w.before < 8);
        UNIT_CHECK(w.at + w.len >= at + len && w.at + w.len - (at + len) < 8);
        UNIT_CHECK(w.at / 4096 == at / 4096);
        UNIT_CHECK((w.at + w.len - 1) / 4096 == (at + len - 1) / 4096);
    }
}
END_TEST

int main(void)
{
    return UNIT_RUN("whole_words", UNIT_ONCE(all_pieces), UNIT_ONCE(words_around));
}
