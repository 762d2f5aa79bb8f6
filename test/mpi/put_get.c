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

#include "test/mpi/random_type.h"
#include "test/mpi/testlib.h"
#include "test/mpi/transfer.h"

/* ---- random types, everybody with everybody ---- */

/** What one rank does to another; freed by the exchange. */
typedef struct exchange_op {
    tr_side_t origin; /**< span any */
    tr_side_t target; /**< span <= slot */
    bool get;
    bool absolute; /**< addresses in the types: MPI_BOTTOM, and displacement 0 where dynamic */
    uint64_t seed; /**< of the origin buffer's contents */
} exchange_op_t;

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

static tr_side_t tree(tl_rng_t *r, MPI_Datatype basic, bool is_written)
{
    MPI_Aint low, high;
    int depth = (int)tl_range(r, 0, DEPTH);

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
static void uniform(tl_rng_t *r, exchange_op_t *op)
{
    MPI_Datatype basic = basics[tl_range(r, 0, sizeof(basics) / sizeof(*basics) - 1)];
    int a, b;

    op->origin = tree(r, basic, op->get);
    op->target = tree(r, basic, !op->get);
    MPI_Type_size(op->origin.type, &a);
    MPI_Type_size(op->target.type, &b);
    int common = gcd(a, b), times = (int)tl_range(r, 1, 3);

    repeat(&op->origin, b / common * times);
    repeat(&op->target, a / common * times);
    if (tl_one_in(r, 2)) {
        tr_side_t *data = op->get ? &op->target : &op->origin;

        repeat(data, (int)tl_range(r, 0, data->count));
    }
}

/** A tree of many types; the two sides repeat it differently: by count, or with a stride. */
static void mixed(tl_rng_t *r, exchange_op_t *op)
{
    tr_side_t one = tree(r, MPI_DATATYPE_NULL, true);
    int times = (int)tl_range(r, 1, 3);
    MPI_Aint lb, extent, stride;
    MPI_Datatype spread;

    MPI_Type_get_true_extent(one.type, &lb, &extent);
    stride = extent + (MPI_Aint)tl_range(r, 0, 64);
    MPI_Type_create_hvector(times, 1, tl_one_in(r, 4) ? -stride : stride, one.type, &spread);
    MPI_Type_commit(&spread);
    repeat(&one, times);
    /* Room for one more. */
    if (tl_one_in(r, 3)) {
        tr_side_t more = one;
        MPI_Type_dup(one.type, &more.type);
        more = tr_place(more.type, times + 1);
        op->origin = op->get ? more : one;
        op->target = op->get ? one : more;
        MPI_Type_free(&spread);
        return;
    }
    op->origin = tl_one_in(r, 2) ? one : tr_place(spread, 1);
    op->target = op->origin.type == one.type ? tr_place(spread, 1) : one;
}

/** Vectors of two blocks in each other, more than a layout has levels. */
static tr_side_t tower(tl_rng_t *r, MPI_Datatype basic, int levels)
{
    MPI_Datatype type, above;

    MPI_Type_dup(basic, &type);
    for (int i = 0; i < levels; i++) {
        MPI_Aint lb, extent;

        MPI_Type_get_extent(type, &lb, &extent);
        MPI_Type_create_hvector(2, 1, extent + (MPI_Aint)tl_range(r, 1, 12), type, &above);
        MPI_Type_free(&type);
        type = above;
    }
    MPI_Type_commit(&type);
    return tr_place(type, 1);
}

static void towers(tl_rng_t *r, exchange_op_t *op)
{
    const MPI_Datatype basic = tl_one_in(r, 2) ? MPI_CHAR : MPI_SHORT;
    const int levels = (int)tl_range(r, 8, 12);

    op->origin = tower(r, basic, levels);
    op->target = tower(r, basic, levels);
}

/** What `origin` and `target` do with each other in a round: the origin, and the target when it
 *  checks, both ask. */
static exchange_op_t plan(int round, int origin, int target)
{
    uint64_t stream = ((uint64_t)round << 16) + (uint64_t)(origin << 8) + (uint64_t)target;
    tl_rng_t r;
    exchange_op_t op = {.get = false};

    r = tl_rng(tl_seed() * UINT64_C(1000003) + stream, 0);
    while (true) {
        op.get = tl_one_in(&r, 2);
        op.absolute = tl_one_in(&r, 3);
        op.seed = tl_random(&r);
        if (tl_one_in(&r, 8))
            towers(&r, &op);
        else if (tl_one_in(&r, 3))
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

/** What a slot holds before the epoch. */
static void fill_slot(void *memory, MPI_Aint slot, int round, int origin, int target)
{
    uint64_t seed = ((uint64_t)round << 20) + (uint64_t)(origin << 10) + (uint64_t)target;

    tl_fill_random(memory, (size_t)slot, tl_seed() + seed);
}

static unsigned char *origin_buffer(const exchange_op_t *op)
{
    unsigned char *buffer = tl_alloc((size_t)op->origin.span);

    tl_fill_random(buffer, (size_t)op->origin.span, op->seed);
    return buffer;
}

/** The side as one element of a struct. */
static void wrap(tr_side_t *side)
{
    MPI_Datatype type = tr_at_address(side, 0);

    tr_free(side);
    side->type = type;
    side->count = 1;
}

/**
 * The plan, with absolute sides wrapped in a struct already: Open MPI's datatype engine gives some
 * structs of several elements other bytes than a count of those elements has, and a reference
 * made from the latter would blame the window for that.
 */
static exchange_op_t make_op(int round, int origin, int target)
{
    exchange_op_t op = plan(round, origin, target);

    if (op.absolute) {
        wrap(&op.origin);
        wrap(&op.target);
    }
    return op;
}

static void transfer(const tl_window_t *w, const exchange_op_t *op, void *address, int count,
                     MPI_Datatype type, int target, MPI_Aint disp, int target_count,
                     MPI_Datatype target_type)
{
    if (op->get)
        TL_MPI(MPI_Get(address, count, type, target, disp, target_count, target_type, w->win));
    else
        TL_MPI(MPI_Put(address, count, type, target, disp, target_count, target_type, w->win));
}

static void issue(const tl_window_t *w, const exchange_op_t *op, int target, MPI_Aint offset,
                  unsigned char *buffer)
{
    const tr_side_t *o = &op->origin, *t = &op->target;
    MPI_Aint disp = tl_disp(w, target, offset + t->start);
    MPI_Datatype origin_type = o->type, target_type = t->type;

    if (!op->absolute) {
        transfer(w, op, buffer + o->start, o->count, o->type, target, disp, t->count, t->type);
        return;
    }
    MPI_Aint address;

    MPI_Get_address(buffer + o->start, &address);
    origin_type = tr_at_address(o, address);
    if (w->kind == TL_DYNAMIC) {
        target_type = tr_at_address(t, disp);
        transfer(w, op, MPI_BOTTOM, 1, origin_type, target, 0, 1, target_type);
        MPI_Type_free(&target_type);
    } else {
        transfer(w, op, MPI_BOTTOM, 1, origin_type, target, disp, t->count, t->type);
    }
    MPI_Type_free(&origin_type);
}

/** A put leaves the origin buffer alone, a get changes what it should. */
static void check_origin(const tl_window_t *w, const exchange_op_t *op, int round, int target,
                         MPI_Aint slot, const unsigned char *buffer)
{
    unsigned char *want = origin_buffer(op), *source = tl_alloc((size_t)slot);

    if (op->get) {
        fill_slot(source, slot, round, w->rank, target);
        tr_copy(&op->target, source, &op->origin, want);
    }
    TL_BYTES(buffer, want, (size_t)op->origin.span, "%s, round %d, buffer of %s rank %d",
             tl_kind_name(w->kind), round, op->get ? "get from" : "put to", target);
    free(want);
    free(source);
}

/** My slot for `origin` has what it put, and all the rest as before. */
static void check_slot(const tl_window_t *w, int round, int origin, MPI_Aint slot)
{
    exchange_op_t op = make_op(round, origin, w->rank);
    unsigned char *want = tl_alloc((size_t)slot), *sent = origin_buffer(&op);

    fill_slot(want, slot, round, origin, w->rank);
    if (!op.get)
        tr_copy(&op.origin, sent, &op.target, want);
    TL_BYTES(w->base + origin * slot, want, (size_t)slot, "%s, round %d, window after %s rank %d",
             tl_kind_name(w->kind), round, op.get ? "get by" : "put by", origin);
    free(want);
    free(sent);
    tr_free(&op.origin);
    tr_free(&op.target);
}

/** One epoch in which every rank puts to or gets from every rank, and the proof afterwards that
 *  each byte of windows and buffers is what the reference says. Each origin has `slot` bytes of
 *  every target's memory to itself, in rank order. */
static void exchange_round(const tl_window_t *w, tl_sync_t sync, int round, MPI_Aint slot)
{
    exchange_op_t *ops = tl_alloc((size_t)w->size * sizeof(*ops));
    unsigned char **buffers = tl_alloc((size_t)w->size * sizeof(*buffers));

    for (int r = 0; r < w->size; r++) {
        ops[r] = make_op(round, w->rank, r);
        buffers[r] = origin_buffer(&ops[r]);
        fill_slot(w->base + r * slot, slot, round, r, w->rank);
    }
    tl_begin(w, sync);
    for (int r = 0; r < w->size; r++)
        issue(w, &ops[r], r, w->rank * slot, buffers[r]);
    tl_end(w, sync);
    for (int r = 0; r < w->size; r++) {
        check_origin(w, &ops[r], round, r, slot, buffers[r]);
        check_slot(w, round, r, slot);
        tr_free(&ops[r].origin);
        tr_free(&ops[r].target);
        free(buffers[r]);
    }
    free(ops);
    free(buffers);
    MPI_Barrier(w->comm);
}

static void random_types(tl_kind_t kind)
{
    tl_window_t w = tl_win_make(kind, tl_size() * SLOT, 1, MPI_COMM_WORLD, MPI_INFO_NULL);

    for (int round = 0; round < ROUNDS * tl_factor(); round++)
        exchange_round(&w, (tl_sync_t)(round % TL_SYNCS), round, SLOT);
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
