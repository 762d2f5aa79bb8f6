/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* engines: auto shm datagram */
/* timeout: 300 */
/**
 * @file
 * The matrix of progress (progress.h) of barriers and other collectives. The first rank needs
 * nothing of the others but that they enter, and they need what it has sent.
 */
#include "test/mpi/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- tables ---- */

typedef enum kind { BARRIER, BCAST, REDUCE, ALLREDUCE, GATHER, SCATTER, KINDS } kind_t;
static const char *const kind_names[KINDS] = {"barrier",   "bcast",  "reduce",
                                              "allreduce", "gather", "scatter"};

typedef enum then { SLEEPS, WAITS, TESTS, POLLS, RECEIVES, THENS } then_t;
static const char *const then_names[THENS] = {"sleeps", "waits", "tests", "polls", "receives"};

/** Longs of each rank. */
static const int amounts[] = {1, 20000};
enum { AMOUNTS = 2, MOST = 20000, TAG_BESIDE = 9 };

typedef struct plan {
    kind_t kind;
    bool nonblocking;
    bool late; /**< the others are outside of MPI first */
    int longs;
    then_t then;
} plan_t;

static plan_t plan_of(int index)
{
    plan_t p;

    p.kind = (kind_t)progress_digit(&index, KINDS);
    p.nonblocking = progress_digit(&index, 2) != 0;
    p.late = progress_digit(&index, 2) != 0;
    p.longs = amounts[progress_digit(&index, AMOUNTS)];
    p.then = (then_t)index;
    return p;
}

/* ---- rules ---- */

static void describe(progress_cell_t *cell, const progress_context_t *context)
{
    const plan_t p = plan_of(cell->index);

    cell->rule = PROGRESS_NEVER;
    if ((p.kind == BARRIER && p.longs != 1) ||
        (!p.nonblocking && (p.then == WAITS || p.then == TESTS)))
        return;
    snprintf(cell->name, sizeof(cell->name), "%s%s_%s/%s/%s", p.nonblocking ? "i" : "",
             kind_names[p.kind], p.longs == 1 ? "short" : "long", then_names[p.then],
             p.late ? "late" : "waiting");
    cell->rule = PROGRESS_MUST;
    if (p.nonblocking && p.then == SLEEPS && !(p.kind == BARRIER && context->ours_coll)) {
        cell->rule = PROGRESS_MAY;
        cell->why = p.kind == BARRIER ? "a nonblocking barrier without an engine of coll_nicbarrier"
                                      : "a nonblocking collective of Open MPI";
    }
}

/* ---- calls ---- */

static MPI_Comm comm, beside;
static long *out, *in;

static long value(const progress_cell_t *cell, int rank, int i)
{
    return cell->number * 1000L + rank * 7 + i;
}

static int root_of(const progress_cell_t *cell, kind_t kind)
{
    return kind == BCAST || kind == SCATTER ? cell->first : (cell->first + 1) % tl_size();
}

static void call(const progress_cell_t *cell, const plan_t *p, MPI_Request *r)
{
    const int n = p->longs, root = root_of(cell, p->kind);

    for (int i = 0; i < n * (p->kind == SCATTER ? tl_size() : 1); i++)
        out[i] = value(cell, tl_rank(), i);
    progress_step(kind_names[p->kind]);
#define REDUCED out, in, n, MPI_LONG, MPI_SUM
#define EACH    out, n, MPI_LONG, in, n, MPI_LONG, root, comm
#define EITHER(call, icall, ...)                                                                   \
    TL_MPI(p->nonblocking ? icall(__VA_ARGS__, r) : call(__VA_ARGS__));                            \
    break
    switch (p->kind) {
    case BARRIER:
        EITHER(MPI_Barrier, MPI_Ibarrier, comm);
    case BCAST:
        EITHER(MPI_Bcast, MPI_Ibcast, out, n, MPI_LONG, root, comm);
    case REDUCE:
        EITHER(MPI_Reduce, MPI_Ireduce, REDUCED, root, comm);
    case ALLREDUCE:
        EITHER(MPI_Allreduce, MPI_Iallreduce, REDUCED, comm);
    case GATHER:
        EITHER(MPI_Gather, MPI_Igather, EACH);
    default:
        EITHER(MPI_Scatter, MPI_Iscatter, EACH);
    }
}

