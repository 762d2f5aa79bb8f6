/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/mpi/random_type.h"

#include <stdlib.h>
#include <string.h>

#include "test/mpi/typemap.h"

#define MAX_PARTS 6
#define MAX_DIMS  3

/* What a tree of types is made of and how its displacements may be chosen. */
typedef struct maker {
    tl_rng_t *r;
    MPI_Datatype basic; /* MPI_DATATYPE_NULL: any */
    MPI_Aint unit;      /* displacements are multiples of it */
    bool overlap;       /* elements may share bytes */
} maker_t;

/* What the constructors must know of the type that they repeat. */
typedef struct shape {
    MPI_Aint lo;
    MPI_Aint hi;
    MPI_Aint extent;
} shape_t;

/* Blocks that a constructor is given: so many elements of a type, so far from the start. */
typedef struct blocks {
    int n;
    int len[MAX_PARTS];
    MPI_Aint disp[MAX_PARTS];
    MPI_Datatype type[MAX_PARTS];
    shape_t shape[MAX_PARTS];
} blocks_t;

static MPI_Datatype make(const maker_t *m, int depth);

/* ---- choices -------------------------------------------------------------------------------- */

static int number(const maker_t *m, int lo, int hi)
{
    return (int)tl_range(m->r, lo, hi);
}

/* How often something repeats: mostly a few times, seldom never or often. */
static int repetitions(const maker_t *m)
{
    switch (number(m, 0, 15)) {
    case 0:
        return 0;
    case 1:
        return number(m, 5, 40);
    default:
        return number(m, 1, 4);
    }
}

