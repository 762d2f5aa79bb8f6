/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <string.h>

#include "perf/rma_test.h"

enum { ORIGIN = 0, TARGET = 1, MAX_BATCHES = 5, TAG = 7 };

const char *const rma_op_names[RMA_OPS] = {
    [RMA_PUT] = "put",
    [RMA_GET] = "get",
    [RMA_ACC] = "acc",
    [RMA_GACC] = "gacc",
    [RMA_PUT_TYPELOOP] = "put_typeloop",
    [RMA_GET_TYPELOOP] = "get_typeloop",
    [RMA_ACC_TYPELOOP] = "acc_typeloop",
    [RMA_PUT_LAT] = "put_lat",
    [RMA_GET_LAT] = "get_lat",
    [RMA_ACC_LAT] = "acc_lat",
    [RMA_FOP_LAT] = "fop_lat",
    [RMA_CAS_LAT] = "cas_lat",
};
const char *const rma_sync_names[RMA_SYNCS] = {"flush", "fence", "pscw", "lock"};

/** A unit of the target's work reads and writes this many doubles, 128 KiB. */
enum { WORK_DOUBLES = 16384 };

/** A sink for reads of arrived data, so that the compiler keeps them. */
static volatile uint64_t sink;

bool rma_op_is_latency(rma_op_t op)
{
    return op >= RMA_PUT_LAT;
}

bool rma_sync_is_active(rma_sync_t sync)
{
    return sync == RMA_SYNC_FENCE || sync == RMA_SYNC_PSCW;
}

static bool is_get(rma_op_t op)
{
    return op == RMA_GET || op == RMA_GET_TYPELOOP || op == RMA_GET_LAT;
}

static bool is_acc(rma_op_t op)
{
    return op == RMA_ACC || op == RMA_GACC || op == RMA_ACC_TYPELOOP || op == RMA_ACC_LAT;
}

static bool is_atomic(rma_op_t op)
{
    return op == RMA_FOP_LAT || op == RMA_CAS_LAT;
}

/* ---- The target's work ----------------------------------------------------------------------- */

static void work(void)
{
    static double v[WORK_DOUBLES];
    for (int i = 0; i < WORK_DOUBLES; i++)
        v[i] = 0.5 * v[i] + 1;
}

/* ---- Types and epochs ------------------------------------------------------------------------ */

static void make_type(rma_side_t *side)
{
    side->type = bench_shape_type(&side->shape, &side->count, &side->derived);
}

static void free_type(rma_side_t *side)
{
    if (side->derived)
        MPI_Type_free(&side->type);
}

static bool makes_types(rma_op_t op)
{
    return op == RMA_PUT_TYPELOOP || op == RMA_GET_TYPELOOP || op == RMA_ACC_TYPELOOP;
}

void rma_test_begin(rma_test_t *t)
{
    if (!makes_types(t->op)) {
        make_type(&t->origin);
        make_type(&t->target);
    }
}

void rma_test_end(rma_test_t *t)
{
    if (!makes_types(t->op)) {
        free_type(&t->origin);
        free_type(&t->target);
    }
}

void rma_epoch_open(rma_test_t *t)
{
    MPI_Group both;
    MPI_Comm_group(t->comm, &both);
    MPI_Group_incl(both, 1, &(int){!t->rank}, &t->peer);
    MPI_Group_free(&both);
    if (t->sync == RMA_SYNC_FENCE)
        MPI_Win_fence(0, t->window->win);
    else if (t->sync == RMA_SYNC_FLUSH)
        MPI_Win_lock_all(0, t->window->win);
}

void rma_epoch_close(rma_test_t *t)
{
    if (t->sync == RMA_SYNC_FENCE)
        MPI_Win_fence(MPI_MODE_NOSUCCEED, t->window->win);
    else if (t->sync == RMA_SYNC_FLUSH)
        MPI_Win_unlock_all(t->window->win);
    MPI_Group_free(&t->peer);
    MPI_Barrier(t->comm);
}

/* ---- The operations -------------------------------------------------------------------------- */

/** The distance from one operation of a burst to the next. */
static size_t pitch(const bench_shape_t *s)
{
    return s->stride * s->count;
}

/** The shape of all operations of a burst, whose places follow each other. */
static bench_shape_t burst_shape(const rma_test_t *t, const rma_side_t *side)
{
    bench_shape_t s = side->shape;
    s.count *= (size_t)t->burst;
    return s;
}

