/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Each rank has an area at each target for itself, and a model of it. It draws operations of all
 * calls, sizes, layouts and targets, several before it waits for any, and knows from the model what
 * each must find and leave: what an origin has written to a target is found there by what it does
 * next, and no later write is overtaken by an earlier one, however they travel. MPI promises that
 * for accumulates only; programs rely on it for the others, too (docs/osc_nicstride.md). What was
 * fetched is not written again before the origin has waited. Behind a local flush, and behind a
 * request, sources are changed at once.
 *
 * Profiles say how long operations are and how many there are between two waits: few and short ones
 * are answered by themselves, many travel together, long ones go by what the table says, and
 * irregular types that come again have their block lists kept, while handles are freed and used
 * again for other types.
 */
#include "test/mpi/random_operations.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/mpi/busy_lock.h"
#include "test/mpi/counter.h"
#include "test/mpi/p2p.h"
#include "test/mpi/rma.h"
#include "test/mpi/testlib.h"

enum { LENGTHS = 4, TYPES = 14, BUSY_MS = 5, AWAY_USEC = 2000, WORD = 8 };

typedef struct profile {
    const char *name;
    int words;            /**< of 8 bytes, that an origin has at each target */
    int most;             /**< operations before it waits */
    int rounds;           /**< of a kind of window */
    int lengths[LENGTHS]; /**< elements at most, one of these by lot */
    bool irregular;       /**< types are irregular, and used again */
} profile_t;

static const profile_t profiles[] = {{"few", 48, 4, 400, {1, 1, 4, 40}, false},
                                     {"many", 1200, 300, 16, {1, 1, 4, 200}, false},
                                     {"long", 80000, 6, 16, {1, 600, 5000, 40000}, false},
                                     {"lists", 4000, 8, 60, {900, 900, 900, 900}, true}};
enum { PROFILES = sizeof(profiles) / sizeof(*profiles) };

/** How accesses of a round are synchronised. The first two are each rank's own. */
typedef enum mode { FLUSHES, LOCKS, FENCE, PSCW, MODES } sync_t;

/** Elements of an area, in their order: `at` counts elements from the first one that MPI is told
 *  of. */
typedef struct layout {
    int n, least, span; /**< least: the lowest of them, 0 or less */
    int *at;
    MPI_Datatype type;
    int count;
} layout_t;

typedef struct operation {
    rma_t call;
    int target, n, size, first;
    const char *shape;
    MPI_Request request;
    unsigned char *source, *result, *expected; /**< of n elements each */
    unsigned char compare[WORD];
} operation_t;

/** Of bytes at a target, since the last wait: a get may find what a later write leaves, and what
 *  fetches by an accumulate what a later put leaves. */
enum { GOT = 1, FETCHED = 2 };

typedef struct area {
    unsigned char *now, *mark;
} area_t;

static const profile_t *profile;
static const tl_window_t *window;
static area_t *areas; /**< of each target */
static operation_t *operations;
static int started;
static layout_t kept[TYPES];
/** Numbers of this rank, and such as all draw alike. */
static tl_rng_t rng, common;

static const MPI_Datatype types[] = {MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T};
static const MPI_Op ops[] = {MPI_REPLACE, MPI_SUM, MPI_BXOR, MPI_NO_OP};

static int draw(int low, int high)
{
    return (int)tl_range(&rng, low, high);
}

static bool one_in(int n)
{
    return draw(1, n) == 1;
}

static MPI_Datatype basic(int size)
{
    return types[size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3];
}

static size_t area_bytes(void)
{
    return (size_t)profile->words * WORD / (tl_slow() && profile->words > 10000 ? 8 : 1);
}

static MPI_Aint at(int target, MPI_Aint offset)
{
    return tl_disp(window, target, (MPI_Aint)((size_t)window->rank * area_bytes()) + offset);
}

/* ---- layouts --------------------------------------------------------------------------------- */

static const char *const shapes[] = {"contiguous", "strided", "irregular", "backwards"};

/** Of at most `n` elements in an area of `room`; of the shape, or of a simpler one where there is
 *  no room. */
