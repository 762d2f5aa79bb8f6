/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-3 */
/* windows: create allocate dynamic shared */
/**
 * @file
 * The performance variables of one-sided communication: each operation that moves something is
 * counted once, with its bytes of target memory, and by the method that does it, where it is known
 * which one that must be.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/mpi/counter.h"
#include "test/mpi/testlib.h"

enum { TIMES = 3, LONGS = 5000 };

/** Elements of the target in one strided operation are so far apart. */
enum { STRIDE = 2 };

typedef enum what { PUT, GET, UPDATE } what_t;

typedef struct step {
    const char *name;
    what_t what;
    bool strided;
    int longs; /**< of target memory, in one operation */
    void (*run)(const struct step *s);
} step_t;

static const char *const methods[] = {"direct", "cma", "sieve", "pack", "pipeline", "rdma", "nic"};
enum { METHODS = sizeof(methods) / sizeof(methods[0]) };

static counter_t *ops[METHODS], *bytes[METHODS], *accumulates;

/** What the counters say. */
typedef struct counts {
    unsigned long long ops[METHODS], bytes[METHODS], accumulates;
} counts_t;

static long from[LONGS], to[LONGS];
static tl_window_t w;
static int target;
static bool same_host, may_copy;

/* ---- operations ----------------------------------------------------------------------------- */

static MPI_Datatype target_type(const step_t *s)
{
    MPI_Datatype type;

    TL_MPI(MPI_Type_vector(s->longs, 1, s->strided ? STRIDE : 1, MPI_LONG, &type));
    TL_MPI(MPI_Type_commit(&type));
    return type;
}

static void put(const step_t *s)
{
    MPI_Datatype type = target_type(s);

    TL_MPI(MPI_Put(from, s->longs, MPI_LONG, target, tl_disp(&w, target, 0), 1, type, w.win));
    TL_MPI(MPI_Type_free(&type));
}

static void put_plain(const step_t *s)
{
    TL_MPI(MPI_Put(from, s->longs, MPI_LONG, target, tl_disp(&w, target, 0), s->longs, MPI_LONG,
                   w.win));
}

static void rput(const step_t *s)
{
    MPI_Datatype type = target_type(s);
    MPI_Request r;

    TL_MPI(MPI_Rput(from, s->longs, MPI_LONG, target, tl_disp(&w, target, 0), 1, type, w.win, &r));
    TL_MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
    TL_MPI(MPI_Type_free(&type));
}

static void get(const step_t *s)
{
    MPI_Datatype type = target_type(s);

    TL_MPI(MPI_Get(to, s->longs, MPI_LONG, target, tl_disp(&w, target, 0), 1, type, w.win));
    TL_MPI(MPI_Type_free(&type));
}

static void get_plain(const step_t *s)
{
    TL_MPI(
        MPI_Get(to, s->longs, MPI_LONG, target, tl_disp(&w, target, 0), s->longs, MPI_LONG, w.win));
}

static void rget(const step_t *s)
{
    MPI_Datatype type = target_type(s);
    MPI_Request r;

    TL_MPI(MPI_Rget(to, s->longs, MPI_LONG, target, tl_disp(&w, target, 0), 1, type, w.win, &r));
    TL_MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
    TL_MPI(MPI_Type_free(&type));
}

static void accumulate(const step_t *s)
{
    MPI_Datatype type = target_type(s);

    TL_MPI(MPI_Accumulate(from, s->longs, MPI_LONG, target, tl_disp(&w, target, 0), 1, type,
                          MPI_SUM, w.win));
    TL_MPI(MPI_Type_free(&type));
}

static void accumulate_plain(const step_t *s)
{
    TL_MPI(MPI_Accumulate(from, s->longs, MPI_LONG, target, tl_disp(&w, target, 0), s->longs,
                          MPI_LONG, MPI_SUM, w.win));
}

static void raccumulate(const step_t *s)
{
    MPI_Datatype type = target_type(s);
    MPI_Request r;

    TL_MPI(MPI_Raccumulate(from, s->longs, MPI_LONG, target, tl_disp(&w, target, 0), 1, type,
                           MPI_SUM, w.win, &r));
    TL_MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
    TL_MPI(MPI_Type_free(&type));
}