static void transfer(rma_test_t *t)
{
    const rma_side_t *o = &t->origin, *d = &t->target;
    MPI_Aint disp = t->window->disp[TARGET] + (MPI_Aint)((size_t)t->nth * pitch(&d->shape));
    char *local = t->local + (size_t)t->nth * pitch(&o->shape);
    MPI_Win win = t->window->win;
    if (is_get(t->op)) {
        MPI_Get(local, o->count, o->type, TARGET, disp, d->count, d->type, win);
    } else if (t->op == RMA_GACC) {
        char *result = t->results + (local - t->local);
        MPI_Get_accumulate(local, o->count, o->type, result, o->count, o->type, TARGET, disp,
                           d->count, d->type, MPI_SUM, win);
    } else if (is_acc(t->op)) {
        MPI_Accumulate(local, o->count, o->type, TARGET, disp, d->count, d->type, MPI_SUM, win);
    } else {
        MPI_Put(local, o->count, o->type, TARGET, disp, d->count, d->type, win);
    }
}

/** As in runtimes above MPI: describes the transfer, does it, drops the description. */
static void transfer_with_fresh_types(rma_test_t *t)
{
    make_type(&t->origin);
    make_type(&t->target);
    transfer(t);
    free_type(&t->origin);
    free_type(&t->target);
}

/** The atomic operations use the local buffer as operand, comparand and results. */
static void atomic(rma_test_t *t)
{
    int64_t *word = (int64_t *)(void *)t->local, *result = &word[2 + t->nth];
    MPI_Aint disp = t->window->disp[TARGET] + t->nth * (MPI_Aint)sizeof(int64_t);
    if (t->op == RMA_FOP_LAT)
        MPI_Fetch_and_op(&word[0], result, MPI_INT64_T, TARGET, disp, MPI_SUM, t->window->win);
    else
        MPI_Compare_and_swap(&word[0], &word[1], result, MPI_INT64_T, TARGET, disp, t->window->win);
}

static void issue(rma_test_t *t)
{
    if (makes_types(t->op))
        transfer_with_fresh_types(t);
    else if (is_atomic(t->op))
        atomic(t);
    else
        transfer(t);
}

static void issue_burst(rma_test_t *t)
{
    for (t->nth = 0; t->nth < t->burst && t->rank == ORIGIN; t->nth++)
        issue(t);
    t->nth = 0;
}

static void begin(const rma_test_t *t)
{
    MPI_Win win = t->window->win;
    if (t->sync == RMA_SYNC_PSCW && t->rank == TARGET)
        MPI_Win_post(t->peer, 0, win);
    else if (t->sync == RMA_SYNC_PSCW)
        MPI_Win_start(t->peer, 0, win);
    else if (t->sync == RMA_SYNC_LOCK && t->rank == ORIGIN)
        MPI_Win_lock(MPI_LOCK_SHARED, TARGET, 0, win);
}

static void complete(const rma_test_t *t)
{
    MPI_Win win = t->window->win;
    if (t->sync == RMA_SYNC_FENCE)
        MPI_Win_fence(0, win);
    else if (t->sync == RMA_SYNC_PSCW && t->rank == TARGET)
        MPI_Win_wait(win);
    else if (t->sync == RMA_SYNC_PSCW)
        MPI_Win_complete(win);
    else if (t->sync == RMA_SYNC_LOCK && t->rank == ORIGIN)
        MPI_Win_unlock(TARGET, win);
    else if (t->rank == ORIGIN)
        MPI_Win_flush(TARGET, win);
}

/* ---- Reading what arrived -------------------------------------------------------------------- */

/** Passes the turn from the rank `from` to the other one. In fence mode both call a fence. */
static void pass_turn(const rma_test_t *t, int from)
{
    if (t->sync == RMA_SYNC_FENCE)
        MPI_Win_fence(0, t->window->win);
    else if (t->rank == from)
        MPI_Send(NULL, 0, MPI_BYTE, !t->rank, TAG, t->comm);
    else
        MPI_Recv(NULL, 0, MPI_BYTE, from, TAG, t->comm, MPI_STATUS_IGNORE);
}

static void read_arrived(rma_test_t *t)
{
    bench_shape_t s = burst_shape(t, is_get(t->op) ? &t->origin : &t->target);
    if (is_get(t->op)) {
        if (t->rank == ORIGIN)
            sink = bench_shape_read(&s, t->local);
        return;
    }
    if (t->sync == RMA_SYNC_FLUSH) {
        pass_turn(t, ORIGIN);
        MPI_Win_sync(t->window->win);
    }
    if (t->rank == TARGET)
        sink = bench_shape_read(&s, t->window->base);
    pass_turn(t, TARGET);
}

/* ---- Measuring ------------------------------------------------------------------------------- */

