/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/mpi/transfer.h"

#include <stdlib.h>

#include "test/mpi/random_type.h"

tr_side_t tr_place(MPI_Datatype type, int count)
{
    tr_side_t side = {.type = type, .count = count, .map = typemap_of(type)};
    MPI_Aint low, high;

    typemap_span(&side.map, count, &low, &high);
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

tr_side_t tr_shape(tl_rng_t *rng, tr_element_t element, int n, unsigned flags)
{
    /* REACH: of repeated trees. */
    enum { DEPTH = 4, REACH = 64 << 10 };
    const unsigned wanted =
        RANDOM_TYPE_NOT_EMPTY | (flags & TR_OVERLAP ? 0 : RANDOM_TYPE_NO_OVERLAP);
    MPI_Datatype one = make_element(element, flags & TR_ORIGIN), tree, type;
    MPI_Aint lb, extent, lo, hi;
    int bytes, each;

    MPI_Type_commit(&one);
    if (n == 0)
        return tr_place(one, 0);
    MPI_Type_get_extent(one, &lb, &extent);
    MPI_Type_size(one, &each);
    for (int depth = (int)tl_range(rng, 0, DEPTH);; depth--) {
        tree = random_type(rng, depth, wanted, one, &lo, &hi);
        MPI_Type_size(tree, &bytes);
        if (bytes / each <= n)
            break;
        MPI_Type_free(&tree);
    }
    MPI_Type_get_extent(tree, &lb, &lo);
    const MPI_Aint room = 1 + (lo == 0 ? n : REACH / labs(lo)), most = n / (bytes / each);
    const int trees = (int)(most < room ? most : room), rest = n - trees * (bytes / each);

    if (rest == 0) {
        MPI_Type_free(&one);
        return tr_place(tree, trees);
    }
    /* What is left lies behind. */
    random_type_span(tree, trees, &lo, &hi);
    const int counts[] = {trees, rest};
    const MPI_Aint places[] = {0, (hi + extent - 1) / extent * extent};
    const MPI_Datatype parts[] = {tree, one};
    MPI_Type_create_struct(2, counts, places, parts, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&tree);
    MPI_Type_free(&one);
    return tr_place(type, 1);
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

MPI_Datatype tr_at_address(const tr_side_t *side, MPI_Aint address)
{
    MPI_Datatype type;

    MPI_Type_create_struct(1, &side->count, &address, &side->type, &type);
    MPI_Type_commit(&type);
    return type;
}

void tr_free(tr_side_t *side)
{
    MPI_Type_free(&side->type);
    typemap_free(&side->map);
}

void tr_copy(const tr_side_t *from, const void *src, const tr_side_t *to, void *dst)
{
    const unsigned char *s = (const unsigned char *)src + from->start;
    unsigned char *d = (unsigned char *)dst + to->start;
    const size_t size = from->map.size * (size_t)from->count;
    const size_t room = to->map.size * (size_t)to->count;

    TL_CHECK(size <= room, "%zu bytes and room for %zu", size, room);
    void *buffer = tl_alloc(room);
    /* What is not written stays. */
    typemap_pack(&to->map, to->count, d, buffer);
    typemap_pack(&from->map, from->count, s, buffer);
    typemap_unpack(&to->map, to->count, buffer, d);
    free(buffer);
}
