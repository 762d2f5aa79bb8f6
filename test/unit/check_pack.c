/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Gather, scatter and copy against byte-by-byte moves over the reference's offsets. */
#include <pthread.h>
#include <stdatomic.h>

#include "common/layout/pack.h"
#include "test/unit/tree.h"

enum { MOST = 6000, DEPTH = 6 };

/** Memory that holds a layout: exactly its bytes, so that a sanitizer sees every step outside. */
typedef struct memory {
    unsigned char *bytes;
    size_t n;
    int64_t lb;
} memory_t;

static memory_t memory_new(const tree_t *t)
{
    memory_t m = {.n = (size_t)(t->l.ub - t->l.lb), .lb = t->l.lb};

    m.bytes = malloc(m.n + 1);
    for (size_t i = 0; i < m.n; i++)
        m.bytes[i] = (unsigned char)rnd64();
    return m;
}

static memory_t memory_copy(const memory_t *from)
{
    memory_t m = *from;

    m.bytes = malloc(m.n + 1);
    memcpy(m.bytes, from->bytes, m.n);
    return m;
}

static void *memory_base(const memory_t *m)
{
    return (void *)((uintptr_t)m->bytes - (uintptr_t)m->lb);
}

static unsigned char *memory_at(const memory_t *m, int64_t offset)
{
    return m->bytes + (offset - m->lb);
}

/** Length of the next part of a transfer: all of it, large, or awkward. */
static uint64_t part(void)
{
    switch (rnd(0, 3)) {
    case 0:
        return UINT64_MAX;
    case 1:
        return (uint64_t)rnd(0, 30);
    default:
        return (uint64_t)rnd(0, 3000);
    }
}

static void check_cursor(const onic_cursor_t *c, const onic_layout_t *l, uint64_t pos)
{
    onic_cursor_t fresh;

    onic_cursor_init(&fresh, l, pos);
    UNIT_CHECK(memcmp(c, &fresh, sizeof(fresh)) == 0);
}

static void check_pack(const tree_t *t)
{
    memory_t m = memory_new(t);
    size_t pos = (size_t)rnd(0, (int64_t)t->ref.n);
    onic_cursor_t c;

    onic_cursor_init(&c, &t->l, pos);
    while (pos < t->ref.n) {
        uint64_t len = part();
        uint64_t expected = len < t->ref.n - pos ? len : t->ref.n - pos;
        unsigned char *out = malloc(expected + 1);

        if (rnd(0, 3) == 0)
            UNIT_CHECK(onic_pack_streaming(&c, memory_base(&m), out, len) == expected);
        else
            UNIT_CHECK(onic_pack(&c, memory_base(&m), out, len) == expected);
        for (uint64_t i = 0; i < expected; i++)
            UNIT_CHECK(out[i] == *memory_at(&m, t->ref.at[pos + i]));
        pos += expected;
        check_cursor(&c, &t->l, pos);
        free(out);
    }
    UNIT_CHECK(onic_pack(&c, memory_base(&m), NULL, 5) == 0);
    free(m.bytes);
}

static void check_unpack(const tree_t *t)
{
    memory_t m = memory_new(t);
    memory_t expected = memory_copy(&m);
    size_t pos = (size_t)rnd(0, (int64_t)t->ref.n);
    onic_cursor_t c;

    onic_cursor_init(&c, &t->l, pos);
    while (pos < t->ref.n) {
        uint64_t len = part();
        uint64_t n = len < t->ref.n - pos ? len : t->ref.n - pos;
        unsigned char *in = malloc(n + 1);

        for (uint64_t i = 0; i < n; i++) {
            in[i] = (unsigned char)rnd64();
            *memory_at(&expected, t->ref.at[pos + i]) = in[i];
        }
        UNIT_CHECK(onic_unpack(&c, memory_base(&m), in, len) == n);
        UNIT_CHECK(memcmp(m.bytes, expected.bytes, m.n) == 0);
        pos += n;
        check_cursor(&c, &t->l, pos);
        free(in);
    }
    free(m.bytes);
    free(expected.bytes);
}

