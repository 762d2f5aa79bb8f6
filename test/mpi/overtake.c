/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-3 */
/* windows: create allocate dynamic shared */
/**
 * @file
 * What one origin writes to one target it finds there by whatever it does next, and a later write
 * is not overtaken by an earlier one, with no flush between them: every call that writes before
 * every call that reads and every other that writes, with a request or without, contiguous and
 * strided, short and long, so that they go by different methods. MPI promises that for accumulates
 * only; programs rely on it for the others, too (docs/osc_nicstride.md).
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "test/mpi/busy_lock.h"
#include "test/mpi/testlib.h"

typedef enum writer { PUT, RPUT, REPLACE, RREPLACE, SUM, WRITERS } writer_t;

/** The last two write, too. */
typedef enum reader {
    GET,
    RGET,
    FETCH,
    RFETCH,
    FETCH_ONE,
    COMPARE,
    ADD_ONE,
    SWAP,
    READERS
} reader_t;

enum {
    BLOCK = 4, /**< elements of a block, and as many between two */
    LONGEST = 40000,
    AREA = 2 * LONGEST, /**< elements that an origin has at each target */
    TOGETHER = 3,       /**< most writes before a read */
    GROUPS = 150,
    BUSY_MS = 30
};

static const char *const writer_names[] = {"put", "rput", "accumulate", "raccumulate", "sum"};
static const char *const reader_names[] = {"get",
                                           "rget",
                                           "get_accumulate",
                                           "rget_accumulate",
                                           "fetch_and_op",
                                           "compare_and_swap without",
                                           "sum of one",
                                           "compare_and_swap"};

/** Short ones travel together, or in one message; longer ones each by what the table says. */
static const int sizes[] = {1, 40, 600, 5000, LONGEST};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/** Elements of an area. */
typedef struct part {
    int n;
    bool strided;
} part_t;

/** My area at one target, as it must be. */
typedef struct area {
    const tl_window_t *w;
    int target;
    int64_t *model;
    int64_t *source[TOGETHER]; /**< of the writes of a group */
    int64_t *got, *expected;
    int64_t last; /**< value that was written */
    int64_t one, compare;
} area_t;

static int most_sizes(void)
{
    return tl_slow() ? SIZES - 1 : SIZES;
}

static int place(part_t p, int k)
{
    return p.strided ? k / BLOCK * 2 * BLOCK + k % BLOCK : k;
}

/** The part as a datatype and its count. */
static MPI_Datatype type_of(part_t p, int *count)
{
    MPI_Datatype type;

    *count = p.n;
    if (!p.strided || p.n < BLOCK)
        return MPI_INT64_T;
    *count = 1;
    TL_MPI(MPI_Type_vector(p.n / BLOCK, BLOCK, 2 * BLOCK, MPI_INT64_T, &type));
    TL_MPI(MPI_Type_commit(&type));
    return type;
}

static void free_type(MPI_Datatype *type)
{
    if (*type != MPI_INT64_T)
        MPI_Type_free(type);
}

static MPI_Aint at(const area_t *a, int element)
{
    return tl_disp(a->w, a->target,
                   ((MPI_Aint)a->w->rank * AREA + element) * (MPI_Aint)sizeof(int64_t));
}

/** Writes new values. The memory at `from` may be used again after a local flush. */
static void do_write(area_t *a, writer_t how, part_t p, int64_t *from)
{
    const MPI_Op op = how == SUM ? MPI_SUM : MPI_REPLACE;
    const int t = a->target;
    const MPI_Aint d = at(a, 0);
    MPI_Win win = a->w->win;
    MPI_Request r = MPI_REQUEST_NULL;
    MPI_Datatype type;
    int n;

    a->last += AREA;
    for (int k = 0; k < p.n; k++) {
        int64_t *e = &a->model[place(p, k)];

        from[k] = a->last + k;
        *e = how == SUM ? *e + from[k] : from[k];
    }
    type = type_of(p, &n);
    switch (how) {
    case PUT:
        TL_MPI(MPI_Put(from, p.n, MPI_INT64_T, t, d, n, type, win));
        break;
    case RPUT:
        TL_MPI(MPI_Rput(from, p.n, MPI_INT64_T, t, d, n, type, win, &r));
        break;
    case RREPLACE:
        TL_MPI(MPI_Raccumulate(from, p.n, MPI_INT64_T, t, d, n, type, op, win, &r));
        break;
    default:
        TL_MPI(MPI_Accumulate(from, p.n, MPI_INT64_T, t, d, n, type, op, win));
        break;
    }
    TL_MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
    free_type(&type);
}