/** The target between two operations of a passive epoch: it waits in MPI, or computes. */
static void target_until_done(rma_test_t *t)
{
    int arrived = !t->target_computes;
    int64_t units = 0;
    const double start = bench_now();
    for (double now = start; !arrived;) {
        for (double end = now + t->slice; now < end; now = bench_now(), units++)
            work();
        t->unit = (now - start) / (double)units;
        /* A process that never calls MPI would starve components that need its progress. */
        MPI_Iprobe(ORIGIN, TAG, t->comm, &arrived, MPI_STATUS_IGNORE);
        now = bench_now();
    }
    MPI_Recv(NULL, 0, MPI_BYTE, ORIGIN, TAG, t->comm, MPI_STATUS_IGNORE);
}

/** The target stays until the origin has finished. */
static void stay(rma_test_t *t)
{
    if (t->rank == ORIGIN)
        MPI_Send(NULL, 0, MPI_BYTE, TARGET, TAG, t->comm);
    else
        target_until_done(t);
}

static bool takes_part(const rma_test_t *t, bool reads)
{
    return t->rank == ORIGIN || rma_sync_is_active(t->sync) || (reads && !is_get(t->op));
}

/** Runs `n` bursts; returns seconds. */
static double batch(rma_test_t *t, int n, bool reads)
{
    MPI_Barrier(t->comm);
    double start = bench_now();
    for (int i = 0; i < n && takes_part(t, reads); i++) {
        begin(t);
        issue_burst(t);
        complete(t);
        if (reads)
            read_arrived(t);
    }
    double seconds = bench_now() - start;
    stay(t);
    return seconds;
}

/** On the origin: tells the target to do a batch, or to stop if n is 0. */
static double lead(rma_test_t *t, int n, bool reads)
{
    MPI_Bcast(&n, 1, MPI_INT, ORIGIN, t->comm);
    return n > 0 ? batch(t, n, reads) : 0;
}

static void follow(rma_test_t *t, bool reads)
{
    for (;;) {
        int n;
        MPI_Bcast(&n, 1, MPI_INT, ORIGIN, t->comm);
        if (n == 0)
            return;
        batch(t, n, reads);
    }
}

/** Runs a batch of n; `arg` is the function's state. */
typedef double (*batch_fn)(void *arg, int n);

/**
 * The time of one run from batches that fill the budget together. The first batch warms up: it
 * connects, touches and fills caches; it counts only where one run alone exceeds the budget.
 */
static rma_time_t sample(batch_fn run, void *arg, double budget)
{
    double v[MAX_BATCHES], seconds = run(arg, 1);
    if (seconds > 4 * budget)
        return (rma_time_t){seconds, seconds};
    int n = 1;
    while ((seconds = run(arg, n)) < budget / 10 && n < 1 << 24)
        n *= seconds < budget / 100 ? 8 : 2;
    double runs = budget * n / seconds;
    int batches = runs < 1 ? 1 : runs > MAX_BATCHES ? MAX_BATCHES : (int)runs;
    n = runs < batches ? 1 : (int)(runs / batches);
    rma_time_t time = {0, 0};
    for (int i = 0; i < batches; i++) {
        v[i] = run(arg, n) / n;
        time.best = i == 0 || v[i] < time.best ? v[i] : time.best;
    }
    time.median = bench_median(v, batches);
    return time;
}

typedef struct run_arg {
    rma_test_t *test;
    const rma_test_t *copy;
    bool reads;
} run_arg_t;

static double run_op(void *p, int n)
{
    const run_arg_t *arg = p;
    return lead(arg->test, n, arg->reads);
}

rma_time_t rma_measure(rma_test_t *t, bool reads)
{
    rma_time_t time = {0, 0};
    if (t->rank == ORIGIN) {
        run_arg_t arg = {.test = t, .reads = reads};
        time = sample(run_op, &arg, t->budget);
        time.median /= t->burst;
        time.best /= t->burst;
        lead(t, 0, reads);
    } else {
        follow(t, reads);
    }
    return time;
}

int rma_sample(rma_test_t *t, double pause, double limit, double *seconds, int n)
{
    uint64_t random = 1;
    int done = 0;
    MPI_Barrier(t->comm);
    double end = bench_now() + limit;
    while (t->rank == ORIGIN && done < n && (done == 0 || bench_now() < end)) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        bench_compute(2 * pause * (double)(random >> 33) / (double)(1u << 31));
        double start = bench_now();
        issue_burst(t);
        complete(t);
        seconds[done++] = bench_now() - start;
    }
    stay(t);
    MPI_Bcast(&t->unit, 1, MPI_DOUBLE, TARGET, t->comm);
    return done;
}

void rma_rest(rma_test_t *t, double seconds)
{
    MPI_Barrier(t->comm);
    if (t->rank == ORIGIN)
        bench_compute(seconds);
    stay(t);
    MPI_Bcast(&t->unit, 1, MPI_DOUBLE, TARGET, t->comm);
}