static void check_copy(const tree_t *to, const tree_t *from)
{
    memory_t src = memory_new(from);
    memory_t dst = memory_new(to);
    memory_t expected = memory_copy(&dst);
    size_t to_pos = rnd(0, 1) ? 0 : (size_t)rnd(0, (int64_t)to->ref.n);
    size_t from_pos = rnd(0, 1) ? 0 : (size_t)rnd(0, (int64_t)from->ref.n);
    onic_cursor_t d;
    onic_cursor_t s;

    onic_cursor_init(&d, &to->l, to_pos);
    onic_cursor_init(&s, &from->l, from_pos);
    while (to_pos < to->ref.n && from_pos < from->ref.n) {
        uint64_t n = part();
        uint64_t len = n;

        n = n < to->ref.n - to_pos ? n : to->ref.n - to_pos;
        n = n < from->ref.n - from_pos ? n : from->ref.n - from_pos;
        for (uint64_t i = 0; i < n; i++) {
            *memory_at(&expected, to->ref.at[to_pos + i]) =
                *memory_at(&src, from->ref.at[from_pos + i]);
        }
        UNIT_CHECK(onic_copy(&d, memory_base(&dst), &s, memory_base(&src), len, n % 2 == 0) == n);
        UNIT_CHECK(memcmp(dst.bytes, expected.bytes, dst.n) == 0);
        to_pos += n;
        from_pos += n;
        check_cursor(&d, &to->l, to_pos);
        check_cursor(&s, &from->l, from_pos);
    }
    free(src.bytes);
    free(dst.bytes);
    free(expected.bytes);
}

/* ---- shapes --------------------------------------------------------------------------------- */

static uint64_t grid_block(void)
{
    static const uint8_t sizes[] = {1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64, 72, 128, 200};

    return sizes[rnd(0, sizeof(sizes) - 1)];
}

static uint64_t grid_count(void)
{
    return (uint64_t)(rnd(0, 2) ? rnd(1, 10) : rnd(1, 400));
}

/** Regular layouts of two or three dimensions, with rows that are apart, interleave or overlap. */
static tree_t tree_grid(uint64_t block)
{
    tree_t t = tree_block(8 * rnd(0, 3) + (rnd(0, 3) ? 0 : rnd(-9, 9)), block);

    for (int64_t levels = rnd(1, 3); levels > 0; levels--) {
        uint64_t count = grid_count();
        int64_t extent = t.l.ub - t.l.lb;
        int64_t strides[] = {extent + 8, extent + rnd(1, 90), -extent - 8, rnd(-30, 30),
                             2 * extent};

        if (count * t.ref.n <= 40000)
            tree_repeat(&t, count, strides[rnd(0, 4)]);
    }
    return t;
}

/** A few runs in each of many elements: an array of structures with gaps. */
static tree_t tree_records(void)
{
    tree_t t = tree_block(0, grid_block());

    for (int64_t n = rnd(1, 5); n > 0; n--) {
        tree_t field = tree_grid(grid_block());

        if (field.ref.n < 500)
            tree_join(&t, &field, rnd(0, 4) ? t.l.ub - field.l.lb + rnd(0, 9) : rnd(-99, 99));
        else
            tree_free(&field);
    }
    if (rnd(0, 3) == 0)
        tree_repeat(&t, (uint64_t)rnd(1, 12), t.l.ub - t.l.lb + rnd(-20, 20));
    tree_repeat(&t, 1 + 40000 / t.ref.n / (uint64_t)rnd(1, 20), t.l.ub - t.l.lb + rnd(-5, 20));
    return t;
}

/** One record of some fields in their order, repeated; sometimes the records run into each other.
 */
static tree_t tree_fields(const uint64_t block[4])
{
    tree_t t = tree_block(0, block[0]);

    for (int i = 1; i < 4; i++) {
        tree_t field = tree_block(0, block[i]);

        tree_join(&t, &field, t.l.ub + rnd(1, 20));
    }
    tree_repeat(&t, (uint64_t)rnd(8, 200), rnd(0, 2) ? t.l.ub - t.l.lb + rnd(0, 9) : rnd(1, 40));
    return t;
}

/* ---- pairs of layouts that have paths of their own ------------------------------------------- */

typedef struct two {
    tree_t to, from;
} two_t;

static tree_t random_tree(void)
{
    return tree_random((unsigned)rnd(0, DEPTH), MOST);
}

