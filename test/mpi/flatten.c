/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1 */
/* internal */
/**
 * @file
 * Random datatypes, predefined ones, absolute addresses and deep nests: what onic_flatten,
 * onic_pack and onic_unpack make of them against MPI's definition of the types and Open MPI's
 * convertor.
 */
#include "common/ompi_compat.h"

#include "ompi/constants.h"
#include "ompi/datatype/ompi_datatype.h"

#include <inttypes.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "common/layout/flatten.h"
#include "common/layout/pack.h"
#include "test/mpi/random_type.h"
#include "test/mpi/testlib.h"
#include "test/mpi/typemap.h"

#define RANDOM_TYPES 6000
#define MARGIN       64

static MPI_Datatype committed(MPI_Datatype type)
{
    MPI_Type_commit(&type);
    return type;
}

/* ---- random types against their typemaps and the convertor ----------------------------------- */

/* One type, a count, memory that holds all that they name, and what packing makes of it. */
typedef struct sample {
    MPI_Datatype type;
    int count;
    typemap_t map;
    MPI_Aint lo, hi;
    size_t size;
    size_t span;           /* bytes of the memory, a margin on each side included */
    unsigned char *memory; /* random bytes */
    MPI_Aint base;         /* where in the memory the buffer address of MPI calls points */
    unsigned char *packed;
    uint64_t seed;
} sample_t;

static sample_t make_sample(tl_rng_t *r, MPI_Datatype type, int count, uint64_t seed)
{
    sample_t s = {.type = type, .count = count, .map = typemap_of(type), .seed = seed};

    typemap_span(&s.map, count, &s.lo, &s.hi);
    s.size = s.map.size * (size_t)count;
    s.span = (size_t)(s.hi - s.lo) + 2 * MARGIN;
    s.memory = tl_alloc(s.span);
    s.base = MARGIN - s.lo;
    s.packed = tl_alloc(s.size);
    tl_fill_random(s.memory, s.span, tl_random(r));
    typemap_pack(&s.map, count, s.memory + s.base, s.packed);
    return s;
}

static void free_sample(sample_t *s)
{
    free(s->memory);
    free(s->packed);
    typemap_free(&s->map);
}

static void check_bounds(const sample_t *s, const onic_layout_t *l)
{
    TL_CHECK(l->size == s->size, "seed %" PRIu64 ": size %" PRIu64 ", MPI's %zu", s->seed, l->size,
             s->size);
    TL_CHECK(l->lb == s->lo && l->ub == s->hi,
             "seed %" PRIu64 ": bounds %" PRId64 " %" PRId64 ", MPI's %td %td", s->seed, l->lb,
             l->ub, s->lo, s->hi);
}

static void check_pack(tl_rng_t *r, const sample_t *s, const onic_layout_t *l)
{
    unsigned char *ours = tl_alloc(s->size);
    bool whole = tl_one_in(r, 2);
    uint64_t done = 0;
    onic_cursor_t c;

    onic_cursor_init(&c, l, 0);
    while (done < s->size) {
        uint64_t want = whole ? s->size : (uint64_t)tl_range(r, 1, 200);
        uint64_t got = onic_pack(&c, s->memory + s->base, ours + done,
                                 want < s->size - done ? want : s->size - done);
        if (got == 0)
            break;
        done += got;
    }
    TL_CHECK(done == s->size && memcmp(ours, s->packed, s->size) == 0,
             "seed %" PRIu64 ": packed bytes differ from the typemap's", s->seed);
    free(ours);
}

static void check_unpack(const sample_t *s, const onic_layout_t *l)
{
    unsigned char *ours = tl_alloc(s->span), *theirs = tl_alloc(s->span);
    onic_cursor_t c;

    memset(ours, 0x5a, s->span);
    memset(theirs, 0x5a, s->span);
    onic_cursor_init(&c, l, 0);
    uint64_t got = onic_unpack(&c, ours + s->base, s->packed, s->size);
    typemap_unpack(&s->map, s->count, s->packed, theirs + s->base);
    TL_CHECK(got == s->size && memcmp(ours, theirs, s->span) == 0,
             "seed %" PRIu64 ": unpacked memory differs from the typemap's", s->seed);
    free(ours);
    free(theirs);
}

/* The pieces that the convertor walks are those of the cursor, in the same order. */
static void check_raw(const sample_t *s, const onic_layout_t *l)
{
    opal_convertor_t convertor;
    uint64_t left = 0;
    int64_t offset = 0;
    bool same = true, done;
    onic_cursor_t c;

    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &s->type->super,
                                             (size_t)s->count, s->memory + s->base, 0, &convertor);
    onic_cursor_init(&c, l, 0);
    do {
        struct iovec iov[8];
        uint32_t n = 8;
        size_t length;
        done = opal_convertor_raw(&convertor, iov, &n, &length) == 1;
        for (uint32_t i = 0; i < n && same; i++) {
            unsigned char *at = iov[i].iov_base;
            for (size_t rest = iov[i].iov_len; rest > 0 && same; at += left, rest -= left) {
                same = onic_cursor_next(&c, rest, &offset, &left) &&
                       s->memory + s->base + offset == at;
            }
        }
    } while (!done && same);
    TL_CHECK(same && c.pos == s->size, "seed %" PRIu64 ": pieces differ from the convertor's",
             s->seed);
    OBJ_DESTRUCT(&convertor);
}

