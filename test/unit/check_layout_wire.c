/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The wire form of layouts: encoding whole and in slices, strict decoding. */
#include "test/unit/layout_check.h"
#include "test/unit/unit.h"

static onic_layout_t decoded(const uint8_t *buf, size_t len)
{
    onic_layout_t l;
    size_t used;

    ck_assert_int_eq(onic_layout_decode(&l, buf, len, &used), ONIC_LAYOUT_OK);
    ck_assert_uint_eq(used, len);
    return l;
}

/* ---- random layouts ------------------------------------------------------------------------- */

/** The list of a layout by itself, at offset 0 and without levels, as a target puts it together. */
static onic_layout_t list_of(const onic_layout_t *l)
{
    const uint64_t size = l->run_start[l->nruns];
    onic_layout_t bare = *l, list;
    onic_runs_t runs = {0};
    onic_cursor_t c;
    uint64_t data;
    size_t len;
    uint8_t buf[64];

    bare.offset = 0;
    onic_cursor_init(&c, &bare, 0);
    while (c.pos < size) {
        UNIT_CHECK(onic_layout_encode_slice(&c, size - c.pos, 1, buf, sizeof(buf), &len, &data) ==
                   ONIC_LAYOUT_OK);
        UNIT_CHECK(onic_runs_decode(&runs, buf, len, &data) == ONIC_LAYOUT_OK);
    }
    UNIT_CHECK(onic_layout_from_runs(&list, &runs, ONIC_LAYOUT_MAX_LEVELS) == ONIC_LAYOUT_OK);
    return list;
}

/** What surrounds a list, for a reader who has the list. */
static void check_around(const onic_layout_t *l, const ref_t *ref)
{
    uint8_t buf[ONIC_LAYOUT_ENCODED_MAX];
    size_t len = onic_layout_encode_around(l, buf);
    onic_layout_t list = list_of(l), back;

    UNIT_CHECK(list.nruns > 0 && list.offset == 0 && list.nlevels == 0);
    UNIT_CHECK(onic_layout_decode_around(&back, &list, buf, len) == ONIC_LAYOUT_OK);
    check_against_reference(&back, ref);
    UNIT_CHECK(back.lb == l->lb && back.ub == l->ub);
    onic_layout_fini(&back);
    for (size_t cut = 0; cut < len; cut++)
        UNIT_CHECK(onic_layout_decode_around(&back, &list, buf, cut) == ONIC_LAYOUT_BAD_ENCODING);
    onic_layout_fini(&list);
}

static void check_wire(const onic_layout_t *l, const ref_t *ref)
{
    const size_t cap = ONIC_LAYOUT_ENCODED_MAX + (size_t)l->nruns * 40;
    uint8_t *buf = calloc(1, cap);
    onic_layout_t back;
    size_t len;
    size_t used;

    if (l->nruns > 0)
        check_around(l, ref);
    ck_assert_int_eq(onic_layout_encode(l, buf, cap, &len), ONIC_LAYOUT_OK);
    ck_assert_int_eq(onic_layout_decode(&back, buf, cap, &used), ONIC_LAYOUT_OK);
    ck_assert_uint_eq(used, len);
    check_against_reference(&back, ref);
    onic_layout_fini(&back);
    for (size_t cut = 0; cut < len; cut++)
        UNIT_CHECK(onic_layout_decode(&back, buf, cut, &used) == ONIC_LAYOUT_BAD_ENCODING);
    for (size_t cut = 0; cut < len; cut++)
        UNIT_CHECK(onic_layout_encode(l, buf, cut, &used) == ONIC_LAYOUT_NO_SPACE);
    free(buf);
}

