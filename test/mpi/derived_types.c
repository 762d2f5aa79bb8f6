/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* thorough */
/* windows: create allocate dynamic shared */
/**
 * @file
 * MPI_Put, MPI_Get, MPI_Accumulate and MPI_Get_accumulate move what the datatypes say and nothing
 * else: random trees of datatypes on all sides, also with absolute addresses under MPI_BOTTOM,
 * against their typemaps, every way to synchronise, every pair of ranks including itself. Padded
 * pair types and records are among them, and less data than there is room for. After each epoch the
 * whole window and all buffers are compared with the reference. And accumulates of several
 * megabytes at once.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "test/mpi/predefined.h"
#include "test/mpi/rma.h"
#include "test/mpi/testlib.h"
#include "test/mpi/transfer.h"

/** Of each target's window this much belongs to each origin. */
#define SLOT   ((MPI_Aint)192 << 10)
#define ROUNDS 40

/* ---- random shapes, everybody with everybody ---- */

typedef enum call { PUT, GET, ACCUMULATE, GET_ACCUMULATE, CALLS } call_t;

static const char *const call_names[] = {"put", "get", "accumulate", "get_accumulate"};

/** What one rank does to another. */
typedef struct update {
    call_t call;
    tr_element_t element;
    int n, given;  /**< elements where data go, and of these data, which may be fewer */
    MPI_Op op;     /**< MPI_REPLACE for a put, MPI_NO_OP for a get */
    bool absolute; /**< addresses in the types: MPI_BOTTOM, and displacement 0 where dynamic */
    uint64_t seed;
    tr_side_t origin, result, target;
} update_t;

static bool fetches(const update_t *u)
{
    return u->call == GET || u->call == GET_ACCUMULATE;
}

static MPI_Op pick_op(tl_rng_t *rng, tr_element_t element)
{
    if (element == TR_RECORD || tl_range(rng, 0, 5) == 0)
        return MPI_REPLACE;
    switch (element) {
    case TR_BYTE:
        return MPI_BXOR;
    case TR_PAIR:
    case TR_WIDE_PAIR:
        return tl_range(rng, 0, 1) ? MPI_MINLOC : MPI_MAXLOC;
    case TR_COMPLEX:
        return MPI_SUM;
    default:
        return tl_range(rng, 0, 1) ? MPI_SUM : MPI_MAX;
    }
}

static void drop(update_t *u)
{
    tr_free(&u->origin);
    tr_free(&u->result);
    tr_free(&u->target);
}

/** Vectors of two blocks in each other, more than a layout has levels. */
static tr_side_t tower(tl_rng_t *rng, tr_element_t element, int levels)
{
    MPI_Datatype type, above;

    MPI_Type_dup(tr_basic(element), &type);
    for (int i = 0; i < levels; i++) {
        MPI_Aint lb, extent;

        MPI_Type_get_extent(type, &lb, &extent);
        MPI_Type_create_hvector(2, 1, extent + tl_range(rng, 1, 12), type, &above);
        MPI_Type_free(&type);
        type = above;
    }
    MPI_Type_commit(&type);
    return tr_place(type, 1);
}

static void make_towers(tl_rng_t *rng, update_t *u)
{
    const int levels = (int)tl_range(rng, 8, 12);

    u->n = u->given = 1 << levels;
    u->origin = tower(rng, u->element, levels);
    u->result = tower(rng, u->element, levels);
    u->target = tower(rng, u->element, levels);
}

static void make_shapes(tl_rng_t *rng, update_t *u)
{
    u->given = tl_range(rng, 0, 2) == 0 ? (int)tl_range(rng, 0, u->n) : u->n;
    u->origin = tr_shape(rng, u->element, u->given, TR_ORIGIN | TR_OVERLAP);
    u->result = tr_shape(rng, u->element, u->n, TR_ORIGIN);
    u->target = tr_shape(rng, u->element, u->call == GET ? u->given : u->n,
                         u->call == GET ? TR_OVERLAP : 0);
}