static two_t trees(int n)
{
    (void)n;
    return (two_t){random_tree(), random_tree()};
}

static tree_t grid_or_record(void)
{
    return rnd(0, 2) ? tree_grid(grid_block()) : tree_records();
}

static two_t grids_and_records(int n)
{
    (void)n;
    return (two_t){grid_or_record(), rnd(0, 1) ? grid_or_record() : random_tree()};
}

/** Blocks that are equal, or whole multiples of each other. */
static two_t related_blocks(int n)
{
    const uint64_t block = grid_block();

    (void)n;
    return (two_t){tree_grid(rnd(0, 1) ? block : block * (uint64_t)rnd(2, 12)),
                   tree_grid(rnd(0, 1) ? block : block * (uint64_t)rnd(2, 12))};
}

/** Arrays of the same record on both sides; of fields that only add up to the same, they must not
 *  take that path. */
static two_t records(int n)
{
    uint64_t block[4];
    two_t t;

    (void)n;
    for (int k = 0; k < 4; k++)
        block[k] = grid_block();
    t.to = tree_fields(block);
    if (rnd(0, 1)) {
        const uint64_t last = block[3];

        block[3] = block[0];
        block[0] = last;
    }
    t.from = tree_fields(block);
    return t;
}

/** Streaming stores go right out of blocks that are long and aligned as their destination is. */
static two_t long_blocks(int n)
{
    two_t t = {.to = tree_block(0, 1)};

    (void)n;
    t.from = tree_block(rnd(0, 1) ? 8 * rnd(0, 9) : rnd(0, 70), (uint64_t)rnd(4000, 9000));
    tree_repeat(&t.from, (uint64_t)rnd(1, 4),
                (int64_t)t.from.l.size + (rnd(0, 1) ? 64 : rnd(0, 70)));
    return t;
}

/** Of every length, at every place in a word. */
static two_t every_block(int n)
{
    const uint64_t block = 1 + (uint64_t)n / 8;
    two_t t = {tree_block(rnd(0, 7), block), tree_block(n % 8, block)};

    tree_repeat(&t.to, 13, (int64_t)block + rnd(1, 16));
    tree_repeat(&t.from, 13, (int64_t)(block + 16) & ~7);
    return t;
}

/** Columns of grids whose rows are a power of two long, or some times that. */
static two_t colliding_columns(int n)
{
    const uint64_t block = (uint64_t)(rnd(0, 3) ? rnd(1, 4) * 8 : rnd(1, 40));
    const int64_t stride = (rnd(0, 3) ? 1 : rnd(1, 5)) * (INT64_C(512) << rnd(0, 4));
    two_t t = {tree_block(rnd(0, 1) ? 0 : rnd(0, 15), block),
               tree_block(rnd(0, 1) ? 0 : rnd(0, 15), block)};

    (void)n;
    tree_repeat(&t.from, (uint64_t)rnd(8, 80), rnd(0, 3) ? stride : -stride);
    tree_repeat(&t.to, (uint64_t)rnd(8, 80), rnd(0, 1) ? stride : 64);
    return t;
}

static const struct {
    two_t (*make)(int n);
    int rounds;
} makers[] = {{trees, 6000},           {grids_and_records, 3000}, {related_blocks, 3000},
              {records, 3000},         {long_blocks, 60},         {every_block, 300 * 8},
              {colliding_columns, 200}};

START_TEST(as_byte_by_byte)
{
    for (int n = 0; n < makers[_i].rounds; n++) {
        two_t t = makers[_i].make(n);

        check_pack(&t.from);
        check_unpack(&t.from);
        check_copy(&t.to, &t.from);
        tree_free(&t.to);
        tree_free(&t.from);
    }
}
END_TEST

