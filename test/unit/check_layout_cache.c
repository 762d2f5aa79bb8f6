/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Layouts kept by what they were made of, against a list that keeps everything. */
#include <string.h>

#include "common/layout/layout_cache.h"
#include "test/unit/unit.h"

enum { TYPES = 40, WORDS_MAX = 30, HELD = 16 };

/** What a layout is made of here: offsets of blocks of 4 bytes. */
typedef struct type {
    uint64_t word[WORDS_MAX];
    size_t n;
} type_t;

static bool same(const void *a, const void *b, size_t len)
{
    return memcmp(a, b, len) == 0;
}

static void random_type(unit_random_t *r, type_t *t)
{
    uint64_t at = unit_below(r, 50);

    t->n = 3 + unit_below(r, WORDS_MAX - 2);
    for (size_t i = 0; i < t->n; i++, at += 5 + unit_below(r, 90))
        t->word[i] = at;
}

/** `prints` different ones: few make collisions. */
static onic_contents_t contents(const type_t *t, uint64_t prints)
{
    uint64_t print = 1;

    for (size_t i = 0; i < t->n; i++)
        print = (print ^ t->word[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return (onic_contents_t){.bytes = t->word,
                             .len = t->n * sizeof(t->word[0]),
                             .print = (print >> 8) % prints,
                             .same = same};
}

static void make(const type_t *t, onic_layout_t *l)
{
    onic_runs_t runs = {0};

    for (size_t i = 0; i < t->n; i++) {
        const onic_run_t run = {.offset = (int64_t)t->word[i], .block = 4, .count = 1};

        UNIT_CHECK(onic_runs_add(&runs, run) == ONIC_LAYOUT_OK);
    }
    UNIT_CHECK(onic_layout_from_runs(l, &runs, 0) == ONIC_LAYOUT_OK);
}

static void check_is(const type_t *t, const onic_layout_t *l)
{
    onic_cursor_t c;
    uint64_t len, n = 0;
    int64_t at;

    onic_cursor_init(&c, l, 0);
    while (onic_cursor_next(&c, 4, &at, &len))
        UNIT_CHECK(len == 4 && at == (int64_t)t->word[n++]);
    UNIT_CHECK(n == t->n);
}

/** Uses of random types, of which some layouts are held for long, while the bound makes others go.
 */
static void use(unit_random_t *r, size_t limit, uint64_t prints)
{
    onic_layout_cache_t k = {.limit = limit};
    onic_layout_t held[HELD] = {{0}};
    type_t type[TYPES], of[HELD];
    unsigned uses[TYPES] = {0};

    for (int i = 0; i < TYPES; i++)
        random_type(r, &type[i]);
    for (int i = 0; i < 3000; i++) {
        /* Another type in the place of one, as where handles are freed and used again. */
        const unsigned t = (unsigned)(unit_once_in(r, 2) ? unit_below(r, 4) : unit_below(r, TYPES));
        const unsigned h = (unsigned)unit_below(r, HELD);
        onic_layout_t l;

        if (unit_once_in(r, 200)) {
            random_type(r, &type[t]);
            uses[t] = 0;
        }
        const type_t given = type[t];
        const onic_contents_t from = contents(&given, prints);
        if (!onic_layout_cache_find(&k, &from, &l)) {
            make(&given, &l);
            onic_layout_cache_add(&k, &from, &l);
            UNIT_CHECK(uses[t] > 0 || prints < TYPES || onic_layout_number(&l) == 0);
        }
        uses[t]++;
        UNIT_CHECK(k.bytes <= limit);
        check_is(&given, &l);
        if (held[h].size > 0)
            check_is(&of[h], &held[h]);
        onic_layout_fini(&held[h]);
        held[h] = l;
        of[h] = given;
    }
    UNIT_CHECK(limit == 0 ? k.hits == 0 : k.hits > 0);
    onic_layout_cache_fini(&k);
    UNIT_CHECK(k.bytes == 0 && k.n == 0);
    for (int h = 0; h < HELD; h++) {
        if (held[h].size > 0)
            check_is(&of[h], &held[h]);
        onic_layout_fini(&held[h]);
    }
}

START_TEST(found_by_contents)
{
    static const size_t limits[] = {0, 2500, 10000, 1 << 20};
    static const uint64_t prints[] = {1, 3, UINT64_MAX};
    unit_random_t r = {unit_seed()};

    for (size_t l = 0; l < sizeof(limits) / sizeof(limits[0]); l++)
        for (size_t p = 0; p < sizeof(prints) / sizeof(prints[0]); p++)
            use(&r, limits[l], prints[p]);
}
END_TEST

/** Lists have different numbers, and what is found has that of what was kept. */
START_TEST(numbers)
{
    onic_layout_cache_t k = {.limit = 1 << 20};
    unit_random_t r = {unit_seed()};
    uint64_t last = 0;

    for (int i = 0; i < 100; i++) {
        onic_layout_t first, second, third;
        type_t t;

        random_type(&r, &t);
        t.word[0] += (uint64_t)i << 20;
        t.word[1] += (uint64_t)i << 20;
        const onic_contents_t from = contents(&t, UINT64_MAX);
        make(&t, &first);
        make(&t, &second);
        onic_layout_cache_add(&k, &from, &first);
        UNIT_CHECK(onic_layout_number(&first) == 0 && !onic_layout_cache_find(&k, &from, &third));
        onic_layout_cache_add(&k, &from, &second);
        UNIT_CHECK(onic_layout_cache_find(&k, &from, &third));
        if (second.nruns > 0) {
            UNIT_CHECK(onic_layout_number(&second) > last);
            last = onic_layout_number(&second);
        }
        UNIT_CHECK(onic_layout_number(&third) == onic_layout_number(&second));
        onic_layout_fini(&first);
        onic_layout_fini(&second);
        onic_layout_fini(&third);
    }
    onic_layout_cache_fini(&k);
}
END_TEST

int main(void)
{
    return UNIT_RUN("layout_cache", UNIT_ONCE(found_by_contents), UNIT_ONCE(numbers));
}