/** Every rank can work out what `origin` does to `target` in a round. */
static update_t plan(int round, int origin, int target)
{
    uint64_t stream = ((uint64_t)round << 16) + (uint64_t)(origin << 8) + (uint64_t)target;
    tl_rng_t rng = tl_rng(tl_seed() + 77, stream);
    update_t u = {.call = (call_t)tl_range(&rng, 0, CALLS - 1),
                  .element = (tr_element_t)tl_range(&rng, 0, TR_ELEMENTS - 1)};

    u.op = u.call == PUT ? MPI_REPLACE : u.call == GET ? MPI_NO_OP : pick_op(&rng, u.element);
    u.absolute = tl_one_in(&rng, 3);
    u.seed = tl_random(&rng);
    u.n = (int)tl_range(&rng, 0, (int64_t)1 << tl_range(&rng, 0, 10));
    if (u.call == GET_ACCUMULATE && u.op == MPI_REPLACE && tl_range(&rng, 0, 1))
        u.op = MPI_NO_OP;
    while (true) {
        if (u.element <= TR_SHORT && tl_one_in(&rng, 4))
            make_towers(&rng, &u);
        else
            make_shapes(&rng, &u);
        if (u.target.span <= SLOT)
            return u;
        drop(&u);
        u.n /= 2;
    }
}

/** Fills memory with values of the element's fields, so that no operation meets a NaN. */
static void fill(tr_element_t element, void *memory, MPI_Aint bytes, uint64_t seed)
{
    MPI_Datatype basic = tr_basic(element);
    predefined_t type;
    int i = 0;

    if (element == TR_RECORD) {
        tl_fill_random(memory, (size_t)bytes, seed);
        return;
    }
    while (predefined_get(i, &type) && type.type != basic)
        i++;
    memset(memory, 0, (size_t)bytes);
    predefined_fill(&type, memory, (int)((size_t)bytes / type.extent), seed);
}

static uint64_t slot_seed(int round, int origin, int target)
{
    return tl_seed() + (uint64_t)round * 10000 + (uint64_t)(origin * 100 + target);
}

/** The reference: applies origin data in `sent` to target data in `slot`. */
static void apply(const update_t *u, const void *sent, void *slot)
{
    MPI_Datatype basic = tr_basic(u->element);

    if (u->op == MPI_REPLACE)
        tr_copy(&u->origin, sent, &u->target, slot);
    if (u->op == MPI_REPLACE || u->op == MPI_NO_OP)
        return;
    tr_side_t plain = tr_plain(basic, u->n), given = tr_plain(basic, u->given);
    void *in = tl_alloc((size_t)plain.span), *inout = tl_alloc((size_t)plain.span);

    tr_copy(&u->origin, sent, &given, in);
    tr_copy(&u->target, slot, &plain, inout);
    TL_MPI(MPI_Reduce_local(in, inout, u->given, basic, u->op));
    tr_copy(&plain, inout, &u->target, slot);
    tr_free(&plain);
    tr_free(&given);
    free(in);
    free(inout);
}

/** One of the calls; each side has an address, a count and a type. */
static void call(const tl_window_t *w, const update_t *u, int target, MPI_Aint disp, void *sent,
                 void *result, const tr_side_t *o, const tr_side_t *r, const tr_side_t *t)
{
    const rma_t calls[CALLS] = {RMA_PUT, RMA_GET, RMA_ACCUMULATE, RMA_GET_ACCUMULATE};
    const rma_given_t g = {.origin = {sent, o->count, o->type},
                           .result = {result, r->count, r->type},
                           .target = target,
                           .disp = disp,
                           .n = t->count,
                           .type = t->type,
                           .op = u->op,
                           .win = w->win};

    TL_MPI(rma_call(calls[u->call], &g, NULL));
}

static tr_side_t at_address(const tr_side_t *side, MPI_Aint address)
{
    return (tr_side_t){.type = tr_at_address(side, address), .count = 1};
}