/** Slices of random size from a random position to the end, each decoded and walked. */
static void check_slices(const onic_layout_t *l, const ref_t *ref, uint64_t granule)
{
    size_t pos = granule * (size_t)rnd(0, (int64_t)(ref->n / granule));
    onic_cursor_t c;
    uint8_t buf[1024];

    onic_cursor_init(&c, l, pos);
    while (pos < ref->n) {
        size_t cap = (size_t)rnd(rnd(0, 3) ? 200 : 40, sizeof(buf));
        uint64_t max = (uint64_t)rnd((int64_t)granule, rnd(0, 1) ? 100 : 5000) + granule;
        onic_layout_status_t status;
        onic_layout_t slice;
        onic_cursor_t fresh;
        uint64_t data;
        size_t len;
        size_t used;

        status = onic_layout_encode_slice(&c, max, granule, buf, cap, &len, &data);
        if (status == ONIC_LAYOUT_NO_SPACE && granule > 1) {
            /* A granule of many scattered bytes may really need more. */
            ck_assert_uint_eq(c.pos, pos);
            return;
        }
        UNIT_CHECK(status == ONIC_LAYOUT_OK);
        UNIT_CHECK(len <= cap && data > 0 && data <= max && data % granule == 0);
        UNIT_CHECK(onic_layout_decode(&slice, buf, len, &used) == ONIC_LAYOUT_OK);
        UNIT_CHECK(used == len && slice.size == data);
        check_walk(&slice, ref, pos, 0);
        onic_layout_fini(&slice);
        pos += data;
        onic_cursor_init(&fresh, l, pos);
        UNIT_CHECK(memcmp(&c, &fresh, sizeof(c)) == 0);
    }
}

static void check_tree(tree_t *t)
{
    check_wire(&t->l, &t->ref);
    if (t->ref.n < 3000) {
        check_slices(&t->l, &t->ref, 1);
        for (uint64_t granule = 2; granule <= 16; granule++) {
            if (t->ref.n % granule == 0) {
                check_slices(&t->l, &t->ref, granule);
                break;
            }
        }
    }
    tree_free(t);
}

START_TEST(random_trees)
{
    check_random_trees(check_tree);
}
END_TEST

START_TEST(trees_deeper_than_the_levels)
{
    check_deep_trees(check_tree);
}
END_TEST

/** Slices of more than 4 GiB, from positions beyond that. */
START_TEST(slices_beyond_32_bits)
{
    const uint64_t rows = UINT64_C(1) << 31, piece = (UINT64_C(5) << 30) + 8;
    uint8_t buf[ONIC_LAYOUT_ENCODED_MAX];
    onic_layout_t l = contig(0, 8), slice;
    onic_cursor_t c;
    int64_t offset;
    uint64_t data, n;
    size_t len, used;

    repeat(&l, rows, 24);
    repeat(&l, 2, INT64_C(1) << 40);
    onic_cursor_init(&c, &l, 0);
    for (uint64_t pos = 0; pos < l.size; pos += data) {
        const uint64_t most = l.size - pos < piece ? l.size - pos : piece;

        UNIT_CHECK(onic_layout_encode_slice(&c, most, 8, buf, sizeof(buf), &len, &data) ==
                   ONIC_LAYOUT_OK);
        UNIT_CHECK(data == most && c.pos == pos + data);
        UNIT_CHECK(onic_layout_decode(&slice, buf, len, &used) == ONIC_LAYOUT_OK && used == len);
        UNIT_CHECK(slice.size == data);
        onic_cursor_t last;
        onic_cursor_init(&last, &slice, data - 8);
        UNIT_CHECK(onic_cursor_next(&last, 8, &offset, &n) && n == 8);
        const uint64_t block = (pos + data) / 8 - 1;
        UNIT_CHECK(offset ==
                   (int64_t)(block % rows * 24) + (int64_t)(block / rows) * (INT64_C(1) << 40));
        onic_layout_fini(&slice);
    }
}
END_TEST

/* ---- slices of special shapes --------------------------------------------------------------- */

/** A list that is regular, under levels: who flattens a type of more levels than a layout has makes
 *  such ones. The decoder must not find so many levels in the list that those above have no room.
 */