/* Open MPI's plain description must read as its optimised one does. */
static void check_plain(tl_rng_t *r, const sample_t *s)
{
    ompi_datatype_t plain = *s->type;
    onic_layout_t l;

    plain.super.opt_desc.used = 0;
    plain.super.flags &= (uint16_t)~OPAL_DATATYPE_FLAG_CONTIGUOUS;
    int rc = onic_flatten(&plain, (size_t)s->count, &l, NULL);
    if (TL_CHECK(rc == OMPI_SUCCESS, "seed %" PRIu64 ": plain description: %d", s->seed, rc)) {
        check_bounds(s, &l);
        check_pack(r, s, &l);
        onic_layout_fini(&l);
    }
}

static void check_sample(tl_rng_t *r, const sample_t *s, bool overlap)
{
    onic_layout_t l;
    int rc = onic_flatten(s->type, (size_t)s->count, &l, NULL);

    if (!TL_CHECK(rc == OMPI_SUCCESS, "seed %" PRIu64 ": error %d", s->seed, rc))
        return;
    check_bounds(s, &l);
    check_pack(r, s, &l);
    check_raw(s, &l);
    if (!overlap)
        check_unpack(s, &l);
    onic_layout_fini(&l);
    check_plain(r, s);
}

static int random_count(tl_rng_t *r)
{
    static const int few[] = {0, 1, 1, 2, 3};

    return tl_one_in(r, 5) ? (int)tl_range(r, 4, 100) : few[tl_range(r, 0, 4)];
}

static void test_random_types(uint64_t seed)
{
    static const MPI_Datatype basics[] = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL, MPI_INT, MPI_DOUBLE,
                                          MPI_SHORT_INT};

    for (uint64_t i = 0; i < (tl_slow() ? RANDOM_TYPES / 8 : RANDOM_TYPES); i++) {
        tl_rng_t r;
        MPI_Aint lo, hi;
        r = tl_rng(seed + i, 0);
        unsigned flags = (unsigned)tl_range(&r, 0, 7);
        MPI_Datatype basic = basics[tl_range(&r, 0, 4)];
        MPI_Datatype type = random_type(&r, (int)(i % 6), flags, basic, &lo, &hi);
        sample_t s = make_sample(&r, type, random_count(&r), seed + i);
        bool overlap = random_type_overlaps(type, s.count);
        TL_CHECK(!overlap || !(flags & RANDOM_TYPE_NO_OVERLAP), "seed %" PRIu64 ": overlap",
                 s.seed);
        TL_CHECK(s.lo >= 0 || !(flags & RANDOM_TYPE_NOT_NEGATIVE), "seed %" PRIu64 ": lo %td",
                 s.seed, s.lo);
        TL_CHECK(lo != hi || !(flags & RANDOM_TYPE_NOT_EMPTY), "seed %" PRIu64 ": empty", s.seed);
        check_sample(&r, &s, overlap);
        free_sample(&s);
        MPI_Type_free(&type);
    }
}

/* ---- absolute addresses, predefined types, many levels --------------------------------------- */

static void test_absolute_addresses(tl_rng_t *r)
{
    unsigned char *heap = tl_alloc(1000), stack[300], ours[200], theirs[200];
    static unsigned char data[500];
    int lengths[] = {50, 100, 50}, position = 0;
    MPI_Aint where[3];
    onic_layout_t l;
    onic_cursor_t c;
    MPI_Datatype type;

    tl_fill_random(heap, 1000, tl_random(r));
    tl_fill_random(stack, sizeof(stack), tl_random(r));
    tl_fill_random(data, sizeof(data), tl_random(r));
    MPI_Get_address(heap + 7, &where[0]);
    MPI_Get_address(stack, &where[1]);
    MPI_Get_address(data + 3, &where[2]);
    MPI_Type_create_hindexed(3, lengths, where, MPI_BYTE, &type);
    type = committed(type);
    MPI_Pack(MPI_BOTTOM, 1, type, theirs, sizeof(theirs), &position, MPI_COMM_SELF);
    TL_CHECK(onic_flatten(type, 1, &l, NULL) == OMPI_SUCCESS, "absolute addresses");
    onic_cursor_init(&c, &l, 0);
    TL_CHECK(onic_pack(&c, MPI_BOTTOM, ours, sizeof(ours)) == sizeof(ours) &&
                 memcmp(ours, theirs, sizeof(ours)) == 0,
             "absolute addresses: packed bytes differ");
    onic_layout_fini(&l);
    MPI_Type_free(&type);
    free(heap);
}

