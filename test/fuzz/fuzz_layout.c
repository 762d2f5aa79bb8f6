/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Fuzzes the decoder of layouts. What it accepts must keep its promises: every byte lies within
 * lb .. ub, walking and seeking agree, and packing touches nothing else.
 */
#include <stdbool.h>
#include <string.h>

#include "common/layout/layout.h"
#include "common/layout/pack.h"
#include "test/fuzz/fuzz.h"

enum {
    WALK_PIECES = 300,      /* pieces looked at from one position */
    MEMORY_BYTES = 1 << 16, /* most memory that a layout may cover to be really packed */
    DATA_BYTES = 1 << 15    /* most data that is packed */
};

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/** Walks some pieces from `pos`; all must lie within the bounds and add up. */
static void walk(const onic_layout_t *l, uint64_t pos, uint64_t max)
{
    onic_cursor_t c;
    int64_t offset;
    uint64_t len;
    int pieces = 0;

    onic_cursor_init(&c, l, pos);
    while (pieces++ < WALK_PIECES && onic_cursor_next(&c, max, &offset, &len)) {
        FUZZ_CHECK(len > 0 && len <= max);
        FUZZ_CHECK(offset >= l->lb && offset < l->ub);
        FUZZ_CHECK(len <= (uint64_t)(l->ub - offset));
        pos += len;
        FUZZ_CHECK(c.pos == pos && pos <= l->size);
    }
    FUZZ_CHECK(pieces > WALK_PIECES || pos == l->size);
}

/** Slices from `pos` on: what they say must be what the layout says. */
static void slice(const onic_layout_t *l, uint64_t pos, uint64_t max, uint64_t granule, size_t cap)
{
    uint8_t buf[512];
    onic_cursor_t c;
    onic_cursor_t own;

    onic_cursor_init(&c, l, pos);
    own = c;
    for (int i = 0; i < 20; i++) {
        onic_layout_t part;
        onic_cursor_t walker;
        uint64_t data;
        size_t len;
        size_t used;

        if (onic_layout_encode_slice(&c, max, granule, buf, cap, &len, &data) != ONIC_LAYOUT_OK)
            return;
        FUZZ_CHECK(len <= cap && data <= max && data % granule == 0);
        FUZZ_CHECK(onic_layout_decode(&part, buf, len, &used) == ONIC_LAYOUT_OK);
        FUZZ_CHECK(used == len && part.size == data);
        onic_cursor_init(&walker, &part, 0);
        for (uint64_t seen = 0; seen < least(data, WALK_PIECES); seen++) {
            int64_t a;
            int64_t b;
            uint64_t n;

            FUZZ_CHECK(onic_cursor_next(&walker, 1, &a, &n) && onic_cursor_next(&own, 1, &b, &n));
            FUZZ_CHECK(a == b);
        }
        onic_layout_fini(&part);
        own = c;
    }
}

/** Packs, unpacks and copies in memory that has just the layout's bytes, for a sanitizer to see. */
static void move(const onic_layout_t *l, uint64_t from)
{
    size_t extent = (size_t)(l->ub - l->lb);
    size_t n = (size_t)least(l->size - from, DATA_BYTES);
    unsigned char *memory = calloc(extent, 1);
    unsigned char *other = calloc(extent, 1);
    unsigned char *data = malloc(n);
    void *base = (void *)((uintptr_t)memory - (uintptr_t)l->lb);
    void *other_base = (void *)((uintptr_t)other - (uintptr_t)l->lb);
    onic_cursor_t c;
    onic_cursor_t d;

    memset(data, 0xa5, n);
    onic_cursor_init(&c, l, from);
    FUZZ_CHECK(onic_unpack(&c, base, data, n) == n);
    onic_cursor_init(&c, l, from);
    onic_cursor_init(&d, l, from);
    FUZZ_CHECK(onic_copy(&d, other_base, &c, base, n, n % 2 == 0) == n);
    FUZZ_CHECK(memcmp(memory, other, extent) == 0);
    memset(data, 0, n);
    onic_cursor_init(&c, l, from);
    FUZZ_CHECK(onic_pack(&c, other_base, data, n) == n);
    for (size_t i = 0; i < n; i++)
        FUZZ_CHECK(data[i] == 0xa5);
    free(data);
    free(other);
    free(memory);
}