static layout_t make_layout(tl_rng_t *numbers, int shape, int n, int size, int room)
{
    layout_t l = {.n = n < room ? n : room, .type = basic(size)};
    int block = 1 << tl_range(numbers, 0, 4), gap = (int)tl_range(numbers, 1, 2 * block);

    if (shape == 1 && (l.n < 2 * block || (l.n / block) * (block + gap) > room))
        block = gap = 1;
    if ((shape == 1 || shape == 2) && 4 * l.n > room)
        l.n = room / 4;
    if (l.n < 2)
        shape = 0;
    if (l.n == 0)
        l.n = 1;
    if (shape == 1)
        l.n -= l.n % block;
    l.count = shape == 0 ? l.n : 1;
    l.at = tl_alloc((size_t)l.n * sizeof(int));
    for (int i = 0, next = 0; i < l.n; i++) {
        l.at[i] = shape == 3 ? -i : next;
        next += shape == 1 && i % block == block - 1 ? gap + 1
                : shape == 2                         ? (int)tl_range(numbers, 1, 4)
                                                     : 1;
    }
    l.least = shape == 3 ? 1 - l.n : 0;
    l.span = (shape == 3 ? 0 : l.at[l.n - 1]) - l.least + 1;
    if (shape == 1)
        TL_MPI(MPI_Type_vector(l.n / block, block, block + gap, l.type, &l.type));
    else if (shape != 0)
        TL_MPI(MPI_Type_create_indexed_block(l.n, 1, l.at, l.type, &l.type));
    if (shape != 0)
        TL_MPI(MPI_Type_commit(&l.type));
    return l;
}

static void free_layout(layout_t *l)
{
    int integers, addresses, datatypes, combiner;

    if (l->at == NULL)
        return;
    TL_MPI(MPI_Type_get_envelope(l->type, &integers, &addresses, &datatypes, &combiner));
    if (combiner != MPI_COMBINER_NAMED)
        TL_MPI(MPI_Type_free(&l->type));
    free(l->at);
    l->at = NULL;
}

/** Irregular types of words, which come again: two become what others were, and one is new. */
static void change_kept(void)
{
    static uint64_t seeds[TYPES];

    for (int k = 0; k < 3 || kept[TYPES - 1].at == NULL; k++) {
        const int t = kept[TYPES - 1].at == NULL ? k : draw(0, TYPES - 1);
        tl_rng_t numbers;

        free_layout(&kept[t]);
        seeds[t] += k == 2 ? TYPES : (uint64_t)t * (seeds[t] == 0);
        numbers = tl_rng(tl_seed(), seeds[t]);
        kept[t] = make_layout(&numbers, 2, (int)tl_range(&numbers, 70, profile->lengths[0]), 4,
                              (int)area_bytes() / 4);
    }
}

/* ---- operations ------------------------------------------------------------------------------ */

static uint64_t load(const unsigned char *from, int size)
{
    uint64_t value = 0;

    memcpy(&value, from, (size_t)size); /* little endian, as all that the components run on */
    return value;
}

static void apply(unsigned char *to, const unsigned char *from, int size, MPI_Op op)
{
    uint64_t value = load(from, size);

    if (op == MPI_SUM)
        value += load(to, size);
    else if (op == MPI_BXOR)
        value ^= load(to, size);
    if (op != MPI_NO_OP)
        memcpy(to, &value, (size_t)size);
}

static bool is_put(rma_t call)
{
    return call == RMA_PUT || call == RMA_RPUT;
}

/** May it write there, with what has been fetched? */
static bool may_write(const area_t *a, rma_t call, const layout_t *l, int first, int size)
{
    for (int i = 0; i < l->n; i++)
        for (int k = 0; k < size; k++)
            if (a->mark[(first + l->at[i]) * size + k] & (is_put(call) ? GOT | FETCHED : GOT))
                return false;
    return true;
}

/** What it must find, and what is there then. */
static void model(operation_t *o, const layout_t *l, MPI_Op op)
{
    area_t *a = &areas[o->target];

    for (int i = 0; i < l->n; i++) {
        unsigned char *there = a->now + (size_t)(o->first + l->at[i]) * (size_t)o->size;
        const unsigned char *from = o->source + (size_t)i * (size_t)o->size;

        memcpy(o->expected + (size_t)i * (size_t)o->size, there, (size_t)o->size);
        memset(a->mark + (there - a->now),
               a->mark[there - a->now] | (!rma_writes(o->call)   ? GOT
                                          : rma_fetches(o->call) ? FETCHED
                                                                 : 0),
               (size_t)o->size);
        if (o->call == RMA_COMPARE_AND_SWAP ? memcmp(o->compare, there, (size_t)o->size) == 0
                                            : rma_writes(o->call))
            apply(there, from, o->size, op);
    }
}