static void test_predefined(tl_rng_t *r)
{
    static const MPI_Datatype types[] = {MPI_CHAR,
                                         MPI_INT,
                                         MPI_LONG_DOUBLE,
                                         MPI_C_LONG_DOUBLE_COMPLEX,
                                         MPI_BYTE,
                                         MPI_PACKED,
                                         MPI_FLOAT_INT,
                                         MPI_DOUBLE_INT,
                                         MPI_LONG_INT,
                                         MPI_2INT,
                                         MPI_SHORT_INT,
                                         MPI_COUNT,
                                         MPI_LONG_DOUBLE_INT,
                                         MPI_2DOUBLE_PRECISION,
                                         MPI_INTEGER};

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        for (int count = 0; count <= 3; count++) {
            sample_t s = make_sample(r, types[i], count, i);
            check_sample(r, &s, false);
            free_sample(&s);
        }
    }
}

/* `levels` vectors of two blocks, each more than twice as far apart as the one below is long. */
static MPI_Datatype tower(MPI_Datatype base, int levels)
{
    MPI_Datatype type, above;

    MPI_Type_dup(base, &type);
    for (int i = 0; i < levels; i++) {
        MPI_Aint lb, extent;
        MPI_Type_get_extent(type, &lb, &extent);
        MPI_Type_create_hvector(2 + i % 2, 1, 2 * extent + 4, type, &above);
        MPI_Type_free(&type);
        type = above;
    }
    return committed(type);
}

static void test_many_levels(tl_rng_t *r)
{
    int lengths[] = {1, 2, 1}, where[] = {0, 3, 9};
    MPI_Datatype irregular;

    MPI_Type_indexed(3, lengths, where, MPI_INT, &irregular);
    for (int levels = 6; levels <= 11; levels++) {
        MPI_Datatype types[] = {tower(MPI_INT, levels), tower(irregular, levels - 2)};
        for (int i = 0; i < 2; i++) {
            sample_t s = make_sample(r, types[i], 2, (uint64_t)levels);
            check_sample(r, &s, false);
            free_sample(&s);
            MPI_Type_free(&types[i]);
        }
    }
    MPI_Type_free(&irregular);
}

/* The layout of a long description is kept with its type, and its list has a number from the second
 * use on. Another type has its own, also in the same place, and so has a duplicate; what was got
 * outlives the type. */
static void test_kept(void)
{
    enum { ROWS = 40 };
    const MPI_Aint strides[] = {3, 3, 3, 5};
    onic_flattened_t f = {.keyval = MPI_KEYVAL_INVALID};
    MPI_Aint where[ROWS];
    uint64_t last = 0;

    OBJ_CONSTRUCT(&f.lock, opal_mutex_t);
    for (int i = 0; i < ROWS; i++)
        where[i] = 10 * i + i * i;
    for (int i = 0; i < 4; i++) {
        MPI_Datatype row, type, twin;
        onic_layout_t read, first, again, other;

        MPI_Type_create_hvector(2, 1, strides[i], MPI_BYTE, &row);
        MPI_Type_create_hindexed_block(ROWS, 1, where, row, &type);
        MPI_Type_commit(&type);
        MPI_Type_dup(type, &twin);
        TL_CHECK(onic_flatten(type, 1, &read, NULL) == OMPI_SUCCESS &&
                     onic_flatten(type, 1, &first, &f) == OMPI_SUCCESS && first.ub == read.ub &&
                     onic_layout_number(&first) == 0,
                 "a type of stride %d is taken for another", (int)strides[i]);
        TL_CHECK(onic_flatten(type, 1, &again, &f) == OMPI_SUCCESS && again.runs == first.runs &&
                     onic_layout_number(&again) > last,
                 "a type of stride %d is not known again", (int)strides[i]);
        last = onic_layout_number(&again);
        TL_CHECK(onic_flatten(twin, 1, &other, &f) == OMPI_SUCCESS && other.runs != first.runs &&
                     onic_layout_number(&other) == 0 && f.hits == (unsigned long long)i + 1,
                 "a duplicate has the layout of its type");
        MPI_Type_free(&type);
        MPI_Type_free(&twin);
        MPI_Type_free(&row);
        TL_CHECK(again.nruns == read.nruns &&
                     memcmp(again.runs, read.runs, read.nruns * sizeof(*read.runs)) == 0,
                 "a layout is gone with its type");
        onic_layout_fini(&read);
        onic_layout_fini(&first);
        onic_layout_fini(&again);
        onic_layout_fini(&other);
    }
    OBJ_DESTRUCT(&f.lock);
}

int main(int argc, char **argv)
{
    tl_rng_t r;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(1, 1);
    r = tl_rng(tl_seed(), 0);
    test_random_types(tl_seed());
    test_absolute_addresses(&r);
    test_predefined(&r);
    test_many_levels(&r);
    test_kept();
    return tl_finish();
}