/** Reads, and notes what it must find; a read with a request has it then. */
static void do_read(area_t *a, reader_t how, part_t p)
{
    const int t = a->target, middle = place(p, p.n / 2);
    const MPI_Aint d = at(a, 0), one = at(a, middle);
    int64_t *e = &a->model[middle];
    MPI_Win win = a->w->win;
    MPI_Request r = MPI_REQUEST_NULL;
    MPI_Datatype type;
    int n;

    for (int k = 0; k < p.n; k++)
        a->expected[k] = a->model[place(p, k)];
    if (how >= FETCH_ONE)
        a->expected[0] = *e;
    type = type_of(p, &n);
    a->one = ++a->last;
    a->compare = how == SWAP ? *e : -1;
    switch (how) {
    case GET:
        TL_MPI(MPI_Get(a->got, p.n, MPI_INT64_T, t, d, n, type, win));
        break;
    case RGET:
        TL_MPI(MPI_Rget(a->got, p.n, MPI_INT64_T, t, d, n, type, win, &r));
        break;
    case FETCH:
        TL_MPI(MPI_Get_accumulate(NULL, 0, MPI_INT64_T, a->got, p.n, MPI_INT64_T, t, d, n, type,
                                  MPI_NO_OP, win));
        break;
    case RFETCH:
        TL_MPI(MPI_Rget_accumulate(NULL, 0, MPI_INT64_T, a->got, p.n, MPI_INT64_T, t, d, n, type,
                                   MPI_NO_OP, win, &r));
        break;
    case FETCH_ONE:
        TL_MPI(MPI_Fetch_and_op(NULL, a->got, MPI_INT64_T, t, one, MPI_NO_OP, win));
        break;
    case ADD_ONE:
        TL_MPI(MPI_Fetch_and_op(&a->one, a->got, MPI_INT64_T, t, one, MPI_SUM, win));
        *e += a->one;
        break;
    default:
        TL_MPI(MPI_Compare_and_swap(&a->one, &a->compare, a->got, MPI_INT64_T, t, one, win));
        if (how == SWAP)
            *e = a->one;
        break;
    }
    TL_MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
    free_type(&type);
}

/** Writes, and a read that is to find them all. */
typedef struct group {
    int writes;
    writer_t writer[TOGETHER];
    part_t part[TOGETHER];
    reader_t reader;
    part_t read;
} group_t;

static void begin_group(area_t *a, const group_t *g)
{
    for (int i = 0; i < g->writes; i++)
        do_write(a, g->writer[i], g->part[i], a->source[i]);
    do_read(a, g->reader, g->read);
}

static void end_group(const area_t *a, const group_t *g, const char *sync)
{
    const int n = g->reader >= FETCH_ONE ? 1 : g->read.n, last = g->writes - 1;
    int wrong = 0, first = 0;

    for (int k = n - 1; k >= 0; k--) {
        if (a->got[k] == a->expected[k])
            continue;
        first = k;
        wrong++;
    }
    TL_CHECK(wrong == 0,
             "%s, %s: %d of %d elements are wrong behind %d writes (last: %s of %d%s), read by %s "
             "from %d%s; element %d is %ld, not %ld",
             tl_kind_name(a->w->kind), sync, wrong, n, g->writes, writer_names[g->writer[last]],
             g->part[last].n, g->part[last].strided ? " strided" : "", reader_names[g->reader],
             a->target, g->read.strided ? ", strided" : "", first, (long)a->got[first],
             (long)a->expected[first]);
}

/** In a passive epoch: no more is waited for than that the call's own buffers may be used. */
static void run_group(area_t *a, const group_t *g)
{
    begin_group(a, g);
    TL_MPI(MPI_Win_flush_local(a->target, a->w->win));
    end_group(a, g, "passive");
}

static part_t random_part(tl_rng_t *rng)
{
    return (part_t){sizes[tl_range(rng, 0, most_sizes() - 1)], tl_range(rng, 0, 1) != 0};
}

/** Every writer before every reader, with every pair of sizes and of layouts. */
static void all_pairs(area_t *a)
{
    for (int i = 0; i < WRITERS * READERS; i++)
        for (int size = 0; size < most_sizes() * most_sizes(); size++)
            for (int layouts = 0; layouts < 4; layouts++) {
                const group_t g = {.writes = 1,
                                   .writer = {(writer_t)(i % WRITERS)},
                                   .part = {{sizes[size % most_sizes()], (layouts & 1) != 0}},
                                   .reader = (reader_t)(i / WRITERS),
                                   .read = {sizes[size / most_sizes()], (layouts & 2) != 0}};

                /* The longest with each other take most of the time. */
                if (g.part[0].n < LONGEST || g.read.n < LONGEST || layouts == i % 4)
                    run_group(a, &g);
            }
}

static group_t random_group(tl_rng_t *rng, bool requests)
{
    static const writer_t writers[] = {PUT, REPLACE, SUM};
    static const reader_t readers[] = {GET, FETCH, FETCH_ONE, COMPARE, ADD_ONE, SWAP};
    group_t g = {.writes = (int)tl_range(rng, 1, TOGETHER), .read = random_part(rng)};

    for (int i = 0; i < g.writes; i++) {
        g.writer[i] =
            requests ? (writer_t)tl_range(rng, 0, WRITERS - 1) : writers[tl_range(rng, 0, 2)];
        g.part[i] = random_part(rng);
    }
    g.reader = requests ? (reader_t)tl_range(rng, 0, READERS - 1) : readers[tl_range(rng, 0, 5)];
    return g;
}