static void check_written_out(int levels)
{
    const onic_run_t row[] = {{0, 1, 2, 6}, {20, 1, 2, 6}, {40, 1, 2, 6}};
    tree_t t = tree_block(0, 1);
    onic_runs_t runs = {0};
    int64_t stride = 100;
    onic_layout_t l;

    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(onic_runs_add(&runs, row[i]), ONIC_LAYOUT_OK);
    ck_assert_int_eq(onic_layout_from_runs(&l, &runs, ONIC_LAYOUT_MAX_LEVELS), ONIC_LAYOUT_OK);
    ck_assert_uint_eq(l.nruns, 3);
    tree_repeat(&t, 2, 6);
    tree_repeat(&t, 3, 20);
    for (int i = 0; i < levels; i++, stride = 2 * stride + 7 + i) {
        tree_repeat(&t, 2, stride);
        repeat(&l, 2, stride);
    }
    check_wire(&l, &t.ref);
    for (int i = 0; i < 20; i++)
        check_slices(&l, &t.ref, 1);
    onic_layout_fini(&l);
    tree_free(&t);
}

START_TEST(levels_written_out)
{
    for (int levels = 1; levels <= ONIC_LAYOUT_MAX_LEVELS; levels++)
        check_written_out(levels);
}
END_TEST

/** MPI_SHORT_INT: two bytes, a gap, four bytes; elements of six must not be torn. */
START_TEST(slices_keep_elements_whole)
{
    tree_t t = tree_block(0, 2);
    tree_t second = tree_block(4, 4);
    onic_layout_t slice;
    onic_cursor_t c;
    uint8_t buf[64];
    uint64_t data;
    size_t len;

    tree_join(&t, &second, 0);
    tree_repeat(&t, 500, 8);
    /* Whole it is a repeated list: a few bytes for 500 elements. */
    ck_assert_int_eq(onic_layout_encode(&t.l, buf, sizeof(buf), &len), ONIC_LAYOUT_OK);
    ck_assert_uint_lt(len, 16);
    onic_cursor_init(&c, &t.l, 0);
    ck_assert_int_eq(onic_layout_encode_slice(&c, 16, 6, buf, sizeof(buf), &len, &data),
                     ONIC_LAYOUT_OK);
    ck_assert_uint_eq(data, 12);
    slice = decoded(buf, len);
    check_walk(&slice, &t.ref, 0, 0);
    onic_layout_fini(&slice);
    /* Not one element fits. */
    ck_assert_int_eq(onic_layout_encode_slice(&c, 5, 6, buf, sizeof(buf), &len, &data),
                     ONIC_LAYOUT_NO_SPACE);
    ck_assert_int_eq(onic_layout_encode_slice(&c, 100, 6, buf, 3, &len, &data),
                     ONIC_LAYOUT_NO_SPACE);
    ck_assert_uint_eq(c.pos, 12);
    for (int i = 0; i < 50; i++)
        check_slices(&t.l, &t.ref, 6);
    tree_free(&t);
}
END_TEST

START_TEST(largest_encoding_fits)
{
    onic_layout_t l = contig(INT64_MIN, 1);
    uint8_t buf[ONIC_LAYOUT_ENCODED_MAX];
    onic_layout_t back;
    size_t len;

    for (int i = 0; i < ONIC_LAYOUT_MAX_LEVELS; i++)
        repeat(&l, 127, INT64_MAX / 1024 - i * 1000);
    ck_assert_int_eq(onic_layout_encode(&l, buf, sizeof(buf), &len), ONIC_LAYOUT_OK);
    back = decoded(buf, len);
    ck_assert_mem_eq(&back, &l, sizeof(l));
}
END_TEST

/* ---- decoding what nobody sane has sent ----------------------------------------------------- */

#define REFUSED(...)                                                                               \
    do {                                                                                           \
        const uint8_t bytes[] = {__VA_ARGS__};                                                     \
        onic_layout_t got;                                                                         \
        size_t used;                                                                               \
                                                                                                   \
        ck_assert_int_eq(onic_layout_decode(&got, bytes, sizeof(bytes), &used),                    \
                         ONIC_LAYOUT_BAD_ENCODING);                                                \
    } while (0)

#define ACCEPTED(data_bytes, ...)                                                                  \
    do {                                                                                           \
        const uint8_t bytes[] = {__VA_ARGS__};                                                     \
        onic_layout_t got;                                                                         \
        size_t used;                                                                               \
                                                                                                   \
        ck_assert_int_eq(onic_layout_decode(&got, bytes, sizeof(bytes), &used), ONIC_LAYOUT_OK);   \
        ck_assert_uint_eq(used, sizeof(bytes));                                                    \
        ck_assert_uint_eq(got.size, data_bytes);                                                   \
        onic_layout_fini(&got);                                                                    \
    } while (0)

