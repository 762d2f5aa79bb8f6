/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/mpi/transfer.h"

#include <stdlib.h>

#include "test/mpi/typemap.h"

#define MAX_BLOCKS 16

tr_side_t tr_place(MPI_Datatype type, int count)
{
    tr_side_t side = {.type = type, .count = count};
    typemap_t map = typemap_of(type);
    MPI_Aint low, high;

    typemap_span(&map, count, &low, &high);
    typemap_free(&map);
    side.start = low < 0 ? (-low + TR_ALIGN - 1) / TR_ALIGN * TR_ALIGN : 0;
    side.span = side.start + high;
    return side;
}

/** char, double, int in this order; the gaps between them depend on the side. */
static MPI_Datatype make_record(bool origin)
{
    static const MPI_Aint places[2][3] = {{0, 8, 16}, {4, 16, 32}};
    MPI_Datatype types[] = {MPI_CHAR, MPI_DOUBLE, MPI_INT}, record, resized;
    int lengths[] = {1, 1, 1};

    MPI_Type_create_struct(3, lengths, places[origin], types, &record);
    MPI_Type_create_resized(record, 0, origin ? 40 : 24, &resized);
    MPI_Type_free(&record);
    return resized;
}

MPI_Datatype tr_basic(tr_element_t element)
{
    const MPI_Datatype basic[TR_ELEMENTS] = {
        MPI_BYTE,      MPI_SHORT,      MPI_INT,          MPI_DOUBLE, MPI_C_DOUBLE_COMPLEX,
        MPI_SHORT_INT, MPI_DOUBLE_INT, MPI_DATATYPE_NULL};

    return basic[element];
}

/** Always a type of its own, so that the caller may free it. */
static MPI_Datatype make_element(tr_element_t element, bool origin)
{
    MPI_Datatype type;

    if (element == TR_RECORD)
        return make_record(origin);
    MPI_Type_dup(tr_basic(element), &type);
    return type;
}

static int divisor(tl_rng_t *rng, int n)
{
    int found = 1;
    int64_t seen = 0;

    for (int d = 1; d <= n && d <= 64; d++)
        if (n % d == 0 && tl_range(rng, 0, seen++) == 0)
            found = d;
    return tl_range(rng, 0, 1) ? found : n / found;
}

/** Replaces *type by what was made of it. */
static void become(MPI_Datatype *type, MPI_Datatype made)
{
    MPI_Type_free(type);
    *type = made;
}

static MPI_Aint extent_of(MPI_Datatype type)
{
    MPI_Aint lb, extent;

    MPI_Type_get_extent(type, &lb, &extent);
    return extent;
}

static MPI_Datatype make_vector(tl_rng_t *rng, MPI_Datatype element, int n)
{
    int block = divisor(rng, n);
    int stride = block + (int)tl_range(rng, 0, block > 64 ? 64 : block);
    bool down = tl_range(rng, 0, 3) == 0;
    MPI_Datatype type;

    /* Open MPI takes a stride of -1 byte for none. */
    down = down && stride * extent_of(element) != 1;
    MPI_Type_vector(n / block, block, down ? -stride : stride, element, &type);
    return type;
}

static MPI_Datatype make_hvector(tl_rng_t *rng, MPI_Datatype element, int n, bool overlap)
{
    int block = divisor(rng, n);
    MPI_Aint least = block * extent_of(element);
    MPI_Aint stride = least + 8 * (MPI_Aint)tl_range(rng, 0, 5);
    MPI_Datatype type;

    if (overlap && tl_range(rng, 0, 1))
        stride = least / 2 / 8 * 8;
    MPI_Type_create_hvector(n / block, block, stride, element, &type);
    return type;
}

/** Blocks of different lengths, in ascending or descending order, with gaps of whole elements. */
static MPI_Datatype make_indexed(tl_rng_t *rng, MPI_Datatype element, int n)
{
    int lengths[MAX_BLOCKS], places[MAX_BLOCKS], blocks = 0, at = 0;
    bool descending = tl_range(rng, 0, 2) == 0;
    MPI_Datatype type;

    while (n > 0) {
        int length = blocks == MAX_BLOCKS - 1 ? n : (int)tl_range(rng, 0, n < 40 ? n : 40);

        lengths[blocks] = length;
        at += (int)tl_range(rng, 0, 3);
        places[blocks++] = descending ? -at - length : at;
        at += length;
        n -= length;
    }
    MPI_Type_indexed(blocks, lengths, places, element, &type);
    return type;
}

static MPI_Datatype make_hindexed(tl_rng_t *rng, MPI_Datatype element, int n)
{
    MPI_Aint extent = extent_of(element);
    int first = (int)tl_range(rng, 0, n);
    int lengths[] = {first, n - first};
    MPI_Aint places[] = {(MPI_Aint)(n - first) * extent + 48, 16};
    MPI_Datatype type;

    MPI_Type_create_hindexed(2, lengths, places, element, &type);
    return type;
}

/** A box inside a larger array of two or three dimensions. */
static MPI_Datatype make_subarray(tl_rng_t *rng, MPI_Datatype element, int n)
{
    int a = divisor(rng, n), b = divisor(rng, n / a);
    int subsizes[] = {n / a / b, b, a}, sizes[3], starts[3];
    bool fortran = tl_range(rng, 0, 1);
    MPI_Datatype type;

    for (int i = 0; i < 3; i++) {
        starts[i] = (int)tl_range(rng, 0, 2);
        sizes[i] = starts[i] + subsizes[i] + (int)tl_range(rng, 0, 1);
    }
    MPI_Type_create_subarray(3, sizes, subsizes, starts, fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C,
                             element, &type);
    return type;
}