static void get_accumulate(const step_t *s)
{
    TL_MPI(MPI_Get_accumulate(from, s->longs, MPI_LONG, to, s->longs, MPI_LONG, target,
                              tl_disp(&w, target, 0), s->longs, MPI_LONG, MPI_SUM, w.win));
}

static void fetch(const step_t *s)
{
    TL_MPI(MPI_Get_accumulate(NULL, 0, MPI_LONG, to, s->longs, MPI_LONG, target,
                              tl_disp(&w, target, 0), s->longs, MPI_LONG, MPI_NO_OP, w.win));
}

static void rget_accumulate(const step_t *s)
{
    MPI_Datatype type = target_type(s);
    MPI_Request r;

    TL_MPI(MPI_Rget_accumulate(from, s->longs, MPI_LONG, to, s->longs, MPI_LONG, target,
                               tl_disp(&w, target, 0), 1, type, MPI_REPLACE, w.win, &r));
    TL_MPI(MPI_Wait(&r, MPI_STATUS_IGNORE));
    TL_MPI(MPI_Type_free(&type));
}

static void fetch_and_op(const step_t *s)
{
    (void)s;
    TL_MPI(MPI_Fetch_and_op(from, to, MPI_LONG, target, tl_disp(&w, target, 0), MPI_SUM, w.win));
}

static void compare_and_swap(const step_t *s)
{
    (void)s;
    TL_MPI(
        MPI_Compare_and_swap(from, from + 1, to, MPI_LONG, target, tl_disp(&w, target, 0), w.win));
}

static const step_t steps[] = {
    {"put", PUT, false, 1, put_plain},
    {"put", PUT, false, 20, put_plain},
    {"put", PUT, false, LONGS, put_plain},
    {"put", PUT, true, 7, put},
    {"put", PUT, true, LONGS / 2, put},
    {"put", PUT, false, 0, put_plain},
    {"rput", PUT, false, 3, rput},
    {"rput", PUT, true, LONGS / 3, rput},
    {"get", GET, false, 1, get_plain},
    {"get", GET, false, 20, get_plain},
    {"get", GET, false, LONGS, get_plain},
    {"get", GET, true, 7, get},
    {"get", GET, true, LONGS / 2, get},
    {"get", GET, false, 0, get_plain},
    {"rget", GET, false, 3, rget},
    {"rget", GET, true, LONGS / 3, rget},
    {"accumulate", UPDATE, false, 1, accumulate_plain},
    {"accumulate", UPDATE, false, 20, accumulate_plain},
    {"accumulate", UPDATE, false, LONGS, accumulate_plain},
    {"accumulate", UPDATE, true, 7, accumulate},
    {"accumulate", UPDATE, true, LONGS / 2, accumulate},
    {"accumulate", UPDATE, false, 0, accumulate_plain},
    {"raccumulate", UPDATE, false, 3, raccumulate},
    {"raccumulate", UPDATE, true, LONGS / 3, raccumulate},
    {"get_accumulate", UPDATE, false, 1, get_accumulate},
    {"get_accumulate", UPDATE, false, LONGS, get_accumulate},
    {"get_accumulate with no_op", UPDATE, false, 2, fetch},
    {"get_accumulate with no_op", UPDATE, false, LONGS, fetch},
    {"rget_accumulate", UPDATE, true, 5, rget_accumulate},
    {"rget_accumulate", UPDATE, true, LONGS / 2, rget_accumulate},
    {"fetch_and_op", UPDATE, false, 1, fetch_and_op},
    {"compare_and_swap", UPDATE, false, 1, compare_and_swap},
};

/* ---- which method --------------------------------------------------------------------------- */

static const char *forced_method(void)
{
    const char *method = getenv("OMPI_MCA_osc_nicstride_method");

    return method != NULL ? method : "auto";
}

static bool forced(const char *method)
{
    return strcmp(forced_method(), method) == 0;
}

/** Is a parameter that allows something set to 0, as where all is to go over the network? */
static bool is_off(const char *parameter)
{
    const char *value = getenv(parameter);

    return value != NULL && strcmp(value, "0") == 0;
}

/** May an update go through slots? Not what is short, or gives something back. */
static bool may_move(const step_t *s)
{
    return s->longs > 16 && (forced_method() == NULL || forced("auto") || forced("pipeline")) &&
           (s->run == accumulate || s->run == accumulate_plain || s->run == raccumulate);
}

