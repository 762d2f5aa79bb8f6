/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* thorough */
/* windows: create allocate dynamic shared */
/**
 * @file
 * MPI_Put and MPI_Get move what the two datatypes say and nothing else: random trees of datatypes
 * on both sides, also with absolute addresses under MPI_BOTTOM, against their typemaps, every way
 * to synchronise, every pair of ranks including itself, 1 byte to 4 MiB. After each epoch the whole
 * window and the whole origin buffers are compared with the reference.
 */
#include <stdlib.h>
#include <string.h>

#include "test/mpi/exchange.h"
#include "test/mpi/random_type.h"
#include "test/mpi/testlib.h"
#include "test/mpi/transfer.h"

/* ---- random types, everybody with everybody ---- */

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

static void random_types(tl_kind_t kind)
{
    tl_window_t w = tl_win_make(kind, tl_size() * SLOT, 1, MPI_COMM_WORLD, MPI_INFO_NULL);

    for (int round = 0; round < ROUNDS * tl_factor(); round++)
        exchange_round(&w, (tl_sync_t)(round % TL_SYNCS), round, SLOT, plan);
    tl_win_free(&w);
}

/* ---- sizes up to 4 MiB, strided or not ---- */

#define LARGEST      ((MPI_Aint)4 << 20)
#define LARGE_WINDOW (2 * LARGEST)
#define BLOCKS_MAX   (tl_slow() ? 1024 : 8192)

/** Ring: puts to the next rank, and after the epoch gets back. Blocks are 2 blocks apart. */
static void sweep_case(const tl_window_t *w, tl_sync_t sync, MPI_Aint bytes, MPI_Aint block,
                       bool strided_origin, bool strided_target, unsigned char *buffer)
{
    tr_side_t origin = tr_strided(bytes, block, strided_origin ? 2 * block : block);
    tr_side_t target = tr_strided(bytes, block, strided_target ? 2 * block : block);
    int to = (w->rank + 1) % w->size, from = (w->rank + w->size - 1) % w->size;
    MPI_Aint disp = tl_disp(w, to, 0);
    size_t touched = (size_t)target.span < (size_t)w->bytes ? (size_t)target.span : 0;
    unsigned char *want = tl_alloc((size_t)(2 * bytes));

    memset(w->base, 0x3C, (size_t)target.span);
    tl_fill_random(buffer, (size_t)origin.span, (uint64_t)(bytes + w->rank));
    tl_begin(w, sync);
    TL_MPI(MPI_Put(buffer, origin.count, origin.type, to, disp, target.count, target.type, w->win));
    tl_end(w, sync);

    unsigned char *sent = tl_alloc((size_t)origin.span);

    tl_fill_random(sent, (size_t)origin.span, (uint64_t)(bytes + from));
    memset(want, 0x3C, (size_t)target.span);
    tr_copy(&origin, sent, &target, want);
    TL_BYTES(w->base, want, touched, "put of %ld bytes, blocks of %ld", (long)bytes, (long)block);

    memcpy(sent, buffer, (size_t)origin.span);
    memset(buffer, 0x5E, (size_t)origin.span);
    tl_begin(w, sync);
    TL_MPI(MPI_Get(buffer, origin.count, origin.type, to, disp, target.count, target.type, w->win));
    tl_end(w, sync);
    memset(want, 0x5E, (size_t)origin.span);
    tr_copy(&origin, sent, &origin, want);
    TL_BYTES(buffer, want, (size_t)origin.span, "get of %ld bytes, blocks of %ld", (long)bytes,
             (long)block);
    free(want);
    free(sent);
    tr_free(&origin);
    tr_free(&target);
}

static void size_sweep(tl_kind_t kind)
{
    static const MPI_Aint sizes[] = {1, 8, 200, 4096, 8192, 65536, 1 << 20, LARGEST};
    static const MPI_Aint blocks[] = {1, 8, 64, 1024, 16384, LARGEST};
    tl_window_t w = tl_win_make(kind, LARGE_WINDOW, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    unsigned char *buffer = tl_alloc((size_t)LARGE_WINDOW);
    int cases = 0;

    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
        for (size_t b = 0; b < sizeof(blocks) / sizeof(*blocks); b++) {
            MPI_Aint block = blocks[b] < sizes[s] ? blocks[b] : sizes[s];

            if (sizes[s] % block != 0 || sizes[s] / block > BLOCKS_MAX)
                continue;
            for (int shape = blocks[b] < sizes[s] ? 1 : 0; shape < 4; shape++) {
                tl_sync_t sync = (tl_sync_t)(cases++ % TL_SYNCS);

                sweep_case(&w, sync, sizes[s], block, shape & 1, shape & 2, buffer);
            }
            if (blocks[b] >= sizes[s])
                break;
        }
    }
    free(buffer);
    tl_win_free(&w);
}

/* ---- corners ---- */

/** Nothing to move, or nobody to move it to: no error, no change. */
static void nothing_moves(tl_kind_t kind)
{
    tl_window_t w = tl_win_make(kind, 64, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    unsigned char buffer[64];
    MPI_Datatype empty;
    int to = (w.rank + 1) % w.size;

    MPI_Type_vector(0, 3, 7, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    memset(buffer, 7, sizeof(buffer));
    memset(w.base, 9, 64);
    for (tl_sync_t sync = 0; sync < TL_SYNCS; sync++) {
        MPI_Aint disp = tl_disp(&w, to, 0), end = tl_disp(&w, to, 64);

        tl_begin(&w, sync);
        TL_MPI(MPI_Put(buffer, 0, MPI_INT, to, disp, 0, MPI_INT, w.win));
        TL_MPI(MPI_Get(buffer, 0, MPI_INT, to, end, 0, MPI_INT, w.win));
        TL_MPI(MPI_Put(NULL, 0, MPI_BYTE, to, end, 5, empty, w.win));
        TL_MPI(MPI_Get(NULL, 4, empty, to, disp, 0, MPI_DOUBLE, w.win));
        TL_MPI(MPI_Put(buffer, 16, MPI_INT, MPI_PROC_NULL, 0, 16, MPI_INT, w.win));
        TL_MPI(MPI_Get(buffer, 16, MPI_INT, MPI_PROC_NULL, 99, 16, MPI_INT, w.win));
        tl_end(&w, sync);
        TL_FILL(buffer, 7, sizeof(buffer), "%s: buffer", tl_sync_name(sync));
        TL_FILL(w.base, 9, 64, "%s: window", tl_sync_name(sync));
    }
    MPI_Type_free(&empty);
    tl_win_free(&w);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        nothing_moves(kind);
        random_types(kind);
        size_sweep(kind);
    }
    return tl_finish();
}