static void in_passive(area_t *a)
{
    tl_rng_t rng = tl_rng(tl_seed(), (uint64_t)(a->w->rank * 100 + a->target));

    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, a->target, 0, a->w->win));
    all_pairs(a);
    for (int i = 0; i < GROUPS * tl_factor(); i++) {
        const group_t g = random_group(&rng, true);

        run_group(a, &g);
    }
    TL_MPI(MPI_Win_unlock(a->target, a->w->win));
}

/** All ranks at once, each with the target that it stands before. */
static void in_active(area_t *a, tl_sync_t sync)
{
    tl_rng_t rng = tl_rng(tl_seed(), (uint64_t)(a->w->rank * 100 + a->target + 50));

    for (int i = 0; i < GROUPS / 5 * tl_factor(); i++) {
        const group_t g = random_group(&rng, false);

        tl_begin(a->w, sync);
        begin_group(a, &g);
        tl_end(a->w, sync);
        end_group(a, &g, tl_sync_name(sync));
    }
}

/* ---- accumulates that are put off ---------------------------------------------------------- */

/** In memory that the ranks of a host share: so many times rank 0 has had its lock. */
static atomic_int *times_busy;

static void note_busy(bool busy)
{
    atomic_fetch_add(times_busy, busy);
}

/** Accumulates come while their target has its lock for something else: what follows them stays
 *  behind them. */
static void behind_busy(area_t *a)
{
    const bool same_host = tl_same_host(0);
    const int before = atomic_load(times_busy);

    static const writer_t writers[] = {REPLACE, RREPLACE, SUM};

    for (int i = 0; i < 2 * (SIZES - 2) * 3; i++) {
        const part_t few = {sizes[i % (SIZES - 2)], i / (SIZES - 2) % 2 != 0};
        const group_t g = {.writes = 2,
                           .writer = {writers[i / (2 * (SIZES - 2))], i % 2 != 0 ? PUT : REPLACE},
                           .part = {few, {1, false}},
                           .reader = RGET,
                           .read = few};

        MPI_Barrier(a->w->comm);
        if (a->w->rank == 0) {
            busy_lock_hold(a->w, 0, 1, BUSY_MS, note_busy);
        } else {
            while (same_host && atomic_load(times_busy) <= before + i)
                sched_yield();
            run_group(a, &g);
        }
        MPI_Barrier(a->w->comm);
    }
}

/* ---- all ----------------------------------------------------------------------------------- */

/** My area at a target, all zero. */
static area_t area_of(const tl_window_t *w, int target)
{
    area_t a = {.w = w, .target = target};

    a.model = tl_alloc(AREA * sizeof(int64_t));
    a.got = tl_alloc(AREA * sizeof(int64_t));
    a.expected = tl_alloc(AREA * sizeof(int64_t));
    for (int i = 0; i < TOGETHER; i++)
        a.source[i] = tl_alloc(AREA * sizeof(int64_t));
    return a;
}

static void free_area(area_t *a)
{
    for (int i = 0; i < TOGETHER; i++)
        free(a->source[i]);
    free(a->expected);
    free(a->got);
    free(a->model);
}

static void run(tl_kind_t kind)
{
    const MPI_Aint bytes = (MPI_Aint)tl_size() * AREA * (MPI_Aint)sizeof(int64_t);
    tl_window_t w = tl_win_make(kind, bytes, 1, MPI_COMM_WORLD, MPI_INFO_NULL);

    for (int away = w.size - 1; away >= 0; away--) {
        area_t a = area_of(&w, (w.rank + away) % w.size);

        in_passive(&a);
        MPI_Barrier(w.comm);
        in_active(&a, TL_FENCE);
        in_active(&a, TL_PSCW);
        free_area(&a);
    }
    tl_win_free(&w);
}

static void run_busy(tl_kind_t kind)
{
    const MPI_Aint bytes = (MPI_Aint)tl_size() * AREA * (MPI_Aint)sizeof(int64_t);
    tl_window_t w = tl_win_make(kind, bytes, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    area_t a = area_of(&w, 0);

    TL_MPI(MPI_Win_lock_all(0, w.win));
    behind_busy(&a);
    TL_MPI(MPI_Win_unlock_all(w.win));
    free_area(&a);
    tl_win_free(&w);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(1, 3);
    times_busy = tl_share(sizeof(*times_busy));
    tl_shared_needs((MPI_Aint)tl_size() * AREA * (MPI_Aint)sizeof(int64_t));
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        run(kind);
        run_busy(kind);
    }
    return tl_finish();
}
