/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic shared */
/**
 * @file
 * Less data than there is room for, in every call: what is not written stays, and what an
 * accumulate fetches is all of the target, whatever part of it changes. Data that do not fit are
 * refused, and write nothing.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 20000, SPREAD = 2 * MOST, ROUNDS = 12 };

/** Of each target's window this much belongs to each origin. */
#define SLOT ((MPI_Aint)SPREAD * (MPI_Aint)sizeof(long))

typedef enum shape { PLAIN, STRIDED, IRREGULAR, SHAPES } shape_t;

/** Where element `i` of a side lies, in elements. */
static int place(shape_t shape, int i)
{
    switch (shape) {
    case PLAIN:
        return i;
    case STRIDED:
        return i / 3 * 4 + i % 3;
    default:
        return 2 * i - (i % 5 == 2);
    }
}

/** A side of a call: `n` elements. */
typedef struct side {
    shape_t shape;
    int n;
    MPI_Datatype type; /* of all of them */
} side_t;

static side_t make_side(shape_t shape, int n, MPI_Datatype element)
{
    side_t s = {.shape = shape, .n = n};
    int *places = tl_alloc(((size_t)n + 1) * sizeof(*places));

    for (int i = 0; i < n; i++)
        places[i] = place(shape, i);
    MPI_Type_create_indexed_block(n, 1, places, element, &s.type);
    MPI_Type_commit(&s.type);
    free(places);
    return s;
}

typedef enum call { PUT, GET, ACC, GET_ACC, CALLS } call_t;

/** What one rank does to another; a function of the round and the two. */
typedef struct plan {
    call_t call;
    bool request, bytes; /* of MPI_SIGNED_CHAR instead of MPI_LONG */
    int op;
    side_t origin, target, result;
} plan_t;

static MPI_Op operation(const plan_t *p)
{
    return (const MPI_Op[]){MPI_SUM, MPI_REPLACE, MPI_NO_OP}[p->op];
}

static plan_t make_plan(int round, int from, int to)
{
    tl_rng_t r = tl_rng(tl_seed(), (uint64_t)((round * 64 + from) * 64 + to));
    const int most = tl_range(&r, 0, 1) ? 40 : MOST;
    plan_t p = {.call = (call_t)tl_range(&r, 0, CALLS - 1)};

    p.request = tl_range(&r, 0, 2) == 0;
    p.bytes = tl_range(&r, 0, 3) == 0;
    p.op = (int)tl_range(&r, 0, p.call == GET_ACC ? 2 : 1);
    const MPI_Datatype element = p.bytes ? MPI_SIGNED_CHAR : MPI_LONG;
    const int room = (int)tl_range(&r, 1, most), data = (int)tl_range(&r, 0, room);
    const shape_t a = (shape_t)tl_range(&r, 0, SHAPES - 1), b = (shape_t)tl_range(&r, 0, 2);

    p.origin = make_side(a, p.call == GET ? room : data, element);
    p.target = make_side(b, p.call == GET ? data : room, element);
    p.result = make_side((shape_t)tl_range(&r, 0, 2), (int)tl_range(&r, room, most), element);
    return p;
}

static void free_plan(plan_t *p)
{
    MPI_Type_free(&p->origin.type);
    MPI_Type_free(&p->target.type);
    MPI_Type_free(&p->result.type);
}

/** Element `i` of a side in its buffer. */
static long value_at(const plan_t *p, const side_t *s, const void *at, int i)
{
    return p->bytes ? ((const signed char *)at)[place(s->shape, i)]
                    : ((const long *)at)[place(s->shape, i)];
}

static void set_at(const plan_t *p, const side_t *s, void *at, int i, long value)
{
    if (p->bytes)
        ((signed char *)at)[place(s->shape, i)] = (signed char)value;
    else
        ((long *)at)[place(s->shape, i)] = value;
}

/** What the call should do. */
static void refer(const plan_t *p, void *origin, void *target, void *result)
{
    const int op = p->call == PUT ? 1 : p->op;
    const int given = op == 2 ? 0 : p->origin.n;

    for (int i = 0; p->call == GET && i < p->target.n; i++)
        set_at(p, &p->origin, origin, i, value_at(p, &p->target, target, i));
    for (int i = 0; p->call == GET_ACC && i < p->target.n; i++)
        set_at(p, &p->result, result, i, value_at(p, &p->target, target, i));
    for (int i = 0; p->call != GET && i < given; i++) {
        const long old = value_at(p, &p->target, target, i);
        const long is = value_at(p, &p->origin, origin, i);

        /* No overflow: small numbers. */
        set_at(p, &p->target, target, i, op == 0 ? old + is : is);
    }
}

