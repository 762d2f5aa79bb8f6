/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/mpi/typemap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DIMS 8

/* What MPI_Type_get_contents says. */
typedef struct contents {
    int combiner;
    int *ints;
    MPI_Aint *addresses;
    MPI_Datatype *types;
    int ntypes;
} contents_t;

static void *memory(size_t bytes)
{
    void *p = malloc(bytes + 1);

    if (p == NULL) {
        fprintf(stderr, "typemap: no memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return p;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static void add(typemap_t *map, MPI_Aint disp, MPI_Aint size)
{
    typemap_piece_t *last = map->n > 0 ? &map->pieces[map->n - 1] : NULL;

    if (size == 0)
        return;
    map->lo = last == NULL || disp < map->lo ? disp : map->lo;
    map->hi = last == NULL || disp + size > map->hi ? disp + size : map->hi;
    map->size += (size_t)size;
    if (last != NULL && last->disp + last->size == disp) {
        last->size += size;
        return;
    }
    if (map->n == map->room) {
        typemap_piece_t *old = map->pieces;
        map->room = 2 * map->room + 8;
        map->pieces = memory(map->room * sizeof(*old));
        if (map->n > 0)
            memcpy(map->pieces, old, map->n * sizeof(*old));
        free(old);
    }
    map->pieces[map->n++] = (typemap_piece_t){disp, size};
}

/* A block of elements of a child. */
static void add_block(typemap_t *map, const typemap_t *child, MPI_Aint disp, int count)
{
    if (child->n == 1 && child->pieces[0].size == child->extent) {
        add(map, disp + child->pieces[0].disp, child->extent * count);
        return;
    }
    for (int i = 0; i < count; i++)
        for (size_t j = 0; j < child->n; j++)
            add(map, disp + i * child->extent + child->pieces[j].disp, child->pieces[j].size);
}

/* ---- predefined types ------------------------------------------------------------------------ */

/* A predefined type of two members: where the second is and its size. */
static bool is_pair(MPI_Datatype type, MPI_Aint *second, MPI_Aint *size)
{
#define PAIR(named, first)                                                                         \
    {                                                                                              \
        named, offsetof(                                                                           \
                   struct {                                                                        \
                       first a;                                                                    \
                       int b;                                                                      \
                   },                                                                              \
                   b)                                                                              \
    }
    const struct {
        MPI_Datatype type;
        size_t second;
    } pairs[] = {
        PAIR(MPI_FLOAT_INT, float),
        PAIR(MPI_DOUBLE_INT, double),
        PAIR(MPI_LONG_INT, long),
        PAIR(MPI_SHORT_INT, short),
        PAIR(MPI_LONG_DOUBLE_INT, long double),
    };
#undef PAIR
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        if (type == pairs[i].type) {
            *second = (MPI_Aint)pairs[i].second;
            *size = sizeof(int);
            return true;
        }
    }
    return false;
}

static void add_predefined(typemap_t *map, MPI_Datatype type)
{
    int size;
    MPI_Aint second, last;

    MPI_Type_size(type, &size);
    if (is_pair(type, &second, &last)) {
        add(map, 0, size - last);
        add(map, second, last);
    } else {
        add(map, 0, size);
    }
}

/* ---- arrays ---------------------------------------------------------------------------------- */

/* A part of an array: for each dimension, from the one whose index changes slowest, its size and
 * which of its indices belong to the part. */
typedef struct part {
    int n;
    int size[MAX_DIMS];
    bool *mine[MAX_DIMS];
} part_t;

static void add_part(typemap_t *map, const typemap_t *child, const part_t *p, int dim,
                     MPI_Aint index)
{
    if (dim == p->n) {
        add_block(map, child, index * child->extent, 1);
        return;
    }
    for (int i = 0; i < p->size[dim]; i++)
        if (p->mine[dim][i])
            add_part(map, child, p, dim + 1, index * p->size[dim] + i);
}

/* The dimension of MPI's arguments that is dimension `dim` of a part. */
static int argument(int dim, int n, int order)
{
    return order == MPI_ORDER_C ? dim : n - 1 - dim;
}

static part_t make_part(int n, const int *sizes, int order)
{
    part_t p = {.n = n};

    if (n > MAX_DIMS) {
        fprintf(stderr, "typemap: an array of %d dimensions\n", n);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int d = 0; d < n; d++) {
        p.size[d] = sizes[argument(d, n, order)];
        p.mine[d] = memory((size_t)p.size[d] * sizeof(bool));
    }
    return p;
}

static void finish_part(typemap_t *map, const typemap_t *child, part_t *p)
{
    add_part(map, child, p, 0, 0);
    for (int d = 0; d < p->n; d++)
        free(p->mine[d]);
}

/* ints: n, sizes, sizes of the part, its starts, order */
static void add_subarray(typemap_t *map, const typemap_t *child, const int *ints)
{
    const int n = ints[0], order = ints[3 * n + 1];
    part_t p = make_part(n, ints + 1, order);

    for (int d = 0; d < n; d++) {
        const int a = argument(d, n, order);
        const int part = ints[1 + n + a], start = ints[1 + 2 * n + a];
        for (int i = 0; i < p.size[d]; i++)
            p.mine[d][i] = i >= start && i < start + part;
    }
    finish_part(map, child, &p);
}

/* Whether an index is that of process `coord` of `procs` in this dimension. */
static bool distributed_to(int i, int size, int how, int arg, int procs, int coord)
{
    if (how == MPI_DISTRIBUTE_NONE)
        return true;
    if (how == MPI_DISTRIBUTE_BLOCK) {
        const int block = arg == MPI_DISTRIBUTE_DFLT_DARG ? (size + procs - 1) / procs : arg;
        return i / block == coord;
    }
    const int block = arg == MPI_DISTRIBUTE_DFLT_DARG ? 1 : arg;
    return i / block % procs == coord;
}

/* ints: processes, rank, n, sizes, distributions, their arguments, processes in each dimension,
 * order. Ranks are in C's order whatever the array's is. */
static void add_darray(typemap_t *map, const typemap_t *child, const int *ints)
{
    const int n = ints[2], order = ints[4 * n + 3];
    const int *size = ints + 3, *how = size + n, *arg = how + n, *procs = arg + n;
    part_t p = make_part(n, size, order);
    int coord[MAX_DIMS], rank = ints[1];

    for (int a = n - 1; a >= 0; a--) {
        coord[a] = rank % procs[a];
        rank /= procs[a];
    }
    for (int d = 0; d < n; d++) {
        const int a = argument(d, n, order);
        for (int i = 0; i < size[a]; i++)
            p.mine[d][i] = distributed_to(i, size[a], how[a], arg[a], procs[a], coord[a]);
    }
    finish_part(map, child, &p);
}

/* ---- constructors ---------------------------------------------------------------------------- */

/* Blocks at a constant distance. */
static void add_rows(typemap_t *map, const typemap_t *child, int count, int block, MPI_Aint stride)
{
    for (int i = 0; i < count; i++)
        add_block(map, child, i * stride, block);
}

static void add_struct(typemap_t *map, const contents_t *c)
{
    for (int i = 0; i < c->ints[0]; i++) {
        typemap_t child = typemap_of(c->types[i]);
        add_block(map, &child, c->addresses[i], c->ints[1 + i]);
        typemap_free(&child);
    }
}

/* Lists of blocks: their lengths and, in elements of the child, their displacements. */
static void add_list(typemap_t *map, const typemap_t *child, const contents_t *c)
{
    const int n = c->ints[0], *lengths = c->ints + 1;

    for (int i = 0; i < n; i++) {
        switch (c->combiner) {
        case MPI_COMBINER_INDEXED:
            add_block(map, child, lengths[n + i] * child->extent, lengths[i]);
            break;
        case MPI_COMBINER_HINDEXED:
            add_block(map, child, c->addresses[i], lengths[i]);
            break;
        case MPI_COMBINER_INDEXED_BLOCK:
            add_block(map, child, lengths[1 + i] * child->extent, lengths[0]);
            break;
        default:
            add_block(map, child, c->addresses[i], lengths[0]);
        }
    }
}

static void add_derived(typemap_t *map, const typemap_t *child, const contents_t *c)
{
    switch (c->combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
        add_block(map, child, 0, 1);
        break;
    case MPI_COMBINER_CONTIGUOUS:
        add_block(map, child, 0, c->ints[0]);
        break;
    case MPI_COMBINER_VECTOR:
        add_rows(map, child, c->ints[0], c->ints[1], c->ints[2] * child->extent);
        break;
    case MPI_COMBINER_HVECTOR:
        add_rows(map, child, c->ints[0], c->ints[1], c->addresses[0]);
        break;
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK:
        add_list(map, child, c);
        break;
    case MPI_COMBINER_SUBARRAY:
        add_subarray(map, child, c->ints);
        break;
    case MPI_COMBINER_DARRAY:
        add_darray(map, child, c->ints);
        break;
    default:
        fprintf(stderr, "typemap: combiner %d\n", c->combiner);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static bool is_predefined(MPI_Datatype type)
{
    int nints, naddresses, ntypes, combiner;

    MPI_Type_get_envelope(type, &nints, &naddresses, &ntypes, &combiner);
    return combiner == MPI_COMBINER_NAMED;
}

static contents_t contents_of(MPI_Datatype type)
{
    int nints, naddresses;
    contents_t c;

    MPI_Type_get_envelope(type, &nints, &naddresses, &c.ntypes, &c.combiner);
    c.ints = memory((size_t)nints * sizeof(*c.ints));
    c.addresses = memory((size_t)naddresses * sizeof(*c.addresses));
    c.types = memory((size_t)c.ntypes * sizeof(*c.types));
    MPI_Type_get_contents(type, nints, naddresses, c.ntypes, c.ints, c.addresses, c.types);
    return c;
}

static void free_contents(contents_t *c)
{
    for (int i = 0; i < c->ntypes; i++)
        if (!is_predefined(c->types[i]))
            MPI_Type_free(&c->types[i]);
    free(c->ints);
    free(c->addresses);
    free(c->types);
}

/* ---- what the header offers ------------------------------------------------------------------ */

typemap_t typemap_of(MPI_Datatype type)
{
    typemap_t map = {0};
    MPI_Aint lb;

    MPI_Type_get_extent(type, &lb, &map.extent);
    if (is_predefined(type)) {
        add_predefined(&map, type);
        return map;
    }
    contents_t c = contents_of(type);
    if (c.combiner == MPI_COMBINER_STRUCT) {
        add_struct(&map, &c);
    } else {
        typemap_t child = typemap_of(c.types[0]);
        add_derived(&map, &child, &c);
        typemap_free(&child);
    }
    free_contents(&c);
    return map;
}

void typemap_free(typemap_t *map)
{
    free(map->pieces);
    *map = (typemap_t){0};
}

void typemap_span(const typemap_t *map, int count, MPI_Aint *lo, MPI_Aint *hi)
{
    if (map->n == 0 || count == 0) {
        *lo = *hi = 0;
        return;
    }
    const MPI_Aint last = (count - 1) * map->extent;
    *lo = map->lo + (last < 0 ? last : 0);
    *hi = map->hi + (last > 0 ? last : 0);
}

void typemap_pack(const typemap_t *map, int count, const void *buffer, void *packed)
{
    const unsigned char *from = buffer;
    unsigned char *to = packed;

    for (int i = 0; i < count; i++, from += map->extent) {
        for (size_t j = 0; j < map->n; j++) {
            memcpy(to, from + map->pieces[j].disp, (size_t)map->pieces[j].size);
            to += map->pieces[j].size;
        }
    }
}

void typemap_unpack(const typemap_t *map, int count, const void *packed, void *buffer)
{
    const unsigned char *from = packed;
    unsigned char *to = buffer;

    for (int i = 0; i < count; i++, to += map->extent) {
        for (size_t j = 0; j < map->n; j++) {
            memcpy(to + map->pieces[j].disp, from, (size_t)map->pieces[j].size);
            from += map->pieces[j].size;
        }
    }
}