static double run_copy(void *p, int n)
{
    const run_arg_t *arg = p;
    const rma_test_t *t = arg->copy;
    double start = bench_now();
    for (int i = 0; i < n; i++) {
        bench_shape_copy(t->scratch, &t->target.shape, t->local, &t->origin.shape);
        if (arg->reads)
            sink = bench_shape_read(&t->target.shape, t->scratch);
    }
    return bench_now() - start;
}

rma_time_t rma_measure_copy(const rma_test_t *t, bool reads)
{
    run_arg_t arg = {.copy = t, .reads = reads};
    return sample(run_copy, &arg, t->budget / 2);
}

/* ---- Checking -------------------------------------------------------------------------------- */

enum { SEED_MOVED = 3, SEED_THERE = 11, WORD_THERE = 100, WORD_OPERAND = 7 };

/** The content of the target's word `i`. Only sums show whose word they have changed. */
static int64_t word_there(const rma_test_t *t, int i)
{
    return WORD_THERE + (t->op == RMA_FOP_LAT ? i : 0);
}

static void prepare_words(const rma_test_t *t)
{
    int64_t *word = (int64_t *)(void *)(t->rank == TARGET ? t->window->base : t->local);
    if (t->rank == ORIGIN) {
        *word++ = WORD_OPERAND;
        *word++ = WORD_THERE;
    }
    for (int i = 0; i < t->burst; i++)
        word[i] = t->rank == TARGET ? word_there(t, i) : 0;
}

static void prepare_check(rma_test_t *t)
{
    bool get = is_get(t->op), acc = is_acc(t->op);
    if (is_atomic(t->op)) {
        prepare_words(t);
    } else if (t->rank == TARGET) {
        bench_shape_t s = burst_shape(t, &t->target);
        bench_shape_clear(&s, t->window->base);
        if (get || acc)
            bench_shape_fill(&s, t->window->base, get ? SEED_MOVED : SEED_THERE);
    } else {
        bench_shape_t s = burst_shape(t, &t->origin);
        bench_shape_clear(&s, t->local);
        if (t->op == RMA_GACC)
            bench_shape_clear(&s, t->results);
        if (!get)
            bench_shape_fill(&s, t->local, SEED_MOVED);
    }
}

static long wrong_words(const rma_test_t *t)
{
    const char *p = t->rank == TARGET ? t->window->base : t->local + 2 * sizeof(int64_t);
    long wrong = 0;
    for (int i = 0; i < t->burst; i++, p += sizeof(int64_t)) {
        int64_t there = word_there(t, i);
        int64_t left = t->op == RMA_FOP_LAT ? there + WORD_OPERAND : WORD_OPERAND;
        wrong += memcmp(p, t->rank == TARGET ? &left : &there, sizeof(int64_t)) != 0;
    }
    return wrong;
}

static long count_errors(const rma_test_t *t)
{
    if (is_atomic(t->op))
        return wrong_words(t);
    if (t->op == RMA_GACC && t->rank == ORIGIN) {
        bench_shape_t fetched = burst_shape(t, &t->origin);
        return (long)bench_shape_errors(&fetched, t->results, SEED_THERE, -1);
    }
    if (is_get(t->op) != (t->rank == ORIGIN))
        return 0;
    bench_shape_t s = burst_shape(t, t->rank == ORIGIN ? &t->origin : &t->target);
    return (long)bench_shape_errors(&s, t->rank == ORIGIN ? t->local : t->window->base, SEED_MOVED,
                                    is_acc(t->op) ? SEED_THERE : -1);
}

/** Separates a rank's stores from the operations of others, in either order. */
static void publish(const rma_test_t *t)
{
    if (t->sync == RMA_SYNC_FLUSH) {
        MPI_Win_sync(t->window->win);
    } else if (t->sync == RMA_SYNC_LOCK) {
        MPI_Win_lock(MPI_LOCK_SHARED, t->rank, 0, t->window->win);
        MPI_Win_unlock(t->rank, t->window->win);
    }
}

/** Makes local stores and remote operations visible to each other across a barrier. */
static void synchronise(const rma_test_t *t)
{
    if (t->sync == RMA_SYNC_FENCE) {
        MPI_Win_fence(0, t->window->win);
    } else {
        publish(t);
        MPI_Barrier(t->comm);
        publish(t);
    }
}

long rma_check(rma_test_t *t)
{
    prepare_check(t);
    synchronise(t);
    begin(t);
    issue_burst(t);
    complete(t);
    synchronise(t);
    long errors = count_errors(t);
    MPI_Allreduce(MPI_IN_PLACE, &errors, 1, MPI_LONG, MPI_SUM, t->comm);
    return errors;
}