/** Numbers of which two can be added in any type. */
static void fill(void *at, size_t bytes, uint64_t seed)
{
    tl_rng_t r = tl_rng(tl_seed() + seed, 1);
    unsigned char *byte = at;

    for (size_t i = 0; i < bytes; i++)
        byte[i] = i % 8 == 7 ? 0 : (unsigned char)(tl_random(&r) & 0x3f);
}

static uint64_t seed_of(int round, int from, int to, int what)
{
    return (uint64_t)(((round * 64 + from) * 64 + to) * 4 + what);
}

static void start(const tl_window_t *w, const plan_t *p, int t, void *origin, void *result)
{
    const MPI_Aint at = tl_disp(w, t, w->rank * SLOT);
    const side_t *o = &p->origin, *to = &p->target, *r = &p->result;
    MPI_Request request = MPI_REQUEST_NULL;

    switch (p->call) {
    case PUT:
        TL_MPI(p->request ? MPI_Rput(origin, 1, o->type, t, at, 1, to->type, w->win, &request)
                          : MPI_Put(origin, 1, o->type, t, at, 1, to->type, w->win));
        break;
    case GET:
        TL_MPI(p->request ? MPI_Rget(origin, 1, o->type, t, at, 1, to->type, w->win, &request)
                          : MPI_Get(origin, 1, o->type, t, at, 1, to->type, w->win));
        break;
    case ACC:
        TL_MPI(p->request
                   ? MPI_Raccumulate(origin, 1, o->type, t, at, 1, to->type, operation(p), w->win,
                                     &request)
                   : MPI_Accumulate(origin, 1, o->type, t, at, 1, to->type, operation(p), w->win));
        break;
    default:
        TL_MPI(p->request ? MPI_Rget_accumulate(origin, 1, o->type, result, 1, r->type, t, at, 1,
                                                to->type, operation(p), w->win, &request)
                          : MPI_Get_accumulate(origin, 1, o->type, result, 1, r->type, t, at, 1,
                                               to->type, operation(p), w->win));
    }
    TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

/** What is in the memories before. */
static void fill_all(int round, int from, int to, void *origin, void *target, void *result)
{
    fill(origin, SLOT, seed_of(round, from, to, 0));
    fill(target, SLOT, seed_of(round, from, to, 1));
    fill(result, SLOT, seed_of(round, from, to, 2));
}

static void one_round(const tl_window_t *w, int round)
{
    unsigned char *origin = tl_alloc((size_t)(w->size * SLOT));
    unsigned char *result = tl_alloc((size_t)(w->size * SLOT));
    unsigned char *want[3];

    for (int i = 0; i < 3; i++)
        want[i] = tl_alloc(SLOT);
    for (int t = 0; t < w->size; t++) {
        fill_all(round, w->rank, t, origin + t * SLOT, want[1], result + t * SLOT);
        fill(w->base + t * SLOT, SLOT, seed_of(round, t, w->rank, 1));
    }
    tl_begin(w, TL_LOCK_ALL);
    for (int t = 0; t < w->size; t++) {
        plan_t p = make_plan(round, w->rank, t);

        start(w, &p, t, origin + t * SLOT, result + t * SLOT);
        free_plan(&p);
    }
    tl_end(w, TL_LOCK_ALL);
    for (int t = 0; t < w->size; t++) {
        plan_t p = make_plan(round, w->rank, t);

        fill_all(round, w->rank, t, want[0], want[1], want[2]);
        refer(&p, want[0], want[1], want[2]);
        TL_BYTES(origin + t * SLOT, want[0], SLOT, "round %d, call %d, origin of rank %d", round,
                 p.call, t);
        TL_BYTES(result + t * SLOT, want[2], SLOT, "round %d, call %d, result of rank %d", round,
                 p.call, t);
        free_plan(&p);
        p = make_plan(round, t, w->rank);
        fill_all(round, t, w->rank, want[0], want[1], want[2]);
        refer(&p, want[0], want[1], want[2]);
        TL_BYTES(w->base + t * SLOT, want[1], SLOT, "round %d, call %d, target of rank %d", round,
                 p.call, t);
        free_plan(&p);
    }
    MPI_Barrier(w->comm);
    free(origin);
    free(result);
    for (int i = 0; i < 3; i++)
        free(want[i]);
}

/* ---- at the edges ---- */

#define REFUSED(call) TL_MPI_ERROR(call, MPI_ERR_TYPE)

/** Data that do not fit, by one element. */
static void too_long(const tl_window_t *w, int t)
{
    const MPI_Aint at = tl_disp(w, t, 0);
    long a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8};
    MPI_Request r;

    memset(w->base, 9, SLOT);
    tl_begin(w, TL_LOCK_ALL);
    REFUSED(MPI_Put(a, 3, MPI_LONG, t, at, 2, MPI_LONG, w->win));
    REFUSED(MPI_Rput(a, 3, MPI_LONG, t, at, 2, MPI_LONG, w->win, &r));
    REFUSED(MPI_Get(a, 2, MPI_LONG, t, at, 3, MPI_LONG, w->win));
    REFUSED(MPI_Accumulate(a, 3, MPI_LONG, t, at, 2, MPI_LONG, MPI_SUM, w->win));
    REFUSED(
        MPI_Get_accumulate(a, 3, MPI_LONG, b, 4, MPI_LONG, t, at, 2, MPI_LONG, MPI_SUM, w->win));
    REFUSED(
        MPI_Get_accumulate(a, 1, MPI_LONG, b, 2, MPI_LONG, t, at, 3, MPI_LONG, MPI_SUM, w->win));
    REFUSED(MPI_Get_accumulate(NULL, 0, MPI_LONG, b, 2, MPI_LONG, t, at, 3, MPI_LONG, MPI_NO_OP,
                               w->win));
    /* To nobody anything may go. */
    TL_MPI(MPI_Put(a, 3, MPI_LONG, MPI_PROC_NULL, 0, 2, MPI_LONG, w->win));
    TL_MPI(MPI_Get(a, 2, MPI_LONG, MPI_PROC_NULL, 0, 3, MPI_LONG, w->win));
    TL_MPI(MPI_Put(a, 1, MPI_LONG, MPI_PROC_NULL, 0, 2, MPI_LONG, w->win));
    tl_end(w, TL_LOCK_ALL);
    TL_CHECK(a[0] == 1 && a[1] == 2 && a[2] == 3 && b[0] == 5 && b[1] == 6, "a buffer has changed");
    TL_FILL(w->base, 9, SLOT, "the window has changed");
}