static void begin(operation_t *o, const layout_t *l, MPI_Op op)
{
    rma_given_t g = rma_plain(o->source, o->result, o->n, basic(o->size), o->target,
                              at(o->target, (MPI_Aint)o->first * o->size), window->win);

    g.compare = o->compare;
    /* The value to compare with may lie where the result goes. */
    if (o->call == RMA_COMPARE_AND_SWAP && one_in(2))
        g.compare = memcpy(o->result, o->compare, (size_t)o->size);
    g.op = op;
    if (!rma_is_single(o->call)) {
        g.n = l->count;
        g.type = l->type;
    }
    TL_MPI(rma_call(o->call, &g, &o->request));
}

static void check_result(operation_t *o)
{
    if (rma_fetches(o->call) && o->expected != NULL)
        TL_BYTES(o->result, o->expected, (size_t)(o->n * o->size),
                 "%s, %s: operation %d, %s of %d elements of %d bytes, %s, from %d at rank %d",
                 profile->name, tl_kind_name(window->kind), (int)(o - operations),
                 rma_names[o->call], o->n, o->size, o->shape, o->first, o->target);
    free(o->expected);
    o->expected = NULL;
}

/** The origin's buffers are its own again. */
static void scribble(const operation_t *o)
{
    memset(o->source, 0xEE, (size_t)(o->n * o->size));
}

/** One operation. All accumulates between two waits have elements of `size` bytes, as MPI wants it.
 */
static void operate(int target, int size, bool requests)
{
    operation_t *o = &operations[started];
    layout_t made, *l = &made;
    MPI_Status status;
    MPI_Op op;
    int room, longest = profile->lengths[draw(0, LENGTHS - 1)];

    *o = (operation_t){.call = (rma_t)draw(0, requests ? RMA_CALLS - 1 : RMA_RPUT - 1),
                       .target = target,
                       .request = MPI_REQUEST_NULL};
    const bool single = rma_is_single(o->call);
    const bool plain = is_put(o->call) || !rma_writes(o->call);

    o->size = plain && !profile->irregular ? 1 << draw(0, 3) : size;
    room = (int)area_bytes() / o->size;
    if (profile->irregular && !single) {
        l = &kept[one_in(2) ? draw(0, TYPES - 1) : draw(0, 2)];
        o->shape = "kept";
    } else {
        const int shape = single ? 0 : draw(0, 3);

        made = make_layout(&rng, shape, single ? 1 : draw(1, longest), o->size, room);
        o->shape = shapes[shape];
    }
    o->n = l->n;
    /* A long operation reaches the end last, where short ones meet it. */
    o->first = (one_in(2) ? room - l->span - draw(0, room - l->span < 16 ? room - l->span : 16)
                          : draw(0, room - l->span)) -
               l->least;
    if (rma_writes(o->call) && !may_write(&areas[target], o->call, l, o->first, o->size))
        o->call = RMA_GET;
    o->source = tl_alloc((size_t)(o->n * o->size));
    o->result = tl_alloc((size_t)(o->n * o->size));
    o->expected = tl_alloc((size_t)(o->n * o->size));
    tl_fill_random(o->source, (size_t)(o->n * o->size), tl_random(&rng));
    op = is_put(o->call) || o->call == RMA_COMPARE_AND_SWAP
             ? MPI_REPLACE
             : ops[draw(0, rma_fetches(o->call) ? 3 : 2)];
    /* Open MPI adds short unsigned numbers up to their highest value, with some processors. */
    if (op == MPI_SUM && o->size < 4)
        op = MPI_BXOR;
    memcpy(o->compare, areas[target].now + (size_t)o->first * (size_t)o->size, (size_t)o->size);
    o->compare[0] ^= (unsigned char)one_in(3);
    model(o, l, op);
    started++;
    begin(o, l, op);
    if (l == &made)
        free_layout(&made);
    if (o->request == MPI_REQUEST_NULL || one_in(3))
        return;
    if (one_in(6)) {
        TL_MPI(MPI_Request_free(&o->request));
        return;
    }
    p2p_complete(&o->request, &status, draw(0, 7));
    check_result(o);
    scribble(o);
}