static void check(const progress_cell_t *cell, const plan_t *p)
{
    const int n = p->longs, size = tl_size(), root = root_of(cell, p->kind);
    int wrong = 0;

    for (int i = 0; i < n; i++) {
        switch (p->kind) {
        case BCAST:
            wrong += out[i] != value(cell, root, i);
            break;
        case REDUCE:
        case ALLREDUCE:
            wrong += (p->kind == ALLREDUCE || root == tl_rank()) &&
                     in[i] != size * value(cell, 0, i) + 7L * (size * (size - 1) / 2);
            break;
        case GATHER:
            for (int r = 0; root == tl_rank() && r < size; r++)
                wrong += in[r * n + i] != value(cell, r, i);
            break;
        case SCATTER:
            wrong += in[i] != value(cell, root, tl_rank() * n + i);
            break;
        default:
            break;
        }
    }
    TL_CHECK(wrong == 0, "%s: %d longs are wrong", cell->name, wrong);
}

/* ---- the two parts ---- */

static void first(const progress_cell_t *cell)
{
    const plan_t p = plan_of(cell->index);
    MPI_Request request = MPI_REQUEST_NULL;
    int flag = 0;

    progress_meet_ready(cell);
    if (!p.nonblocking)
        progress_tell_in(cell);
    call(cell, &p, &request);
    if (p.nonblocking)
        progress_tell_in(cell);
    progress_step(then_names[p.then]);
    if (p.then == WAITS) {
        TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else if (p.then == TESTS) {
        while (!flag && TL_MPI(MPI_Test(&request, &flag, MPI_STATUS_IGNORE))) {
        }
    }
    if (p.then == RECEIVES) {
        for (int i = 1; i < tl_size(); i++) {
            TL_MPI(
                MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, TAG_BESIDE, beside, MPI_STATUS_IGNORE));
        }
        progress_held(cell);
    } else {
        progress_hold(cell, p.then == POLLS);
    }
    progress_meet_end(cell);
    TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    check(cell, &p);
}

static void others(const progress_cell_t *cell)
{
    const plan_t p = plan_of(cell->index);
    MPI_Request request = MPI_REQUEST_NULL;

    progress_tell_ready(cell);
    if (p.late)
        progress_await_in(cell, false);
    call(cell, &p, &request);
    TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    check(cell, &p);
    progress_tell_seen(cell);
    if (p.then == RECEIVES) {
        progress_step("a send to the first one");
        TL_MPI(MPI_Send(NULL, 0, MPI_BYTE, cell->first, TAG_BESIDE, beside));
    }
    progress_meet_end(cell);
}

static const progress_family_t family = {
    "collectives", KINDS * 2 * 2 * AMOUNTS *THENS, 1, describe, first, others};

/** With which nonblocking barriers need nobody's help, once it is set up. */
static bool has_engine(void)
{
    const char *priority = getenv("OMPI_MCA_coll_nicbarrier_priority");

    return priority != NULL && atoi(priority) == 90;
}

int main(int argc, char **argv)
{
    enum { SET_UP = 12 };

    progress_begin(argc, argv, &family, 1);
    tl_need_ranks(2, 16);
    progress_world();
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_dup(MPI_COMM_WORLD, &beside);
    for (int i = 0; i < SET_UP; i++)
        MPI_Barrier(comm);
    out = tl_alloc((size_t)tl_size() * MOST * sizeof(long));
    in = tl_alloc((size_t)tl_size() * MOST * sizeof(long));
    progress_context.ours_coll = has_engine();
    progress_run(&family, "", PROGRESS_ALL, PROGRESS_ALL);
    free(in);
    free(out);
    MPI_Comm_free(&beside);
    MPI_Comm_free(&comm);
    return progress_finish();
}
