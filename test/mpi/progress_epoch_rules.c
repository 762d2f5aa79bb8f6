/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/mpi/progress_epoch_rules.h"

#include <stdio.h>

static const char *const epoch_names[EPOCHS] = {"lock", "lock_exclusive", "lock_all", "start",
                                                "fence"};

static const char *const then_names[THENS] = {
    "waits", "tests",        "flushes", "flushes_local", "flushes_all", "flushes_local_all",
    "ends",  "frees_window", "sleeps",  "polls",         "receives"};

static const char *const where_names[WHERES] = {"receiving", "polling", "barrier", "outside",
                                                "late",      "ending",  "testing", "watching"};

const char *plan_then_name(then_t then)
{
    return then_names[then];
}

plan_t plan_of(int index)
{
    plan_t p;

    p.op = (rma_t)progress_digit(&index, RMA_CALLS);
    p.epoch = (epoch_t)progress_digit(&index, EPOCHS);
    p.amount = &access_amounts[progress_digit(&index, AMOUNTS)];
    p.second = progress_digit(&index, 2) != 0;
    p.where = (where_t)progress_digit(&index, WHERES);
    p.then = (then_t)index;
    return p;
}

/* ---- rules ---- */

bool plan_passive(const plan_t *p)
{
    return p->epoch <= LOCK_ALL;
}

bool plan_target_holds(where_t where)
{
    return where <= LATE;
}

static bool allowed(const plan_t *p)
{
    if ((rma_is_single(p->op) && p->amount != access_amounts) ||
        (p->op >= RMA_RPUT && !plan_passive(p)) ||
        ((p->then == WAITS || p->then == TESTS) && p->op < RMA_RPUT))
        return false;
    switch (p->then) {
    case ENDS:
        /* The end of a fence takes the target's own call. */
        return p->where != WATCHING && (p->where != TESTING || p->epoch == START) &&
               (p->epoch != FENCE || p->where == ENDING || p->where == LATE);
    case FREES_WINDOW:
        return p->where == ENDING && p->epoch == LOCK_SHARED && p->amount == access_amounts;
    case SLEEPS:
    case POLLS:
    case RECEIVES:
        return p->where == WATCHING && plan_passive(p) && !p->second &&
               (p->op == RMA_PUT || p->op == RMA_ACCUMULATE);
    default:
        return plan_passive(p) && plan_target_holds(p->where);
    }
}

void plan_describe(progress_cell_t *cell, const progress_context_t *context)
{
    const plan_t p = plan_of(cell->index);

    if (!allowed(&p)) {
        cell->rule = PROGRESS_NEVER;
        return;
    }
    snprintf(cell->name, sizeof(cell->name), "%s%s_%s/%s/%s/%s", p.second ? "put_" : "",
             rma_names[p.op], p.amount->name, epoch_names[p.epoch], then_names[p.then],
             where_names[p.where]);
    cell->rule = PROGRESS_MUST;
    if (p.where == WATCHING) {
        cell->rule = PROGRESS_MAY;
        cell->why = "an operation that no call has completed";
    } else if (p.where == OUTSIDE && p.epoch == START && !context->mapped) {
        cell->rule = PROGRESS_MAY;
        cell->why = "a target that is outside of MPI between post and wait";
    } else if (p.where == OUTSIDE && !context->mapped && !(context->ours_rma && context->server)) {
        cell->rule = PROGRESS_MAY;
        cell->why = "a target that is outside of MPI, without server thread";
    }
}