/** All that is named must be in the window; of a dynamic one what is written. */
static void named_beyond(const tl_window_t *w, int t)
{
    const MPI_Aint last = tl_disp(w, t, w->size * SLOT - (MPI_Aint)sizeof(long));
    long *mine = (long *)(void *)(w->base + w->size * SLOT) - 1, a = 77;

    *mine = 1;
    tl_begin(w, TL_LOCK_ALL);
    if (w->kind != TL_DYNAMIC)
        TL_MPI_ERROR(MPI_Put(&a, 1, MPI_LONG, t, last, 2, MPI_LONG, w->win), MPI_ERR_RMA_RANGE);
    else
        TL_MPI(MPI_Put(&a, 1, MPI_LONG, t, last, 2, MPI_LONG, w->win));
    tl_end(w, TL_LOCK_ALL);
    TL_CHECK(*mine == (w->kind == TL_DYNAMIC ? 77 : 1), "%ld", *mine);
}

/** Records of two types, one put into room for three; Open MPI lets them be replaced, too. */
static void records(const tl_window_t *w, int t)
{
    typedef struct record {
        double d;
        int i;
    } record_t;
    const record_t a[1] = {{1.5, 7}};
    record_t *mine = (record_t *)(void *)w->base;
    const MPI_Aint places[] = {offsetof(record_t, d), offsetof(record_t, i)};
    const MPI_Datatype types[] = {MPI_DOUBLE, MPI_INT};
    const int lengths[] = {1, 1};
    MPI_Datatype bare, type;

    MPI_Type_create_struct(2, lengths, places, types, &bare);
    MPI_Type_create_resized(bare, 0, sizeof(record_t), &type);
    MPI_Type_commit(&type);
    for (int replace = 0; replace < 2; replace++) {
        memset(w->base, 9, SLOT);
        tl_begin(w, TL_LOCK_ALL);
        if (replace)
            TL_MPI(MPI_Accumulate(a, 1, type, t, tl_disp(w, t, 0), 3, type, MPI_REPLACE, w->win));
        else
            TL_MPI(MPI_Put(a, 1, type, t, tl_disp(w, t, 0), 3, type, w->win));
        tl_end(w, TL_LOCK_ALL);
        TL_CHECK(mine->d == 1.5 && mine->i == 7, "%g, %d", mine->d, mine->i);
        TL_FILL(mine + 1, 9, SLOT - (MPI_Aint)sizeof(*mine), "what was not written");
    }
    MPI_Type_free(&bare);
    MPI_Type_free(&type);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_shared_needs(tl_size() * SLOT);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        tl_window_t w = tl_win_make(kind, tl_size() * SLOT, 1, MPI_COMM_WORLD, MPI_INFO_NULL);

        for (int round = 0; round < ROUNDS * tl_factor() / (tl_slow() ? 4 : 1); round++)
            one_round(&w, round);
        for (int i = 0; i < 2; i++) {
            const int t = (w.rank + i) % w.size;

            too_long(&w, t);
            named_beyond(&w, t);
            records(&w, t);
        }
        tl_win_free(&w);
    }
    return tl_finish();
}