#define MAX_UNSIGNED 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01
#define MAX_SIGNED   0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01
#define MAX_SIZE     0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f

START_TEST(bad_stride_forms_are_refused)
{
    REFUSED(0x03);
    REFUSED(0x01, 0x00, 0x00);         /* a block of no bytes */
    REFUSED(0x01, 0x00, MAX_UNSIGNED); /* a block above INT64_MAX */
    REFUSED(0x01, MAX_SIGNED, 0x01);   /* an end above INT64_MAX */
    REFUSED(0x01, 0x00, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01);
    REFUSED(0x11, 0x00, 0x08, 0x00, 0x20);         /* a level of no passes */
    REFUSED(0x11, 0x00, 0x08, 0x01, 0x20);         /* of one pass */
    REFUSED(0x11, 0x00, 0x08, MAX_UNSIGNED, 0x00); /* a size that overflows */
    REFUSED(0x11, 0x00, 0x02, MAX_SIZE, 0x00);
    REFUSED(0x11, 0x00, 0x01, 0x03, MAX_SIGNED); /* an offset that overflows */
    REFUSED(0x91, 0x00, 0x01, 2, 6, 2, 20, 2, 60, 2, 0x80, 2, 2, 0x80, 4, 2, 0x80, 8, 2, 0x80, 16,
            2, 0x80, 32, 2, 0x80, 64); /* nine levels */
    ACCEPTED(0, 0x00);
    ACCEPTED(8, 0x01, 0x03, 0x08);
    ACCEPTED(24, 0x11, 0x00, 0x08, 0x03, 0x10); /* touching blocks are one */
    ACCEPTED(24, 0x11, 0x00, 0x08, 0x03, 0x20);
    ACCEPTED(INT64_MAX, 0x01, 0x00, MAX_SIZE);
    ACCEPTED(INT64_MAX, 0x11, 0x00, 0x01, MAX_SIZE, 0x00);
}
END_TEST

START_TEST(bad_list_forms_are_refused)
{
    REFUSED(0x02);
    REFUSED(0x02, 0x02, 0x00, 0x04);             /* no last run */
    REFUSED(0x02, 0x0b, 0x00);                   /* nothing to be the same as */
    REFUSED(0x02, 0x0a, 0x00, 0x00);             /* no bytes */
    REFUSED(0x02, 0x08, 0x00, 0x04, 0x00, 0x10); /* no blocks */
    REFUSED(0x02, 0x02, MAX_SIGNED, 0x04);
    REFUSED(0x02, 0x02, 0x00, 0x04, 0x0b, MAX_SIGNED);
    REFUSED(0x02, 0x02, 0x02, 0x04, 0x0b, MAX_SIGNED);
    REFUSED(0x12, 0x02, 0x00, 0x02, 0x0a, 0x08, 0x04, 0x01, 0x10); /* a level of one pass */
    ACCEPTED(4, 0x02, 0x0a, 0x00, 0x04);
    ACCEPTED(8, 0x02, 0x02, 0x00, 0x04, 0x0b, 0x20);
    ACCEPTED(12, 0x02, 0x08, 0x00, 0x04, 0x03, 0x20);
    ACCEPTED(24, 0x02, 0x00, 0x00, 0x04, 0x03, 0x20, 0x0d, 0x03);
    ACCEPTED(30, 0x12, 0x02, 0x00, 0x02, 0x0a, 0x08, 0x04, 0x05, 0x10);
}
END_TEST

int main(void)
{
    tree_seed();
    return UNIT_RUN("layout_wire", UNIT_ONCE(random_trees), UNIT_ONCE(trees_deeper_than_the_levels),
                    UNIT_ONCE(levels_written_out), UNIT_ONCE(slices_beyond_32_bits),
                    UNIT_ONCE(slices_keep_elements_whole), UNIT_ONCE(largest_encoding_fits),
                    UNIT_ONCE(bad_stride_forms_are_refused), UNIT_ONCE(bad_list_forms_are_refused));
}