static void issue(const tl_window_t *w, const update_t *u, int target, unsigned char *sent,
                  unsigned char *result)
{
    const MPI_Aint disp = tl_disp(w, target, w->rank * SLOT + u->target.start);
    const bool dynamic = w->kind == TL_DYNAMIC;
    MPI_Aint from, to;

    sent += u->origin.start;
    result += u->result.start;
    if (!u->absolute) {
        call(w, u, target, disp, sent, result, &u->origin, &u->result, &u->target);
        return;
    }
    MPI_Get_address(sent, &from);
    MPI_Get_address(result, &to);
    tr_side_t o = at_address(&u->origin, from), r = at_address(&u->result, to),
              t = at_address(&u->target, dynamic ? disp : 0);
    call(w, u, target, dynamic ? 0 : disp, MPI_BOTTOM, MPI_BOTTOM, &o, &r, &t);
    tr_free(&o);
    tr_free(&r);
    tr_free(&t);
}

/** Old values are in the result buffer and nothing else of it changed. */
static void check_result(const tl_window_t *w, const update_t *u, int round, int target,
                         const unsigned char *result)
{
    unsigned char *slot = tl_alloc((size_t)SLOT), *want = tl_alloc((size_t)u->result.span);

    memset(want, 0x5A, (size_t)u->result.span);
    if (fetches(u)) {
        fill(u->element, slot, SLOT, slot_seed(round, w->rank, target));
        tr_copy(&u->target, slot, &u->result, want);
    }
    TL_BYTES(result, want, (size_t)u->result.span, "%s, round %d, result from rank %d",
             tl_kind_name(w->kind), round, target);
    free(slot);
    free(want);
}

static void check_slot(const tl_window_t *w, int round, int origin)
{
    update_t u = plan(round, origin, w->rank);
    unsigned char *want = tl_alloc((size_t)SLOT), *sent = tl_alloc((size_t)u.origin.span);

    fill(u.element, want, SLOT, slot_seed(round, origin, w->rank));
    fill(u.element, sent, u.origin.span, u.seed);
    apply(&u, sent, want);
    TL_BYTES(w->base + origin * SLOT, want, (size_t)SLOT,
             "%s, round %d, %s of %d elements of kind %d by rank %d", tl_kind_name(w->kind), round,
             call_names[u.call], u.n, (int)u.element, origin);
    drop(&u);
    free(want);
    free(sent);
}

static void random_round(const tl_window_t *w, tl_sync_t sync, int round)
{
    update_t *mine = tl_alloc((size_t)w->size * sizeof(*mine));
    unsigned char **sent = tl_alloc((size_t)w->size * sizeof(*sent));
    unsigned char **results = tl_alloc((size_t)w->size * sizeof(*results));

    for (int r = 0; r < w->size; r++) {
        update_t theirs = plan(round, r, w->rank);

        fill(theirs.element, w->base + r * SLOT, SLOT, slot_seed(round, r, w->rank));
        drop(&theirs);
        mine[r] = plan(round, w->rank, r);
        sent[r] = tl_alloc((size_t)mine[r].origin.span);
        results[r] = tl_alloc((size_t)mine[r].result.span);
        fill(mine[r].element, sent[r], mine[r].origin.span, mine[r].seed);
        memset(results[r], 0x5A, (size_t)mine[r].result.span);
    }
    tl_begin(w, sync);
    for (int r = 0; r < w->size; r++)
        issue(w, &mine[r], r, sent[r], results[r]);
    tl_end(w, sync);
    for (int r = 0; r < w->size; r++) {
        check_result(w, &mine[r], round, r, results[r]);
        check_slot(w, round, r);
        drop(&mine[r]);
        free(sent[r]);
        free(results[r]);
    }
    free(mine);
    free(sent);
    free(results);
    MPI_Barrier(w->comm);
}

/* ---- megabytes ---- */

#define BIG 400000

/**
 * All ranks add to the same doubles of one rank, every second of which is in the target type;
 * the origin type is another. Sums are exact in any order.
 */