/** Vectors of vectors: three levels of strides. */
static MPI_Datatype make_nested(tl_rng_t *rng, MPI_Datatype element, int n)
{
    int outer = divisor(rng, n), inner = divisor(rng, n / outer);
    MPI_Datatype line = make_vector(rng, element, n / outer / inner), plane, type;
    MPI_Aint lb, extent;

    MPI_Type_get_true_extent(line, &lb, &extent);
    extent = (extent + TR_ALIGN - 1) / TR_ALIGN * TR_ALIGN;
    MPI_Type_create_hvector(inner, 1, extent + 16, line, &plane);
    MPI_Type_create_hvector(outer, 1, inner * (extent + 16) + 32, plane, &type);
    MPI_Type_free(&line);
    MPI_Type_free(&plane);
    return type;
}

/** A struct of a plain run and a vector, with a lower bound below its data. */
static MPI_Datatype make_struct(tl_rng_t *rng, MPI_Datatype element, int n)
{
    int first = (int)tl_range(rng, 0, n);
    MPI_Datatype parts[] = {element, MPI_DATATYPE_NULL}, made, type;
    int lengths[] = {first, n > first ? 1 : 0};
    MPI_Aint places[] = {0, 0}, lb, extent;

    parts[1] = make_vector(rng, element, n > first ? n - first : 1);
    MPI_Type_get_true_extent(parts[1], &lb, &extent);
    places[1] = ((first + 1) * extent_of(element) - lb + TR_ALIGN) / TR_ALIGN * TR_ALIGN;
    MPI_Type_create_struct(2, lengths, places, parts, &made);
    MPI_Type_get_true_extent(made, &lb, &extent);
    MPI_Type_create_resized(made, lb - 16, (extent + 2 * TR_ALIGN) / TR_ALIGN * TR_ALIGN, &type);
    MPI_Type_free(&made);
    MPI_Type_free(&parts[1]);
    return type;
}

/** One element with room after it: the stride comes from the count alone. */
static MPI_Datatype make_padded(tl_rng_t *rng, MPI_Datatype element, int n)
{
    MPI_Datatype run, type;
    MPI_Aint extent;

    MPI_Type_contiguous(n, element, &run);
    extent = n * extent_of(element) + 8 * (MPI_Aint)tl_range(rng, 0, 4);
    MPI_Type_create_resized(run, 0, extent, &type);
    MPI_Type_free(&run);
    return type;
}

static MPI_Datatype make_one(tl_rng_t *rng, MPI_Datatype element, int n, bool overlap)
{
    switch (tl_range(rng, 0, 7)) {
    case 0:
        return make_vector(rng, element, n);
    case 1:
        return make_hvector(rng, element, n, overlap);
    case 2:
        return make_indexed(rng, element, n);
    case 3:
        return make_hindexed(rng, element, n);
    case 4:
        return make_subarray(rng, element, n);
    case 5:
        return make_nested(rng, element, n);
    case 6:
        return make_struct(rng, element, n);
    default:
        return make_padded(rng, element, n);
    }
}

/**
 * With a count above 1 copies follow one another by the extent. Types whose data reach beyond
 * their bounds would then overlap themselves, so the extent is made to cover them.
 */
static void make_repeatable(MPI_Datatype *type)
{
    MPI_Aint lb, extent, true_lb, true_extent;
    MPI_Datatype made;

    MPI_Type_get_extent(*type, &lb, &extent);
    MPI_Type_get_true_extent(*type, &true_lb, &true_extent);
    if (extent < true_extent) {
        extent = (true_extent + TR_ALIGN - 1) / TR_ALIGN * TR_ALIGN;
        MPI_Type_create_resized(*type, lb, extent, &made);
        become(type, made);
    }
}

tr_side_t tr_shape(tl_rng_t *rng, tr_element_t element, int n, unsigned flags)
{
    MPI_Datatype type = make_element(element, flags & TR_ORIGIN);
    int count = n;

    if (n > 0 && tl_range(rng, 0, 5) > 0) {
        count = tl_range(rng, 0, 1) ? 1 : divisor(rng, n);
        become(&type, make_one(rng, type, n / count, flags & TR_OVERLAP));
        make_repeatable(&type);
    }
    MPI_Type_commit(&type);
    return tr_place(type, count);
}

tr_side_t tr_strided(MPI_Aint bytes, MPI_Aint block, MPI_Aint stride)
{
    MPI_Datatype type;

    if (block == stride) {
        MPI_Type_dup(MPI_BYTE, &type);
        return tr_place(type, (int)bytes);
    }
    MPI_Type_create_hvector((int)(bytes / block), (int)block, stride, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    return tr_place(type, 1);
}

tr_side_t tr_plain(MPI_Datatype basic, int n)
{
    MPI_Datatype type;

    MPI_Type_dup(basic, &type);
    return tr_place(type, n);
}

void tr_free(tr_side_t *side)
{
    MPI_Type_free(&side->type);
}

void tr_copy(const tr_side_t *from, const void *src, const tr_side_t *to, void *dst)
{
    const unsigned char *s = (const unsigned char *)src + from->start;
    unsigned char *d = (unsigned char *)dst + to->start;
    typemap_t source = typemap_of(from->type), target = typemap_of(to->type);
    const size_t size = source.size * (size_t)from->count;
    const size_t room = target.size * (size_t)to->count;

    TL_CHECK(size <= room, "%zu bytes and room for %zu", size, room);
    void *buffer = tl_alloc(room);
    /* What is not written stays. */
    typemap_pack(&target, to->count, d, buffer);
    typemap_pack(&source, from->count, s, buffer);
    typemap_unpack(&target, to->count, buffer, d);
    free(buffer);
    typemap_free(&source);
    typemap_free(&target);
}
