/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Accumulates applied to random layouts, against a loop over single bytes. Elements may have gaps
 * in memory, as the pair types have.
 */
#include "osc_nicstride/protocol/apply.h"

#include <string.h>

#include "common/layout/pack.h"

#include "test/unit/unit.h"

#define MAX_PACKED 16384 /* several times the scratch memory of the code */
#define MAX_MEMORY 65536

/** An element type: where its packed bytes lie in memory. */
typedef struct element {
    size_t size;
    size_t extent;
    size_t at[64];
    onic_layout_t layout;
} element_t;

static _Alignas(64) unsigned char memory[MAX_MEMORY + 16], expected[MAX_MEMORY];

/** What the reduction was called for. */
typedef struct calls {
    const element_t *element;
    uint64_t elements;
    uint64_t times, in_place; /* of those in the target's own memory */
} calls_t;

/* Not commutative, and with no neutral value: an element left out or done twice shows. */
static unsigned char reduced(unsigned char target, unsigned char source)
{
    return (unsigned char)(target * 3 + source + 1);
}

static void reduce(void *ctx, const void *src, void *dst, size_t n)
{
    calls_t *calls = ctx;
    const element_t *e = calls->element;
    const unsigned char *s = src;
    unsigned char *d = dst;

    /* Loops over elements need that. */
    UNIT_CHECK(n == 1 || e->size != e->extent || (uintptr_t)dst % (e->size & -e->size) == 0);
    for (size_t i = 0; i < n; i++)
        for (size_t b = 0; b < e->size; b++) {
            const size_t at = i * e->extent + e->at[b];
            d[at] = reduced(d[at], s[at]);
        }
    calls->elements += n;
    calls->times++;
    calls->in_place += d >= memory && d < memory + sizeof(memory);
}

/** An element of two parts, and bytes that are not its own between and behind them; or of one. */
static void random_element(unit_random_t *r, element_t *e)
{
    onic_runs_t runs = {0};
    size_t gap = 0, first;

    e->size = 1 + unit_below(r, 16);
    e->extent = e->size;
    if (e->size > 1 && unit_once_in(r, 2)) {
        gap = unit_below(r, 5);
        e->extent += gap + unit_below(r, 5);
    }
    first = e->size > 1 ? 1 + unit_below(r, e->size - 1) : 1;
    for (size_t b = 0; b < e->size; b++)
        e->at[b] = b < first ? b : b + gap;
    UNIT_CHECK(onic_runs_add(&runs, (onic_run_t){0, first, 1, 0}) == ONIC_LAYOUT_OK);
    if (first < e->size)
        UNIT_CHECK(onic_runs_add(&runs, (onic_run_t){(int64_t)(first + gap), e->size - first, 1,
                                                     0}) == ONIC_LAYOUT_OK);
    UNIT_CHECK(onic_layout_from_runs(&e->layout, &runs, 0) == ONIC_LAYOUT_OK);
}

/** Rows of elements at a distance, upwards or downwards. */
static void regular_target(unit_random_t *r, const element_t *e, onic_layout_t *l)
{
    const uint64_t row = 1 + unit_below(r, 100), rows = 1 + unit_below(r, 10);
    const int64_t pitch = (int64_t)(row * e->extent + unit_below(r, 30));

    onic_layout_dup(l, &e->layout);
    UNIT_CHECK(onic_layout_repeat(l, row, (int64_t)e->extent) == ONIC_LAYOUT_OK);
    UNIT_CHECK(onic_layout_repeat(l, rows, unit_once_in(r, 3) ? -pitch : pitch) == ONIC_LAYOUT_OK);
}

/** Stretches of elements here and there. */
static void irregular_target(unit_random_t *r, const element_t *e, onic_layout_t *l)
{
    onic_runs_t runs = {0};
    int64_t at = 0;

    for (uint64_t left = 2 + unit_below(r, 40); left > 0; left--) {
        const uint64_t n = 1 + unit_below(r, unit_once_in(r, 4) ? 60 : 4);
        onic_layout_t part;
        onic_layout_dup(&part, &e->layout);
        UNIT_CHECK(onic_layout_repeat(&part, n, (int64_t)e->extent) == ONIC_LAYOUT_OK);
        UNIT_CHECK(onic_runs_add_layout(&runs, &part, at) == ONIC_LAYOUT_OK);
        onic_layout_fini(&part);
        at += (int64_t)(n * e->extent + unit_below(r, 9));
    }
    UNIT_CHECK(onic_layout_from_runs(l, &runs, 0) == ONIC_LAYOUT_OK);
}

