/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic shared */
/**
 * @file
 * Property test of MPI_Put and MPI_Get with random trees of datatypes on both sides, also with
 * absolute addresses under MPI_BOTTOM, against their typemaps.
 */
#include "test/mpi/exchange.h"
#include "test/mpi/random_type.h"
#include "test/mpi/testlib.h"
#include "test/mpi/transfer.h"

/** Of each target's window this much belongs to each origin. */
#define SLOT       ((MPI_Aint)192 << 10)
#define ROUNDS     40
#define DEPTH      5
#define COUNT_MAX  48
#define ORIGIN_MAX (4 * SLOT)

static const MPI_Datatype basics[] = {MPI_CHAR,   MPI_SHORT,       MPI_INT,
                                      MPI_DOUBLE, MPI_LONG_DOUBLE, MPI_C_DOUBLE_COMPLEX,
                                      MPI_LONG,   MPI_FLOAT,       MPI_SHORT_INT};

/** Data that are read may lie on each other, data that are written may not. */
static unsigned written(bool side_is_written)
{
    return RANDOM_TYPE_NOT_EMPTY | (side_is_written ? RANDOM_TYPE_NO_OVERLAP : 0);
}

static tr_side_t tree(random_source_t *r, MPI_Datatype basic, bool is_written)
{
    MPI_Aint low, high;
    int depth = (int)random_between(r, 0, DEPTH);

    return tr_place(random_type(r, depth, written(is_written), basic, &low, &high), 1);
}

/** Gives a side another count. */
static void repeat(tr_side_t *side, int count)
{
    *side = tr_place(side->type, count);
}

static int gcd(int a, int b)
{
    return b == 0 ? a : gcd(b, a % b);
}

/** Two trees over one basic type, with counts that make their signatures equal, or with more room
 *  than data, which may end anywhere in it. */
static void uniform(random_source_t *r, exchange_op_t *op)
{
    MPI_Datatype basic = basics[random_between(r, 0, sizeof(basics) / sizeof(*basics) - 1)];
    int a, b;

    op->origin = tree(r, basic, op->get);
    op->target = tree(r, basic, !op->get);
    MPI_Type_size(op->origin.type, &a);
    MPI_Type_size(op->target.type, &b);
    int common = gcd(a, b), times = (int)random_between(r, 1, 3);

    repeat(&op->origin, b / common * times);
    repeat(&op->target, a / common * times);
    if (random_one_in(r, 2)) {
        tr_side_t *data = op->get ? &op->target : &op->origin;

        repeat(data, (int)random_between(r, 0, data->count));
    }
}

/** A tree of many types; the two sides repeat it differently: by count, or with a stride. */
static void mixed(random_source_t *r, exchange_op_t *op)
{
    tr_side_t one = tree(r, MPI_DATATYPE_NULL, true);
    int times = (int)random_between(r, 1, 3);
    MPI_Aint lb, extent, stride;
    MPI_Datatype spread;

    MPI_Type_get_true_extent(one.type, &lb, &extent);
    stride = extent + (MPI_Aint)random_between(r, 0, 64);
    MPI_Type_create_hvector(times, 1, random_one_in(r, 4) ? -stride : stride, one.type, &spread);
    MPI_Type_commit(&spread);
    repeat(&one, times);
    /* Room for one more. */
    if (random_one_in(r, 3)) {
        tr_side_t more = one;
        MPI_Type_dup(one.type, &more.type);
        more = tr_place(more.type, times + 1);
        op->origin = op->get ? more : one;
        op->target = op->get ? one : more;
        MPI_Type_free(&spread);
        return;
    }
    op->origin = random_one_in(r, 2) ? one : tr_place(spread, 1);
    op->target = op->origin.type == one.type ? tr_place(spread, 1) : one;
}

/** Vectors of two blocks in each other, more than a layout has levels. */
static tr_side_t tower(random_source_t *r, MPI_Datatype basic, int levels)
{
    MPI_Datatype type, above;

    MPI_Type_dup(basic, &type);
    for (int i = 0; i < levels; i++) {
        MPI_Aint lb, extent;

        MPI_Type_get_extent(type, &lb, &extent);
        MPI_Type_create_hvector(2, 1, extent + (MPI_Aint)random_between(r, 1, 12), type, &above);
        MPI_Type_free(&type);
        type = above;
    }
    MPI_Type_commit(&type);
    return tr_place(type, 1);
}

static void towers(random_source_t *r, exchange_op_t *op)
{
    const MPI_Datatype basic = random_one_in(r, 2) ? MPI_CHAR : MPI_SHORT;
    const int levels = (int)random_between(r, 8, 12);

    op->origin = tower(r, basic, levels);
    op->target = tower(r, basic, levels);
}

static exchange_op_t plan(int round, int origin, int target)
{
    uint64_t stream = ((uint64_t)round << 16) + (uint64_t)(origin << 8) + (uint64_t)target;
    random_source_t r;
    exchange_op_t op = {.get = false};

    random_seed(&r, tl_seed() * UINT64_C(1000003) + stream);
    while (true) {
        op.get = random_one_in(&r, 2);
        op.absolute = random_one_in(&r, 3);
        op.seed = random_bits(&r);
        if (random_one_in(&r, 8))
            towers(&r, &op);
        else if (random_one_in(&r, 3))
            mixed(&r, &op);
        else
            uniform(&r, &op);
        if (op.target.span <= SLOT && op.origin.span <= ORIGIN_MAX &&
            op.origin.count <= COUNT_MAX && op.target.count <= COUNT_MAX)
            return op;
        tr_free(&op.origin);
        tr_free(&op.target);
    }
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        tl_window_t w = tl_win_make(kind, tl_size() * SLOT, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
        int rounds = ROUNDS * tl_factor();

        for (int round = 0; round < rounds; round++)
            exchange_round(&w, (tl_sync_t)(round % TL_SYNCS), round, SLOT, plan);
        tl_win_free(&w);
    }
    return tl_finish();
}