static void check(const onic_layout_t *l, const uint8_t *data, size_t used)
{
    uint64_t middle = l->size / 3 * 2;
    uint64_t granule = 1 + data[used - 1] % 16;

    FUZZ_CHECK(l->size <= INT64_MAX && l->lb <= l->ub && l->nlevels <= ONIC_LAYOUT_MAX_LEVELS);
    FUZZ_CHECK(l->nruns <= used);
    walk(l, 0, UINT64_MAX);
    walk(l, middle, 3);
    walk(l, l->size - least(l->size, 50), 1);
    slice(l, 0, UINT64_MAX, 1, 512);
    slice(l, middle, 1 + data[0] * UINT64_C(7), 1, 48);
    slice(l, middle - middle % granule, 700, granule, 48);
    if (l->size > 0 && l->ub - l->lb <= MEMORY_BYTES) {
        move(l, 0);
        move(l, middle);
    }
}

static const onic_run_t records[][4] = {
    {{0, 2, 1, 0}, {4, 4, 1, 0}},
    {{0, 8, 3, 16}, {100, 4, 1, 0}, {50, 24, 2, -32}, {300, 8, 2, 300}},
    {{-40, 1, 1, 0}, {7, 40, 1, 0}, {500, 16, 9, 0}, {90, 12, 1, 0}},
};

/** The same bytes as a slice that is appended to a list, and as what is around a list. */
static void pieces(const uint8_t *data, size_t len)
{
    onic_runs_t runs = {0};
    onic_layout_t list, l;
    uint64_t bytes;

    for (int i = 0; i < 4; i++)
        (void)onic_runs_add(&runs, records[2][i]);
    FUZZ_CHECK(onic_layout_from_runs(&list, &runs, 0) == ONIC_LAYOUT_OK && list.nruns > 0);
    list.lb -= list.offset;
    list.ub -= list.offset;
    list.offset = 0;
    if (onic_layout_decode_around(&l, &list, data, len) == ONIC_LAYOUT_OK) {
        walk(&l, l.size / 2, UINT64_MAX);
        onic_layout_fini(&l);
    }
    onic_layout_fini(&list);
    if (onic_runs_decode(&runs, data, len, &bytes) == ONIC_LAYOUT_OK)
        FUZZ_CHECK(runs.n > 0 && runs.n <= len / 2 && bytes > 0);
    onic_runs_fini(&runs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    onic_layout_t l;
    size_t used;

    pieces(data, len);

    if (onic_layout_decode(&l, data, len, &used) != ONIC_LAYOUT_OK)
        return -1;
    FUZZ_CHECK(used > 0 && used <= len);
    check(&l, data, used);
    onic_layout_fini(&l);
    return 0;
}

size_t onic_fuzz_seed(unsigned i, uint8_t *buf, size_t cap)
{
    unsigned shape = i % 4;
    unsigned levels = i / 4;
    onic_layout_t l;
    size_t len = 0;

    if (levels > 5)
        return 0;
    if (shape < 3) {
        onic_runs_t runs = {0};

        for (int k = 0; k < 4; k++)
            (void)onic_runs_add(&runs, records[shape][k]);
        (void)onic_layout_from_runs(&l, &runs, 0);
    } else {
        (void)onic_layout_contig(&l, 1000, 8);
    }
    for (unsigned k = 0; k < levels; k++)
        (void)onic_layout_repeat(&l, 3 + 10 * (k & 1), (l.ub - l.lb) * (k & 2 ? -1 : 1) + 8);
    if (onic_layout_encode(&l, buf, cap, &len) != ONIC_LAYOUT_OK)
        len = 0;
    onic_layout_fini(&l);
    return len;
}