/** Blocks whose ends tear elements apart: no program's type does, but a peer can say so. */
static void torn_target(unit_random_t *r, onic_layout_t *l)
{
    const uint64_t block = 100 + unit_below(r, 500);

    UNIT_CHECK(onic_layout_contig(l, 0, block) == ONIC_LAYOUT_OK);
    UNIT_CHECK(onic_layout_repeat(l, 1 + unit_below(r, 25), (int64_t)block + 5) == ONIC_LAYOUT_OK);
}

static size_t shift; /* of the target in memory */
static unsigned char source[MAX_PACKED], old[MAX_PACKED + 16], old_expected[MAX_PACKED];
static int64_t offset[MAX_PACKED];

/** Addresses of the packed bytes of a layout. */
static void list_bytes(const onic_layout_t *l)
{
    onic_cursor_t c;
    uint64_t len, n = 0;

    UNIT_CHECK(l->size <= MAX_PACKED);
    UNIT_CHECK(l->ub - l->lb <= MAX_MEMORY);
    onic_cursor_init(&c, l, 0);
    while (onic_cursor_next(&c, 1, &offset[n], &len))
        n++;
    UNIT_CHECK(n == l->size);
}

static void fill(unit_random_t *r, unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)unit_random64(r);
}

/** What packed bytes [from, from + len) of the target become, byte by byte. */
static void apply_naively(nicstride_apply_kind_t kind, unsigned char *base, uint64_t from,
                          uint64_t len)
{
    for (uint64_t i = 0; i < len; i++) {
        unsigned char *b = base + offset[from + i];
        old_expected[i] = *b;
        if (kind == NICSTRIDE_APPLY_REDUCE)
            *b = reduced(*b, source[i]);
        else if (kind == NICSTRIDE_APPLY_REPLACE)
            *b = source[i];
    }
}

/** One call on the rest of the target, or a part of it, perhaps asking for more than there is. */
static void apply_some(unit_random_t *r, const element_t *e, const onic_layout_t *l,
                       onic_cursor_t *c)
{
    calls_t calls = {.element = e};
    nicstride_apply_t a = {.kind = (nicstride_apply_kind_t)unit_below(r, 3),
                           .size = e->size,
                           .extent = e->extent,
                           .elem = e->size != e->extent || unit_once_in(r, 2) ? &e->layout : NULL,
                           .reduce = reduce,
                           .ctx = &calls};
    /* Where nothing is fetched and nothing changed, the cursor moves all the same. */
    const bool fetch = unit_once_in(r, 2);
    const bool named = a.kind != NICSTRIDE_APPLY_NO_OP || unit_once_in(r, 2);
    const uint64_t from = c->pos, rest = (l->size - from) / e->size * e->size;
    const uint64_t asked = (1 + unit_below(r, rest / e->size + 2)) * e->size;
    const uint64_t len = asked < rest ? asked : rest;

    fill(r, source, len);
    memset(old, 0xc3, sizeof(old));
    apply_naively(a.kind, expected - l->lb, from, len);
    UNIT_CHECK(nicstride_apply(&a, c, memory + shift - l->lb, named ? source : NULL,
                               fetch ? old : NULL, asked) == len);
    UNIT_CHECK(c->pos == from + len);
    UNIT_CHECK(memcmp(memory + shift, expected, (size_t)(l->ub - l->lb)) == 0);
    UNIT_CHECK(calls.elements == (a.kind == NICSTRIDE_APPLY_REDUCE ? len / e->size : 0));
    if (fetch)
        UNIT_CHECK(memcmp(old, old_expected, len) == 0);
    for (size_t i = 0; i < 16; i++)
        UNIT_CHECK(old[(fetch ? len : 0) + i] == 0xc3);
}