static void add_large(const tl_window_t *w, int target, bool fetch)
{
    MPI_Datatype vector, every_third;
    double *values = tl_alloc(3 * BIG * sizeof(double)), *old = tl_alloc(BIG * sizeof(double));
    double *mine = (double *)(void *)w->base;

    MPI_Type_vector(BIG, 1, 2, MPI_DOUBLE, &vector);
    MPI_Type_commit(&vector);
    MPI_Type_create_resized(MPI_DOUBLE, 0, 3 * sizeof(double), &every_third);
    MPI_Type_commit(&every_third);
    for (int i = 0; i < BIG; i++)
        values[3 * i] = i + w->rank;
    for (int i = 0; i < 2 * BIG; i++)
        mine[i] = 0.25 * (i % 4);
    tl_begin(w, TL_LOCK_ALL);
    if (fetch) {
        TL_MPI(MPI_Get_accumulate(values, BIG, every_third, old, BIG, MPI_DOUBLE, target,
                                  tl_disp(w, target, 0), 1, vector, MPI_SUM, w->win));
    } else {
        TL_MPI(MPI_Accumulate(values, BIG, every_third, target, tl_disp(w, target, 0), 1, vector,
                              MPI_SUM, w->win));
    }
    tl_end(w, TL_LOCK_ALL);
    int wrong = 0, wrong_old = 0, all = w->size, ranks = all * (all - 1) / 2;

    for (int i = 0; i < 2 * BIG; i++) {
        double sum = i % 2 == 0 && w->rank == target ? (double)all * (i / 2) + ranks : 0;

        wrong += mine[i] != sum + 0.25 * (i % 4);
    }
    for (int i = 0; fetch && i < BIG; i++)
        wrong_old += old[i] < 0 || old[i] > (double)all * (i + all) + 1;
    TL_CHECK(wrong == 0, "%s: %d of %d doubles wrong", tl_kind_name(w->kind), wrong, 2 * BIG);
    TL_CHECK(wrong_old == 0, "%s: %d fetched doubles wrong", tl_kind_name(w->kind), wrong_old);
    free(values);
    free(old);
    MPI_Type_free(&every_third);
    MPI_Type_free(&vector);
    MPI_Barrier(w->comm);
}

/** A record of two types into room for three: Open MPI lets such be replaced. */
static void replace_record(const tl_window_t *w)
{
    typedef struct record {
        double d;
        int i;
    } record_t;
    const record_t one = {1.5, 7};
    const record_t *mine = (const record_t *)(const void *)w->base;
    const MPI_Aint places[] = {offsetof(record_t, d), offsetof(record_t, i)};
    const MPI_Datatype types[] = {MPI_DOUBLE, MPI_INT};
    const int lengths[] = {1, 1}, t = (w->rank + 1) % w->size;
    MPI_Datatype bare, type;

    MPI_Type_create_struct(2, lengths, places, types, &bare);
    MPI_Type_create_resized(bare, 0, sizeof(record_t), &type);
    MPI_Type_commit(&type);
    memset(w->base, 9, 3 * sizeof(one));
    tl_begin(w, TL_FENCE);
    TL_MPI(MPI_Accumulate(&one, 1, type, t, tl_disp(w, t, 0), 3, type, MPI_REPLACE, w->win));
    tl_end(w, TL_FENCE);
    TL_CHECK(mine->d == 1.5 && mine->i == 7, "%g, %d", mine->d, mine->i);
    TL_FILL(mine + 1, 9, 2 * sizeof(one), "what was not written");
    MPI_Type_free(&bare);
    MPI_Type_free(&type);
    MPI_Barrier(w->comm);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        tl_window_t w = tl_win_make(kind, tl_size() * SLOT, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
        int rounds = (tl_slow() ? ROUNDS / 4 : ROUNDS) * tl_factor();

        for (int round = 0; round < rounds; round++)
            random_round(&w, (tl_sync_t)(round % TL_SYNCS), round);
        tl_win_free(&w);
        w = tl_win_make(kind, 2 * BIG * sizeof(double), 1, MPI_COMM_WORLD, MPI_INFO_NULL);
        replace_record(&w);
        for (int target = 0; target < w.size; target++)
            add_large(&w, target, target % 2 == 1);
        tl_win_free(&w);
    }
    return tl_finish();
}