/** What was fetched is there, and what is written next may be anywhere. */
static void check_all(void)
{
    for (int i = 0; i < started; i++) {
        operation_t *o = &operations[i];

        TL_MPI(MPI_Wait(&o->request, MPI_STATUS_IGNORE));
        check_result(o);
        free(o->source);
        free(o->result);
    }
    started = 0;
    for (int target = 0; target < window->size; target++)
        memset(areas[target].mark, 0, area_bytes());
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/** To one target for a while, then to another. */
static void operate_many(bool requests, const bool *allowed)
{
    const int n = one_in(3) ? 1 : draw(1, profile->most), stay = draw(1, 40);
    const int size = profile->irregular ? 4 : 1 << draw(0, 3);
    int target = draw(0, window->size - 1);

    for (int i = 0; i < n; i++) {
        if (i % stay == stay - 1)
            target = draw(0, window->size - 1);
        while (allowed != NULL && !allowed[target])
            target = (target + 1) % window->size;
        operate(target, size, requests);
        if (requests && one_in(150))
            TL_MPI(MPI_Win_flush_local(target, window->win));
    }
}

static void flush(void)
{
    const bool local = one_in(3);

    if (local) {
        for (int target = 0; target < window->size; target++)
            TL_MPI(MPI_Win_flush_local(target, window->win));
        for (int i = 0; i < started; i++) {
            check_result(&operations[i]);
            scribble(&operations[i]);
        }
    }
    if (one_in(2))
        TL_MPI(MPI_Win_flush_all(window->win));
    else
        for (int target = 0; target < window->size; target++)
            TL_MPI(MPI_Win_flush(target, window->win));
    check_all();
}

/** Locks of some targets at once, shared or not, given back one by one while others go on. All ask
 *  for them in one order. */
static void under_locks(void)
{
    bool *locked = tl_alloc((size_t)window->size);

    for (int target = 0, sure = draw(0, window->size - 1); target < window->size; target++)
        if ((locked[target] = target == sure || one_in(2)))
            TL_MPI(MPI_Win_lock(one_in(3) ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0,
                                window->win));
    operate_many(true, locked);
    for (int k = 0, first = draw(0, window->size - 1); k < window->size; k++) {
        const int target = (first + k) % window->size;

        if (locked[target])
            TL_MPI(MPI_Win_unlock(target, window->win));
    }
    check_all();
    free(locked);
}

/** Each rank by itself, and now and then one of them is away, or has accumulates to its memory
 *  wait. */
static void under_lock_all(void)
{
    const int out = (int)tl_range(&common, 0, 2 * window->size);
    const bool busy = out == 0 && window->size > 1 && window->kind != TL_SHARED;

    TL_MPI(MPI_Win_lock_all(0, window->win));
    for (int i = 0; i < 8; i++) {
        if (busy && window->rank == 0)
            busy_lock_hold(window, (MPI_Aint)((size_t)window->size * area_bytes()), 1, BUSY_MS,
                           NULL);
        else if (out == window->rank)
            usleep(AWAY_USEC);
        operate_many(true, NULL);
        flush();
    }
    TL_MPI(MPI_Win_unlock_all(window->win));
}

static void check_areas(void)
{
    enum { ENOUGH = 20 };
    unsigned char *got = tl_alloc(area_bytes());

    for (int target = 0; target < window->size; target++) {
        TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window->win));
        TL_MPI(MPI_Get(got, (int)area_bytes(), MPI_BYTE, target, at(target, 0), (int)area_bytes(),
                       MPI_BYTE, window->win));
        TL_MPI(MPI_Win_unlock(target, window->win));
        TL_BYTES(got, areas[target].now, area_bytes(), "%s, %s: memory of rank %d", profile->name,
                 tl_kind_name(window->kind), target);
    }
    /* And by the target's own loads. */
    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, window->rank, 0, window->win));
    for (int k = 0; k < window->size; k++) {
        const int to = (window->rank + k) % window->size,
                  from = (window->rank + window->size - k) % window->size;

        TL_MPI(MPI_Sendrecv(areas[to].now, (int)area_bytes(), MPI_BYTE, to, 0, got,
                            (int)area_bytes(), MPI_BYTE, from, 0, window->comm, MPI_STATUS_IGNORE));
        TL_BYTES(window->base + (size_t)from * area_bytes(), got, area_bytes(),
                 "%s, %s: what rank %d has left here", profile->name, tl_kind_name(window->kind),
                 from);
    }
    TL_MPI(MPI_Win_unlock(window->rank, window->win));
    free(got);
    if (tl_failed() > ENOUGH)
        tl_die("the rest follows from this");
}