START_TEST(positions_beyond_4_gib)
{
    const uint64_t elements = UINT64_C(3) << 30;
    unsigned char bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    unsigned char out[24];
    onic_layout_t l;
    onic_cursor_t c;
    onic_cursor_t d;

    /* The same eight bytes over and over: 24 GiB of data without the memory. */
    ck_assert_int_eq(onic_layout_contig(&l, 0, 8), ONIC_LAYOUT_OK);
    ck_assert_int_eq(onic_layout_repeat(&l, elements, 0), ONIC_LAYOUT_OK);
    onic_cursor_init(&c, &l, (UINT64_C(20) << 30) + 3);
    ck_assert_uint_eq(onic_pack(&c, bytes, out, sizeof(out)), sizeof(out));
    for (size_t i = 0; i < sizeof(out); i++)
        ck_assert_uint_eq(out[i], 1 + (i + 3) % 8);
    check_cursor(&c, &l, (UINT64_C(20) << 30) + 27);
    onic_cursor_init(&c, &l, 8 * elements - 4);
    ck_assert_uint_eq(onic_pack(&c, bytes, out, sizeof(out)), 4);
    onic_cursor_init(&c, &l, 8 * elements - 20);
    onic_cursor_init(&d, &l, 4);
    ck_assert_uint_eq(onic_copy(&d, out, &c, bytes, UINT64_MAX, false), 20);
    ck_assert_mem_eq(out, bytes, 8);
}
END_TEST

/* ---- tearing -------------------------------------------------------------------------------- */

enum { CELLS = 480 };

typedef struct flipper {
    _Atomic uint64_t cell[CELLS];
    atomic_bool stop;
} flipper_t;

static void *flip(void *arg)
{
    flipper_t *f = arg;
    uint64_t value = 0;

    while (!atomic_load_explicit(&f->stop, memory_order_relaxed)) {
        value = ~value;
        for (int i = 0; i < CELLS; i++)
            atomic_store_explicit(&f->cell[i], value, memory_order_relaxed);
    }
    return NULL;
}

/** Packs and copies blocks that begin at `offset` and hold aligned elements of eight bytes from
 *  `first` on, while another thread changes them: each must be seen whole. */
static void check_whole(flipper_t *f, int64_t offset, uint64_t block, int64_t stride)
{
    uint64_t count = (sizeof(f->cell) - 64) / (uint64_t)stride;
    uint64_t first = (8 - (uint64_t)offset % 8) % 8;
    _Alignas(8) unsigned char out[sizeof(f->cell)];
    onic_layout_t l, flat;
    onic_cursor_t c, to;

    ck_assert_int_eq(onic_layout_contig(&l, offset, block), ONIC_LAYOUT_OK);
    ck_assert_int_eq(onic_layout_repeat(&l, count, stride), ONIC_LAYOUT_OK);
    ck_assert_int_eq(onic_layout_contig(&flat, 0, l.size), ONIC_LAYOUT_OK);
    for (int round = 0; round < 20000; round++) {
        onic_cursor_init(&c, &l, 0);
        onic_cursor_init(&to, &flat, 0);
        if (round % 2 == 0)
            onic_pack(&c, f->cell, out, sizeof(out));
        else
            onic_copy(&to, out, &c, f->cell, sizeof(out), true);
        for (uint64_t at = 0; at + block <= l.size; at += block) {
            for (uint64_t i = first; i + 8 <= block; i += 8) {
                uint64_t seen;

                memcpy(&seen, out + at + i, 8);
                UNIT_CHECK(seen == 0 || seen == UINT64_MAX);
            }
        }
    }
}

START_TEST(aligned_elements_are_not_torn)
{
    static flipper_t f;
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, flip, &f), 0);
    check_whole(&f, 0, 8, 16);
    check_whole(&f, 0, 12, 16);
    check_whole(&f, 4, 12, 16);
    check_whole(&f, 2, 14, 24);
    check_whole(&f, 7, 9, 16);
    check_whole(&f, 4, 20, 24);
    check_whole(&f, 4, 24, 32);
    check_whole(&f, 0, 24, 32);
    check_whole(&f, 4, 64, 72);
    check_whole(&f, 1, 63, 64);
    check_whole(&f, 0, 15, 16);
    check_whole(&f, 4, 1244, 1256);
    check_whole(&f, 0, 1200, 1208);
    atomic_store(&f.stop, true);
    pthread_join(thread, NULL);
}
END_TEST

int main(void)
{
    tree_seed();
    return UNIT_RUN("pack", UNIT_LOOP(as_byte_by_byte, 0, sizeof(makers) / sizeof(makers[0])),
                    UNIT_ONCE(positions_beyond_4_gib), UNIT_ONCE(aligned_elements_are_not_torn));
}
