/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1 */
/* internal */
/**
 * @file
 * The layouts of chosen datatypes: how many levels and runs they take, types of more data than
 * there is memory, and types whose offsets or sizes do not fit.
 */
#include "common/ompi_compat.h"

#include "ompi/constants.h"

#include <inttypes.h>
#include <limits.h>
#include <mpi.h>
#include <stdlib.h>

#include "common/layout/flatten.h"
#include "test/mpi/random_type.h"
#include "test/mpi/testlib.h"

#define GIB ((uint64_t)1 << 30)

static MPI_Datatype committed(MPI_Datatype type)
{
    MPI_Type_commit(&type);
    return type;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static void check_shape(const char *name, MPI_Datatype type, size_t count, uint32_t levels,
                        uint32_t runs)
{
    onic_layout_t l;

    type = committed(type);
    if (TL_CHECK(onic_flatten(type, count, &l, NULL) == OMPI_SUCCESS, "%s", name)) {
        TL_CHECK(l.nlevels <= levels, "%s: %" PRIu32 " levels", name, l.nlevels);
        TL_CHECK(l.nruns <= runs && (runs == 0 || l.nruns > 0), "%s: %" PRIu32 " runs", name,
                 l.nruns);
        onic_layout_fini(&l);
    }
    MPI_Type_free(&type);
}

static void test_shapes(void)
{
    int size[] = {20, 30, 40}, part[] = {5, 6, 7}, start[] = {1, 2, 3}, two[] = {5, 2, 7};
    int even[] = {0, 4, 8, 12, 16}, odd[] = {0, 4, 9, 17, 16 + 15}, lengths[] = {1, 2, 1, 2, 1};
    MPI_Datatype t, column;

    MPI_Type_contiguous(100, MPI_DOUBLE, &t);
    check_shape("contiguous", t, 7, 0, 0);
    MPI_Type_vector(100, 1, 2, MPI_DOUBLE, &t);
    check_shape("vector", t, 1, 1, 0);
    MPI_Type_vector(100, 1, 2, MPI_DOUBLE, &t);
    check_shape("vectors", t, 9, 2, 0);
    MPI_Type_vector(100, 1, 1, MPI_DOUBLE, &t);
    check_shape("vector without gaps", t, 9, 0, 0);
    MPI_Type_create_subarray(3, size, part, start, MPI_ORDER_C, MPI_FLOAT, &t);
    check_shape("3-D subarray", t, 1, 2, 0);
    MPI_Type_create_subarray(3, size, part, start, MPI_ORDER_FORTRAN, MPI_FLOAT, &t);
    check_shape("3-D subarrays", t, 4, 3, 0);
    MPI_Type_create_subarray(3, size, two, start, MPI_ORDER_C, MPI_FLOAT, &t);
    check_shape("3-D subarray of 2", t, 1, 2, 0);
    MPI_Type_create_indexed_block(5, 2, even, MPI_INT, &t);
    check_shape("indexed with constant stride", t, 1, 1, 0);
    MPI_Type_vector(50, 1, 60, MPI_DOUBLE, &column);
    MPI_Type_create_resized(column, 0, sizeof(double), &t);
    MPI_Type_free(&column);
    check_shape("transpose", t, 60, 2, 0);
    MPI_Type_indexed(5, lengths, odd, MPI_INT, &t);
    check_shape("irregular", t, 1, 0, 5);
    MPI_Type_indexed(5, lengths, odd, MPI_INT, &t);
    check_shape("irregular, repeated", t, 1000, 1, 5);
    MPI_Type_contiguous(0, MPI_INT, &t);
    check_shape("empty", t, 3, 0, 0);
}

/* ---- more data than memory ------------------------------------------------------------------- */

/* What a huge type is known to be: nested strides, the innermost first, of doubles or of three
 * of them that lie at offsets of their own. */
typedef struct known {
    int64_t start;
    const int64_t *three;
    int levels;
    onic_stride_t level[4];
} known_t;

static int64_t known_offset(const known_t *k, uint64_t element)
{
    int64_t offset = k->start;

    if (k->three != NULL) {
        offset += k->three[element % 3];
        element /= 3;
    }
    for (int i = 0; i < k->levels; i++) {
        offset += (int64_t)(element % k->level[i].count) * k->level[i].stride;
        element /= k->level[i].count;
    }
    return offset;
}

/* Compares bounds and, at random places, positions. Frees the type. */
static void check_huge(tl_rng_t *r, const char *name, MPI_Datatype type, size_t count,
                       const known_t *k)
{
    MPI_Count size, lb, extent, true_lb, true_extent;
    onic_layout_t l;

    type = committed(type);
    MPI_Type_size_x(type, &size);
    MPI_Type_get_extent_x(type, &lb, &extent);
    MPI_Type_get_true_extent_x(type, &true_lb, &true_extent);
    if (TL_CHECK(onic_flatten(type, count, &l, NULL) == OMPI_SUCCESS, "%s", name)) {
        TL_CHECK(l.size == (uint64_t)size * count && l.size > 2 * GIB, "%s: size %" PRIu64, name,
                 l.size);
        TL_CHECK(l.lb == true_lb && l.ub == true_lb + true_extent + extent * (MPI_Count)(count - 1),
                 "%s: bounds %" PRId64 " %" PRId64, name, l.lb, l.ub);
        for (int i = 0; i < 200; i++) {
            uint64_t len, element = (uint64_t)tl_range(r, 0, (int64_t)l.size / 8 - 1);
            int64_t ours = 0, want = known_offset(k, element);
            onic_cursor_t c;
            onic_cursor_init(&c, &l, 8 * element);
            bool some = onic_cursor_next(&c, 1, &ours, &len);
            TL_CHECK(some && ours == want, "%s: element %" PRIu64 " at %" PRId64 " not %" PRId64,
                     name, element, ours, want);
        }
        onic_layout_fini(&l);
    }
    MPI_Type_free(&type);
}

static void test_huge(tl_rng_t *r)
{
    int size[] = {1500, 2000, 1000}, part[] = {300, 1999, 500}, start[] = {1, 1, 2};
    int where[] = {0, 30, 50};
    const int64_t three[] = {0, 240, 400};
    MPI_Datatype t, inner;

    MPI_Type_dup(MPI_DOUBLE, &t);
    check_huge(r, "4 GiB of doubles", t, GIB / 2, &(known_t){0, NULL, 1, {{GIB, 8}}});
    MPI_Type_vector(1 << 20, 1 << 10, 1 << 11, MPI_DOUBLE, &t);
    check_huge(r, "8 GiB vector", t, 1, &(known_t){0, NULL, 2, {{1 << 10, 8}, {1 << 20, 1 << 14}}});
    MPI_Type_vector(1 << 20, 1, 3, MPI_DOUBLE, &t);
    check_huge(r, "vectors of 8 MiB", t, 400,
               &(known_t){0, NULL, 2, {{1 << 20, 24}, {400, 24 * (1 << 20) - 16}}});
    MPI_Type_create_subarray(3, size, part, start, MPI_ORDER_C, MPI_DOUBLE, &t);
    check_huge(r, "subarrays of 2 GiB", t, 3,
               &(known_t){8 * (2000000 + 1000 + 2),
                          NULL,
                          4,
                          {{500, 8}, {1999, 8000}, {300, 16000000}, {3, INT64_C(24000000000)}}});
    MPI_Type_create_indexed_block(3, 1, where, MPI_DOUBLE, &inner);
    MPI_Type_create_hvector(1 << 24, 1, 1000, inner, &t);
    check_huge(
        r, "irregular, repeated", t, 8,
        &(known_t){0, three, 2, {{1 << 24, 1000}, {8, ((1 << 24) - 1) * INT64_C(1000) + 408}}});
    MPI_Type_free(&inner);
    /* Open MPI merges the three into one element, whose 32-bit count then overflows. */
    const int most = INT_MAX;
    MPI_Aint follow[] = {0, INT64_C(16) * most, INT64_C(32) * most};
    MPI_Type_vector(most, 1, 2, MPI_DOUBLE, &inner);
    MPI_Type_create_hindexed_block(3, 1, follow, inner, &t);
    check_huge(r, "three that continue each other", t, 1,
               &(known_t){0, NULL, 1, {{UINT64_C(3) * INT_MAX, 16}}});
    MPI_Type_free(&inner);
}

/* An empty member widens a structure: copies are as far apart as the extent says, though MPI_Pack
 * of Open MPI 4.1 takes them to touch. */
static void test_empty_member(void)
{
    int lengths[] = {1, 1};
    MPI_Aint where[] = {16, 0}, lb, extent;
    MPI_Datatype empty, types[2], t;
    onic_layout_t l;

    MPI_Type_contiguous(0, MPI_INT, &empty);
    types[0] = MPI_DOUBLE;
    types[1] = empty;
    MPI_Type_create_struct(2, lengths, where, types, &t);
    t = committed(t);
    MPI_Type_get_extent(t, &lb, &extent);
    TL_CHECK(onic_flatten(t, 3, &l, NULL) == OMPI_SUCCESS && l.size == 24 && l.lb == 16 &&
                 l.ub == 24 + 2 * extent,
             "empty member: bounds %" PRId64 " %" PRId64, l.lb, l.ub);
    MPI_Type_free(&t);
    MPI_Type_free(&empty);
}

static void check_refused(const char *name, MPI_Datatype type, size_t count)
{
    onic_layout_t l;
    int rc;

    type = committed(type);
    rc = onic_flatten(type, count, &l, NULL);
    TL_CHECK(rc == OMPI_ERR_VALUE_OUT_OF_BOUNDS, "%s: %d", name, rc);
    MPI_Type_free(&type);
}

static void test_overflow(void)
{
    int where[] = {0, 4, 9};
    MPI_Datatype t, wide, more;

    MPI_Type_create_resized(MPI_INT, 0, INT64_C(1) << 40, &t);
    check_refused("offsets beyond 64 bits", t, (size_t)1 << 24);
    MPI_Type_vector(1 << 30, 1, 2, MPI_LONG_DOUBLE, &t);
    check_refused("size beyond 64 bits", t, (size_t)1 << 40);
    /* Open MPI counts the blocks of an element with 32 bits and loses this count. */
    MPI_Type_create_resized(MPI_SHORT, 0, 4, &t);
    MPI_Type_vector(1 << 16, 1 << 16, 1 << 16, t, &wide);
    MPI_Type_free(&t);
    check_refused("more blocks than Open MPI can count", wide, 1);
    /* Nested more deeply than any type whose size fits. */
    MPI_Type_create_indexed_block(3, 1, where, MPI_INT, &t);
    for (int i = 0; i < 80; i++) {
        MPI_Type_create_hvector(3, 1, 0, t, &more);
        MPI_Type_free(&t);
        t = more;
    }
    check_refused("80 loops", t, 1);
}

int main(int argc, char **argv)
{
    tl_rng_t r;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(1, 1);
    r = tl_rng(tl_seed(), 0);
    test_shapes();
    test_empty_member();
    test_huge(&r);
    test_overflow();
    return tl_finish();
}