START_TEST(random_targets)
{
    unit_random_t r = {unit_seed()};
    unsigned regular = 0, lists = 0;

    for (int round = 0; round < 500; round++) {
        element_t e;
        onic_layout_t l;
        onic_cursor_t c;
        random_element(&r, &e);
        const bool torn = unit_once_in(&r, 4);
        if (torn)
            torn_target(&r, &l);
        else if (unit_once_in(&r, 2))
            regular_target(&r, &e, &l);
        else
            irregular_target(&r, &e, &l);
        UNIT_CHECK(torn || l.size % e.size == 0);
        list_bytes(&l);
        shift = unit_below(&r, 16);
        fill(&r, memory + shift, (size_t)(l.ub - l.lb));
        memcpy(expected, memory + shift, (size_t)(l.ub - l.lb));
        onic_cursor_init(&c, &l, 0);
        while (l.size - c.pos >= e.size)
            apply_some(&r, &e, &l, &c);
        regular += l.nruns == 0;
        lists += l.nruns > 0;
        onic_layout_fini(&l);
        onic_layout_fini(&e.layout);
    }
    ck_assert_uint_gt(regular, 30);
    ck_assert_uint_gt(lists, 30);
}
END_TEST

/** Rows of whole elements at a distance, as long as the target at least. */
static void random_source(unit_random_t *r, const element_t *e, uint64_t bytes, onic_layout_t *l)
{
    const uint64_t n = 1 + unit_below(r, unit_once_in(r, 2) ? 100 : 4), row = n * e->size;
    const int64_t pitch = (int64_t)(row + unit_below(r, 50));

    UNIT_CHECK(onic_layout_contig(l, (int64_t)unit_below(r, 9), row) == ONIC_LAYOUT_OK);
    UNIT_CHECK(onic_layout_repeat(l, (bytes + row - 1) / row, pitch) == ONIC_LAYOUT_OK);
}

/* A source that is not packed: as if it had been, in one step or several. */
START_TEST(from_layouts)
{
    static unsigned char apart[3 * MAX_MEMORY], packed[MAX_PACKED], old_apart[MAX_PACKED];
    unit_random_t r = {unit_seed()};
    unsigned long direct = 0;

    for (int round = 0; round < 1000; round++) {
        element_t e;
        onic_layout_t l, from;
        onic_cursor_t c, expected_c, source_c, pack_c;
        random_element(&r, &e);
        if (unit_once_in(&r, 2))
            regular_target(&r, &e, &l);
        else
            irregular_target(&r, &e, &l);
        random_source(&r, &e, l.size, &from);
        if (l.size > MAX_PACKED || l.ub - l.lb > MAX_MEMORY || from.ub > (int64_t)sizeof(apart)) {
            onic_layout_fini(&l);
            onic_layout_fini(&e.layout);
            continue;
        }
        calls_t calls = {.element = &e}, ignored = {.element = &e};
        nicstride_apply_t a = {.kind = (nicstride_apply_kind_t)unit_below(&r, 3),
                               .size = e.size,
                               .extent = e.extent,
                               .elem = &e.layout,
                               .reduce = reduce,
                               .ctx = &calls};
        shift = unit_once_in(&r, 2) ? 0 : unit_below(&r, 16);
        fill(&r, memory + shift, (size_t)(l.ub - l.lb));
        memcpy(expected, memory + shift, (size_t)(l.ub - l.lb));
        fill(&r, apart, (size_t)from.ub);
        onic_cursor_init(&pack_c, &from, 0);
        onic_pack(&pack_c, apart, packed, l.size);
        onic_cursor_init(&c, &l, 0);
        onic_cursor_init(&source_c, &from, 0);
        for (uint64_t done = 0; done < l.size;) {
            const uint64_t n = (1 + unit_below(&r, (l.size - done) / e.size)) * e.size;

            UNIT_CHECK(nicstride_apply_from(&a, &c, memory + shift - l.lb, &source_c, apart,
                                            old_apart + done, n) == n);
            done += n;
            UNIT_CHECK(c.pos == done && source_c.pos == done);
        }
        direct += calls.in_place;
        a.ctx = &ignored;
        onic_cursor_init(&expected_c, &l, 0);
        nicstride_apply(&a, &expected_c, expected - l.lb, packed, old_expected, l.size);
        UNIT_CHECK(memcmp(memory + shift, expected, (size_t)(l.ub - l.lb)) == 0);
        UNIT_CHECK(memcmp(old_apart, old_expected, l.size) == 0);
        onic_layout_fini(&l);
        onic_layout_fini(&e.layout);
    }
    ck_assert_uint_gt(direct, 30);
}
END_TEST