static MPI_Aint units(const maker_t *m, MPI_Aint most)
{
    return m->unit * (MPI_Aint)tl_range(m->r, 0, most / m->unit);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static shape_t shape_of(MPI_Datatype type)
{
    shape_t s;
    MPI_Aint lb;

    random_type_span(type, 1, &s.lo, &s.hi);
    MPI_Type_get_extent(type, &lb, &s.extent);
    return s;
}

/* The bytes of a block of elements in a row, relative to the first one's address. */
static void block_span(const shape_t *s, int blocklen, MPI_Aint *lo, MPI_Aint *hi)
{
    MPI_Aint last = blocklen > 0 ? (blocklen - 1) * s->extent : 0;

    *lo = s->lo + (last < 0 ? last : 0);
    *hi = s->hi + (last > 0 ? last : 0);
}

static bool in_reach(MPI_Aint a)
{
    return a >= -RANDOM_TYPE_REACH && a <= RANDOM_TYPE_REACH;
}

static bool fits(MPI_Datatype type)
{
    MPI_Count size;
    MPI_Aint lb;
    shape_t s = shape_of(type);

    MPI_Type_size_x(type, &size);
    MPI_Type_get_extent(type, &lb, &s.extent);
    return size <= RANDOM_TYPE_MAX_SIZE && in_reach(s.lo) && in_reach(s.hi) && in_reach(lb) &&
           in_reach(s.extent) && in_reach(lb + s.extent);
}

static MPI_Datatype resized(MPI_Datatype type, MPI_Aint lb, MPI_Aint extent)
{
    MPI_Datatype wide;

    MPI_Type_create_resized(type, lb, extent, &wide);
    MPI_Type_free(&type);
    return wide;
}

/* Every type that is built upon must repeat at its own extent without overlap. */
static MPI_Datatype without_overlap(const maker_t *m, MPI_Datatype type)
{
    shape_t s = shape_of(type);

    if (m->overlap || labs(s.extent) >= s.hi - s.lo)
        return type;
    return resized(type, s.lo, s.hi - s.lo + units(m, 4 * m->unit));
}

/* ---- constructors: each makes a type from a child and leaves it alone ------------------------ */

static MPI_Datatype make_basic(const maker_t *m)
{
    static const MPI_Datatype all[] = {
        MPI_CHAR,           MPI_SHORT,       MPI_INT,      MPI_LONG,      MPI_FLOAT,
        MPI_DOUBLE,         MPI_LONG_DOUBLE, MPI_C_BOOL,   MPI_BYTE,      MPI_WCHAR,
        MPI_AINT,           MPI_INT16_T,     MPI_UINT64_T, MPI_C_COMPLEX, MPI_C_DOUBLE_COMPLEX,
        MPI_FLOAT_INT,      MPI_DOUBLE_INT,  MPI_LONG_INT, MPI_SHORT_INT, MPI_2INT,
        MPI_LONG_DOUBLE_INT};
    MPI_Datatype type;

    if (m->basic != MPI_DATATYPE_NULL)
        MPI_Type_dup(m->basic, &type);
    else
        MPI_Type_dup(all[number(m, 0, (int)(sizeof(all) / sizeof(all[0])) - 1)], &type);
    return type;
}

static MPI_Datatype make_contiguous(const maker_t *m, MPI_Datatype child)
{
    MPI_Datatype type;

    MPI_Type_contiguous(repetitions(m), child, &type);
    return type;
}

/* Sometimes downwards, but never by one byte: Open MPI takes a stride of -1 byte for none, and all
 * that it makes of such a type goes up. `unit` is of the stride, in bytes. */
static MPI_Aint either_way(const maker_t *m, MPI_Aint stride, MPI_Aint unit)
{
    MPI_Aint way = tl_one_in(m->r, 4) ? -stride : stride;

    return way * unit == -1 ? -way : way;
}

static MPI_Datatype make_vector(const maker_t *m, MPI_Datatype child)
{
    shape_t s = shape_of(child);
    int blocklen = repetitions(m);
    int stride = m->overlap ? number(m, 0, 2 * blocklen) : blocklen + number(m, 0, 3);
    MPI_Datatype type;

    MPI_Type_vector(repetitions(m), blocklen, (int)either_way(m, stride, s.extent), child, &type);
    return type;
}

static MPI_Datatype make_hvector(const maker_t *m, MPI_Datatype child)
{
    int blocklen = repetitions(m);
    MPI_Aint lo, hi;
    shape_t s = shape_of(child);

    block_span(&s, blocklen, &lo, &hi);
    MPI_Aint stride = m->overlap ? units(m, 2 * (hi - lo)) : hi - lo + units(m, 8 * m->unit);
    MPI_Datatype type;
    MPI_Type_create_hvector(repetitions(m), blocklen, either_way(m, stride, 1), child, &type);
    return type;
}

static blocks_t choose_blocks(const maker_t *m, bool same, MPI_Datatype child)
{
    blocks_t b = {.n = number(m, 1, MAX_PARTS)};

    for (int i = 0; i < b.n; i++) {
        b.len[i] = same && i > 0 ? b.len[0] : repetitions(m);
        b.type[i] = child;
        b.shape[i] = shape_of(child);
    }
    return b;
}

static void swap_blocks(blocks_t *b, int i, int j)
{
    const blocks_t old = *b;

    b->len[i] = old.len[j];
    b->len[j] = old.len[i];
    b->disp[i] = old.disp[j];
    b->disp[j] = old.disp[i];
    b->type[i] = old.type[j];
    b->type[j] = old.type[i];
}

/* Chooses where the blocks lie: side by side with gaps, sometimes at a constant distance, from a
 * start of either sign, in any order. */
static void place_blocks(const maker_t *m, blocks_t *b)
{
    MPI_Aint next = units(m, 64) - units(m, 64);
    bool even = tl_one_in(m->r, 3);

    for (int i = 0; i < b->n; i++) {
        MPI_Aint lo, hi;
        block_span(&b->shape[i], b->len[i], &lo, &hi);
        MPI_Aint gap = even || tl_one_in(m->r, 3) ? 0 : units(m, 8 * m->unit);
        b->disp[i] = next - lo + gap;
        next += hi - lo + gap;
        if (m->overlap && tl_one_in(m->r, 3))
            next -= units(m, hi - lo);
    }
    if (tl_one_in(m->r, 2))
        for (int i = b->n - 1; i > 0; i--)
            swap_blocks(b, i, number(m, 0, i));
}

/* Blocks whose displacements count in bytes, or in elements of the child. */
static MPI_Datatype make_list(const maker_t *m, MPI_Datatype child, bool in_bytes)
{
    const maker_t counting = {m->r, m->basic, in_bytes ? m->unit : 1, m->overlap};
    bool same = tl_one_in(m->r, 2);
    blocks_t b = choose_blocks(m, same, child);
    int index[MAX_PARTS];
    MPI_Datatype type;

    for (int i = 0; i < b.n && !in_bytes; i++)
        b.shape[i] = (shape_t){0, 1, 1};
    place_blocks(&counting, &b);
    for (int i = 0; i < b.n; i++)
        index[i] = (int)b.disp[i];
    if (in_bytes && same)
        MPI_Type_create_hindexed_block(b.n, b.len[0], b.disp, child, &type);
    else if (in_bytes)
        MPI_Type_create_hindexed(b.n, b.len, b.disp, child, &type);
    else if (same)
        MPI_Type_create_indexed_block(b.n, b.len[0], index, child, &type);
    else
        MPI_Type_indexed(b.n, b.len, index, child, &type);
    return type;
}

static bool is_empty(MPI_Datatype type)
{
    int size;

    MPI_Type_size(type, &size);
    return size == 0;
}

/* A structure of the child and of others. Open MPI 4.1 takes a contiguous member that an empty one
 * widens for contiguous still, and packs several wrongly: empty members come in blocks of none. */
static MPI_Datatype make_struct(const maker_t *m, MPI_Datatype child, int depth)
{
    blocks_t b = choose_blocks(m, false, child);
    MPI_Datatype type;

    for (int i = 0; i < b.n; i++) {
        if (i == 0 || tl_one_in(m->r, 2)) {
            MPI_Type_dup(child, &b.type[i]);
        } else {
            b.type[i] = make(m, number(m, 0, depth > 2 ? 1 : depth));
            b.shape[i] = shape_of(b.type[i]);
        }
        if (is_empty(b.type[i]))
            b.len[i] = 0;
    }
    place_blocks(m, &b);
    MPI_Type_create_struct(b.n, b.len, b.disp, b.type, &type);
    for (int i = 0; i < b.n; i++)
        MPI_Type_free(&b.type[i]);
    return type;
}

static MPI_Datatype make_subarray(const maker_t *m, MPI_Datatype child)
{
    int n = number(m, 1, MAX_DIMS);
    int size[MAX_DIMS], part[MAX_DIMS], start[MAX_DIMS];
    MPI_Datatype type;

    for (int i = 0; i < n; i++) {
        size[i] = number(m, 1, 6);
        part[i] = number(m, 1, size[i]);
        start[i] = number(m, 0, size[i] - part[i]);
    }
    MPI_Type_create_subarray(n, size, part, start,
                             tl_one_in(m->r, 2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, child, &type);
    return type;
}

static MPI_Datatype make_darray(const maker_t *m, MPI_Datatype child)
{
    int n = number(m, 1, MAX_DIMS);
    int size[MAX_DIMS], how[MAX_DIMS], arg[MAX_DIMS], procs[MAX_DIMS];
    int all = 1;
    MPI_Datatype type, plain;

    if (is_empty(child))
        return make_subarray(m, child);

    for (int i = 0; i < n; i++) {
        size[i] = number(m, 1, 8);
        procs[i] = number(m, 1, 3);
        arg[i] = MPI_DISTRIBUTE_DFLT_DARG;
        switch (number(m, 0, 2)) {
        case 0:
            how[i] = MPI_DISTRIBUTE_NONE;
            procs[i] = 1;
            break;
        case 1:
            how[i] = MPI_DISTRIBUTE_BLOCK;
            if (tl_one_in(m->r, 2))
                arg[i] = (size[i] + procs[i] - 1) / procs[i] + number(m, 0, 2);
            break;
        default:
            how[i] = MPI_DISTRIBUTE_CYCLIC;
            if (tl_one_in(m->r, 2))
                arg[i] = number(m, 1, 3);
        }
        all *= procs[i];
    }
    /* Open MPI 4.1 refuses predefined pair types here, but not what is made of them. */
    MPI_Type_contiguous(1, child, &plain);
    MPI_Type_create_darray(all, number(m, 0, all - 1), n, size, how, arg, procs,
                           tl_one_in(m->r, 2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN, plain, &type);
    MPI_Type_free(&plain);
    return type;
}

static MPI_Datatype make_resized(const maker_t *m, MPI_Datatype child)
{
    shape_t s = shape_of(child);
    MPI_Aint span = s.hi - s.lo;
    MPI_Aint extent = m->overlap ? units(m, 2 * span + 64) : span + units(m, 64);
    MPI_Datatype type;

    MPI_Type_create_resized(child, units(m, 64) - units(m, 64),
                            tl_one_in(m->r, 4) ? -extent : extent, &type);
    return type;
}

static MPI_Datatype construct(const maker_t *m, MPI_Datatype child, int depth)
{
    MPI_Datatype type;

    switch (number(m, 0, 11)) {
    case 0:
        return make_contiguous(m, child);
    case 1:
    case 2:
        return make_vector(m, child);
    case 3:
        return make_hvector(m, child);
    case 4:
        return make_list(m, child, false);
    case 5:
        return make_list(m, child, true);
    case 6:
        return make_subarray(m, child);
    case 7:
        return make_darray(m, child);
    case 8:
        return make_resized(m, child);
    case 9:
        MPI_Type_dup(child, &type);
        return type;
    default:
        return make_struct(m, child, depth);
    }
}

/* A type that keeps the limits of size and reach; where a constructor breaks them, its child. */
static MPI_Datatype make(const maker_t *m, int depth)
{
    if (depth == 0)
        return make_basic(m);
    MPI_Datatype child = make(m, depth - 1);
    MPI_Datatype type = without_overlap(m, construct(m, child, depth - 1));
    if (fits(type)) {
        MPI_Type_free(&child);
        return type;
    }
    MPI_Type_free(&type);
    return child;
}

/* ---- what the header offers ------------------------------------------------------------------ */

/* The same data moved to where no count of elements reaches below the buffer. */
static MPI_Datatype made_positive(MPI_Datatype type)
{
    shape_t s = shape_of(type);
    MPI_Aint disp = -s.lo;
    MPI_Datatype moved;

    if (s.lo >= 0 && s.extent >= 0)
        return type;
    MPI_Type_create_hindexed_block(1, 1, &disp, type, &moved);
    MPI_Type_free(&type);
    return resized(moved, 0, labs(s.extent));
}

MPI_Datatype random_type(tl_rng_t *r, int depth, unsigned flags, MPI_Datatype basic, MPI_Aint *lo,
                         MPI_Aint *hi)
{
    maker_t m = {r, basic, 1, !(flags & RANDOM_TYPE_NO_OVERLAP)};
    MPI_Aint lb;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    bool wrong;

    if (basic != MPI_DATATYPE_NULL)
        MPI_Type_get_extent(basic, &lb, &m.unit);
    do {
        type = make(&m, depth);
        if (flags & RANDOM_TYPE_NOT_NEGATIVE)
            type = made_positive(type);
        wrong = !fits(type) || (is_empty(type) && (flags & RANDOM_TYPE_NOT_EMPTY));
        if (wrong)
            MPI_Type_free(&type);
    } while (wrong);
    MPI_Type_commit(&type);
    random_type_span(type, 1, lo, hi);
    return type;
}

void random_type_span(MPI_Datatype type, int count, MPI_Aint *lo, MPI_Aint *hi)
{
    typemap_t map = typemap_of(type);

    typemap_span(&map, count, lo, hi);
    typemap_free(&map);
}

bool random_type_overlaps(MPI_Datatype type, int count)
{
    typemap_t map = typemap_of(type);
    MPI_Aint lo, hi;

    typemap_span(&map, count, &lo, &hi);
    size_t data = map.size * (size_t)count, span = (size_t)(hi - lo), marked = 0;
    unsigned char *marks = malloc(data + 1);
    unsigned char *memory = calloc(span + 1, 1);
    if (marks == NULL || memory == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(marks, 1, data);
    typemap_unpack(&map, count, marks, memory - lo);
    for (size_t i = 0; i < span; i++)
        marked += memory[i];
    free(memory);
    free(marks);
    typemap_free(&map);
    return marked != data;
}