static void run(tl_kind_t kind)
{
    tl_window_t w = tl_win_make(kind, (MPI_Aint)((size_t)tl_size() * area_bytes() + WORD), 1,
                                MPI_COMM_WORLD, MPI_INFO_NULL);
    const int rounds =
        (tl_slow() ? profile->rounds / 8 + 1 : profile->rounds) * tl_factor() / 8 + 4;

    window = &w;
    operations = tl_alloc((size_t)profile->most * sizeof(*operations));
    areas = tl_alloc((size_t)w.size * sizeof(*areas));
    for (int target = 0; target < w.size; target++)
        areas[target] = (area_t){tl_alloc(area_bytes()), tl_alloc(area_bytes())};
    for (int round = 0; round < rounds; round++) {
        const sync_t mode = (sync_t)(round < MODES ? round : tl_range(&common, 0, MODES - 1));

        if (profile->irregular)
            change_kept();
        if (mode == FLUSHES) {
            under_lock_all();
        } else if (mode == LOCKS) {
            under_locks();
        } else {
            tl_begin(&w, mode == FENCE ? TL_FENCE : TL_PSCW);
            operate_many(false, NULL);
            tl_end(&w, mode == FENCE ? TL_FENCE : TL_PSCW);
            check_all();
        }
        /* Nobody's window is exposed any more, by a post, when it is locked. */
        MPI_Barrier(w.comm);
        if (round % 4 == 3)
            check_areas();
        MPI_Barrier(w.comm);
    }
    check_areas();
    MPI_Barrier(w.comm);
    for (int target = 0; target < w.size; target++) {
        free(areas[target].now);
        free(areas[target].mark);
    }
    for (int t = 0; t < TYPES; t++)
        free_layout(&kept[t]);
    free(areas);
    free(operations);
    tl_win_free(&w);
}

/* ---- was it what is tested? ------------------------------------------------------------------ */

static bool is_set(const char *name, const char *value)
{
    const char *set = getenv(name);

    return set != NULL && strcmp(set, value) == 0;
}

/** What must have happened, if not with which window, then with some. */
static const struct {
    const char *counter, *method; /**< NULL: any */
    bool apart; /**< only where each process is a node of its own; else only where not */
} expected[] = {{"osc_nicstride_ops_pipeline", "pipeline", false},
                {"osc_nicstride_lists_named", NULL, true},
                {"osc_nicstride_layouts_found", NULL, true}};
enum { EXPECTED = sizeof(expected) / sizeof(*expected) };

void random_operations(void)
{
    counter_t *counters[EXPECTED];
    unsigned long long own[EXPECTED], sum[EXPECTED];
    bool private_windows = false, apart;
    int level;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    rng = tl_rng(tl_seed(), 1 + (uint64_t)tl_rank());
    common = tl_rng(tl_seed(), 0);
    apart = is_set("OMPI_MCA_osc_nicstride_node", "0") && tl_size() > 1;
    for (int i = 0; i < EXPECTED; i++)
        counters[i] = counter_begin(expected[i].counter);
    tl_shared_needs((MPI_Aint)tl_size() * profiles[2].words * WORD);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        private_windows = private_windows || kind == TL_CREATE || kind == TL_DYNAMIC;
        for (int i = 0; i < PROFILES; i++) {
            profile = &profiles[i];
            run(kind);
        }
    }
    for (int i = 0; i < EXPECTED; i++)
        own[i] = counter_read(counters[i]);
    MPI_Allreduce(own, sum, EXPECTED, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < EXPECTED; i++) {
        if (counters[i] != NULL && tl_size() > 1 && private_windows && expected[i].apart == apart &&
            (expected[i].method == NULL ||
             is_set("OMPI_MCA_osc_nicstride_method", expected[i].method)))
            TL_CHECK(sum[i] > 0, "%s is %llu", expected[i].counter, sum[i]);
        counter_end(counters[i]);
    }
    MPI_T_finalize();
}