/* Part of an element is not applied. */
START_TEST(whole_elements_only)
{
    const element_t e = {.size = 8, .extent = 8, .at = {0, 1, 2, 3, 4, 5, 6, 7}};
    calls_t calls = {.element = &e};
    const nicstride_apply_t a = {
        .kind = NICSTRIDE_APPLY_REDUCE, .size = 8, .extent = 8, .reduce = reduce, .ctx = &calls};
    onic_layout_t l;
    onic_cursor_t c;

    ck_assert_int_eq(onic_layout_contig(&l, 0, 20), ONIC_LAYOUT_OK);
    memset(memory, 1, 20);
    memset(source, 1, 20);
    onic_cursor_init(&c, &l, 0);
    ck_assert_uint_eq(nicstride_apply(&a, &c, memory, source, NULL, 7), 0);
    ck_assert_uint_eq(nicstride_apply(&a, &c, memory, source, NULL, 15), 8);
    ck_assert_uint_eq(nicstride_apply(&a, &c, memory, source, NULL, 100), 8);
    ck_assert_uint_eq(nicstride_apply(&a, &c, memory, source, NULL, 100), 0);
    ck_assert_uint_eq(calls.elements, 2);
    for (int i = 0; i < 20; i++)
        ck_assert_uint_eq(memory[i], i < 16 ? 5 : 1);
}
END_TEST

/* Long pieces of the target are reduced where they are, each by one call; short ones, and those
 * that are not aligned, are not. */
START_TEST(pieces)
{
    static const struct {
        uint64_t block;
        size_t at;
        bool in_place;
    } cases[] = {{8192, 0, true}, {512, 0, true},  {256, 8, true},   {248, 0, false},
                 {8, 0, false},   {512, 4, false}, {1020, 0, false}, {4096, 64, true}};
    const element_t e = {.size = 8, .extent = 8, .at = {0, 1, 2, 3, 4, 5, 6, 7}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const uint64_t block = cases[i].block, blocks = block == 8192 ? 1 : 2;
        calls_t calls = {.element = &e};
        const nicstride_apply_t a = {.kind = NICSTRIDE_APPLY_REDUCE,
                                     .size = 8,
                                     .extent = 8,
                                     .reduce = reduce,
                                     .ctx = &calls};
        onic_layout_t l;
        onic_cursor_t c;

        ck_assert_int_eq(onic_layout_contig(&l, (int64_t)cases[i].at, block), ONIC_LAYOUT_OK);
        ck_assert_int_eq(onic_layout_repeat(&l, blocks, (int64_t)block + 16), ONIC_LAYOUT_OK);
        onic_cursor_init(&c, &l, 0);
        ck_assert_uint_eq(nicstride_apply(&a, &c, memory, source, NULL, l.size), l.size);
        ck_assert_uint_eq(calls.elements, l.size / 8);
        ck_assert_uint_eq(calls.in_place, cases[i].in_place ? blocks : 0);
        if (cases[i].in_place)
            ck_assert_uint_eq(calls.times, blocks);
    }
}
END_TEST

/* The result may go where the value to compare with is. */
START_TEST(compare_and_swap)
{
    unit_random_t r = {unit_seed()};
    unsigned char target[70], desired[64], was[70], before[70];

    for (size_t size = 1; size <= 64; size++)
        for (size_t n = 0; n <= 2 * size + 1; n++) {
            /* `differ` == size: equal; else the one byte that is not. */
            const size_t differ = n / 2;
            unsigned char *t = target + 3; /* no alignment is asked for */
            unsigned char apart[64], *compare = n % 2 != 0 ? was : apart;

            fill(&r, target, sizeof(target));
            fill(&r, desired, sizeof(desired));
            memset(was, 0xc3, sizeof(was));
            memcpy(compare, t, size);
            if (differ < size)
                compare[differ] ^= (unsigned char)(1u << unit_below(&r, 8));
            memcpy(before, target, sizeof(target));
            nicstride_apply_cas(t, size, compare, desired, was);
            UNIT_CHECK(memcmp(was, before + 3, size) == 0 && was[size] == 0xc3);
            if (differ == size)
                memcpy(before + 3, desired, size);
            UNIT_CHECK(memcmp(before, target, sizeof(target)) == 0);
        }
}
END_TEST

int main(void)
{
    return UNIT_RUN("apply", UNIT_ONCE(random_targets), UNIT_ONCE(whole_elements_only),
                    UNIT_ONCE(pieces), UNIT_ONCE(from_layouts), UNIT_ONCE(compare_and_swap));
}