/** By which method it must be done; NULL where the component is free to choose. */
static const char *method_of(const step_t *s)
{
    const bool one_node = same_host && !is_off("OMPI_MCA_osc_nicstride_node");
    const bool mapped = target == w.rank || (w.kind == TL_ALLOCATE && one_node) ||
                        (w.kind == TL_SHARED && same_host);
    /* Of a dynamic window it is known only by and by what memory there is. */
    const bool copied = may_copy && one_node && !is_off("OMPI_MCA_osc_nicstride_cma") &&
                        w.kind == TL_CREATE && !mapped;

    if (forced("pack"))
        return "pack";
    if (s->what == UPDATE)
        return mapped ? "direct" : may_move(s) ? NULL : "pack";
    /* A slot may not be free, and what is short is not worth one. */
    if (forced("pipeline") && same_host && target != w.rank)
        return NULL;
    if (mapped)
        return "direct";
    if (copied && (forced("cma") || (forced("sieve") && s->what == GET)))
        return forced_method();
    return NULL;
}

/* ---- counts --------------------------------------------------------------------------------- */

static counts_t read_counts(void)
{
    counts_t c = {.accumulates = counter_read(accumulates)};

    for (int m = 0; m < METHODS; m++) {
        c.ops[m] = counter_read(ops[m]);
        c.bytes[m] = counter_read(bytes[m]);
    }
    return c;
}

static void check_step(const step_t *s)
{
    const unsigned long long want = s->longs > 0 ? TIMES : 0;
    const unsigned long long want_bytes = want * (unsigned long long)s->longs * sizeof(long);
    const char *method = method_of(s);
    unsigned long long all = 0, all_bytes = 0;
    const counts_t before = read_counts();

    for (int i = 0; i < TIMES; i++) {
        s->run(s);
        TL_MPI(MPI_Win_flush(target, w.win));
    }

    const counts_t after = read_counts();
    for (int m = 0; m < METHODS; m++) {
        const unsigned long long n = after.ops[m] - before.ops[m];
        const unsigned long long b = after.bytes[m] - before.bytes[m];

        all += n;
        all_bytes += b;
        if (method != NULL && strcmp(method, methods[m]) == 0) {
            TL_CHECK(n == want && b == want_bytes,
                     "%s, %d longs: %llu of %llu operations and %llu of %llu bytes by %s", s->name,
                     s->longs, n, want, b, want_bytes, method);
        }
    }
    TL_CHECK(all == want && all_bytes == want_bytes,
             "%s, %d longs: %llu of %llu operations and %llu of %llu bytes", s->name, s->longs, all,
             want, all_bytes, want_bytes);
    TL_CHECK(after.accumulates - before.accumulates == (s->what == UPDATE ? want : 0),
             "%s, %d longs: %llu accumulates", s->name, s->longs,
             after.accumulates - before.accumulates);
}

static counter_t *begin(const char *what, const char *method)
{
    char name[64];

    snprintf(name, sizeof(name), "osc_nicstride_%s%s", what, method);
    return counter_begin(name);
}

/** Skips where other components serve windows. */
static void begin_counters(void)
{
    const char *osc = getenv("OMPI_MCA_osc");

    accumulates = begin("accumulates", "");
    if (accumulates == NULL || osc == NULL || strcmp(osc, "nicstride") != 0) {
        counter_end(accumulates);
        tl_skip("not with --mca osc nicstride alone");
    }
    for (int m = 0; m < METHODS; m++) {
        ops[m] = begin("ops_", methods[m]);
        bytes[m] = begin("bytes_", methods[m]);
        TL_CHECK(ops[m] != NULL && bytes[m] != NULL, "no counters for %s", methods[m]);
    }
}

static void end_counters(void)
{
    for (int m = 0; m < METHODS; m++) {
        counter_end(ops[m]);
        counter_end(bytes[m]);
    }
    counter_end(accumulates);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    begin_counters();
    target = (tl_rank() + 1) % tl_size();
    same_host = tl_same_host(target);
    may_copy = tl_may_copy();
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        w = tl_win_make(kind, LONGS * sizeof(long), sizeof(long), MPI_COMM_WORLD, MPI_INFO_NULL);
        TL_MPI(MPI_Win_lock_all(0, w.win));
        for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
            check_step(&steps[i]);
        TL_MPI(MPI_Win_unlock_all(w.win));
        tl_win_free(&w);
    }
    end_counters();
    return tl_finish();
}
