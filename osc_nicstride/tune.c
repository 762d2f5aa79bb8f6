/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/tune.h"

#include <math.h>
#include <stddef.h>

/** What a trial costs beside the time that it loses, as a part of the best method's time: where all
 *  methods are equal they are not tried all the time. */
#define PRICE 0.0625
/** Each trial in a row that fails makes the next one half as frequent; up to so often, until the
 *  method is known well and from then on. */
#define FAILED_FIRST 2
#define FAILED_MAX   6
/** So many observations make a method known well. The first find memory cold, and queues in shared
 *  memory are slow until each of their pages has been touched by both sides: until then the model
 *  is believed where it says less. */
#define WELL_KNOWN 64
/** What is known rises only by so many observations in a row, to the least of them; it falls at
 *  once. What can disturb a transfer, above all a target that leaves, makes it dearer. */
#define HIGHER 4
/** A trial is repeated so often, as the first transfer by another method finds memory and code
 *  cold; more often where nothing is expected to be lost. */
#define REPEATS         1
#define REPEATS_HOPEFUL 7
/** A cost that changes by this factor: what failed before may not now. */
#define CHANGE 2
/** Nanoseconds that an operation of few bytes takes, by any method, until it is known. */
#define QUICK_MODEL 1000
/** Such operations for one that is measured. */
#define QUICK_PAUSE 15

unsigned nicstride_tune_shape(const onic_layout_t *origin, const onic_layout_t *target)
{
    uint64_t a = onic_layout_blocks(origin), b = onic_layout_blocks(target);
    uint64_t blocks = a > b ? a : b, least = 4096;
    unsigned shape = 1;

    if (blocks <= 1)
        return 0;
    for (; shape < NICSTRIDE_TUNE_SHAPES - 1 && target->size / blocks < least; shape++)
        least /= 4;
    return shape;
}

unsigned nicstride_tune_size(uint64_t bytes)
{
    uint64_t units = bytes / NICSTRIDE_TUNE_MIN;
    unsigned order = units > 0 ? 63U - (unsigned)__builtin_clzll(units) : 0;

    return order < NICSTRIDE_TUNE_SIZES ? order : NICSTRIDE_TUNE_SIZES - 1;
}

nicstride_tune_cell_t *nicstride_tune_cell(nicstride_tune_t *tune, nicstride_direction_t dir,
                                           const onic_layout_t *origin, const onic_layout_t *target)
{
    if (target->size < NICSTRIDE_TUNE_MIN)
        return NULL;
    return &tune->cell[dir == NICSTRIDE_GET][nicstride_tune_shape(origin, target)]
                      [nicstride_tune_size(target->size)];
}

static double lesser(double a, double b)
{
    return a < b ? a : b;
}

/** What a method is expected to take. */
static double expected(const nicstride_tune_cell_t *cell, int m, const double *model,
                       uint64_t bytes)
{
    const double known = (double)cell->rate[m] * (double)bytes;

    if (isinf(model[m]) || cell->rate[m] == 0)
        return model[m];
    return cell->seen[m] < WELL_KNOWN ? lesser(known, model[m]) : known;
}

void nicstride_tune_known(const nicstride_tune_cell_t *cell, double *model, uint64_t bytes)
{
    for (int m = NICSTRIDE_METHOD_DIRECT; m < NICSTRIDE_METHOD_LAST; m++)
        model[m] = expected(cell, m, model, bytes);
}

/** The cheapest that is known, or by the model the cheapest of all. `*cost_p` gets what it takes.
 */
static int cheapest(const nicstride_tune_cell_t *cell, const double *model, uint64_t bytes,
                    double *cost_p)
{
    int known = 0, guess = NICSTRIDE_METHOD_PACK;

    for (int m = NICSTRIDE_METHOD_DIRECT; m < NICSTRIDE_METHOD_LAST; m++) {
        if (isinf(model[m]))
            continue;
        if (cell->rate[m] > 0 && (known == 0 || cell->rate[m] < cell->rate[known]))
            known = m;
        if (model[m] < model[guess])
            guess = m;
    }
    *cost_p = known != 0 ? (double)cell->rate[known] * (double)bytes : model[guess];
    return known != 0 ? known : guess;
}

/** Is there time for a trial that is expected to lose so much? */
static bool is_time(const nicstride_budget_t *budget, double extra)
{
    return budget->lost + extra <= NICSTRIDE_TUNE_SHARE * budget->spent;
}

/** And was the last one long enough ago? */
static bool may_try(const nicstride_tune_cell_t *cell, const nicstride_budget_t *budget, int m,
                    double extra, double best)
{
    const int most = cell->seen[m] < WELL_KNOWN ? FAILED_FIRST : FAILED_MAX;
    const int failed = cell->failed[m] < most ? cell->failed[m] : most;

    return (extra + PRICE * best) * (double)(1U << failed) <=
               NICSTRIDE_TUNE_SHARE * cell->since[m] &&
           is_time(budget, extra);
}

/** The most promising of the methods that may be tried, or 0. `*extra_p` gets what it may lose. */
static int to_be_tried(const nicstride_tune_cell_t *cell, const nicstride_budget_t *budget,
                       const double *model, uint64_t bytes, int best, double cost, double *extra_p)
{
    int found = 0;

    for (int m = NICSTRIDE_METHOD_DIRECT; m < NICSTRIDE_METHOD_LAST; m++) {
        double extra;

        if (m == best || isinf(model[m]))
            continue;
        extra = expected(cell, m, model, bytes) - cost;
        if (extra < 0)
            extra = 0;
        if (may_try(cell, budget, m, extra, cost) && (found == 0 || extra < *extra_p)) {
            found = m;
            *extra_p = extra;
        }
    }
    return found;
}

static void fail(nicstride_tune_cell_t *cell, int m)
{
    if (cell->failed[m] < UINT8_MAX)
        cell->failed[m]++;
}

/** A trial whose cost was not seen leaves the model's word. */
static void give_up_trial(nicstride_tune_cell_t *cell, const double *model, uint64_t bytes)
{
    const int m = cell->trial;

    cell->trial = 0;
    if (m == 0)
        return;
    cell->repeats = 0;
    fail(cell, m);
    if (cell->rate[m] == 0 && !isinf(model[m]))
        cell->rate[m] = (float)(model[m] / (double)bytes);
}

/** The method that is to be tried for the next transfer, or 0. `*extra_p` gets what it may lose. */
static int next_trial(nicstride_tune_cell_t *cell, const nicstride_budget_t *budget,
                      const double *model, uint64_t bytes, int best, double cost, double *extra_p)
{
    const int m = cell->again;

    if (cell->repeats > 0) {
        cell->repeats--;
        *extra_p = expected(cell, m, model, bytes) - cost;
        if (*extra_p < 0)
            *extra_p = 0;
        if (m != best && !isinf(model[m]) && is_time(budget, *extra_p))
            return m;
        cell->repeats = 0;
    }
    const int found = to_be_tried(cell, budget, model, bytes, best, cost, extra_p);
    if (found != 0) {
        cell->again = (uint8_t)found;
        cell->repeats = *extra_p > 0 ? REPEATS : REPEATS_HOPEFUL;
    }
    return found;
}

nicstride_method_t nicstride_tune_choose(nicstride_tune_cell_t *cell, nicstride_budget_t *budget,
                                         const double *model, uint64_t bytes)
{
    double cost, extra = 0;
    int best, trial;

    give_up_trial(cell, model, bytes);
    best = cheapest(cell, model, bytes, &cost);
    trial = next_trial(cell, budget, model, bytes, best, cost, &extra);
    if (trial != 0) {
        cell->trial = (uint8_t)trial;
        cell->charged = (float)extra;
        cell->since[trial] = 0;
        budget->lost += cell->charged;
        return (nicstride_method_t)trial;
    }
    if (best == NICSTRIDE_METHOD_CMA && cell->seen[NICSTRIDE_METHOD_PACK] > 0 &&
        cell->seen[NICSTRIDE_METHOD_CMA] == WELL_KNOWN)
        cell->quick = QUICK_PAUSE;
    return (nicstride_method_t)best;
}

/** Notes time that was spent on transfers. */
static void spend(nicstride_tune_cell_t *cell, nicstride_budget_t *budget, double nsec)
{
    budget->spent += nsec;
    for (int m = NICSTRIDE_METHOD_DIRECT; m < NICSTRIDE_METHOD_LAST; m++)
        cell->since[m] += (float)nsec;
}

bool nicstride_tune_copies(nicstride_tune_t *tune, nicstride_direction_t dir, uint64_t bytes)
{
    nicstride_tune_cell_t *cell;

    if (bytes < NICSTRIDE_TUNE_MIN)
        return false;
    cell = &tune->cell[dir == NICSTRIDE_GET][0][nicstride_tune_size(bytes)];
    if (cell->quick == 0)
        return false;
    cell->quick--;
    spend(cell, &tune->budget, (double)cell->rate[NICSTRIDE_METHOD_CMA] * (double)bytes);
    return true;
}

nicstride_method_t nicstride_tune_quick(nicstride_tune_quick_t *quick, nicstride_budget_t *budget,
                                        bool *measure)
{
    nicstride_tune_cell_t *cell = &quick->cell;
    double model[NICSTRIDE_METHOD_LAST], cost;
    nicstride_method_t method;

    *measure = !nicstride_tune_settled(quick, &method);
    if (!*measure)
        return method;
    for (int m = 0; m < NICSTRIDE_METHOD_LAST; m++)
        model[m] = INFINITY;
    model[NICSTRIDE_METHOD_PACK] = model[NICSTRIDE_METHOD_CMA] = QUICK_MODEL;
    method = nicstride_tune_choose(cell, budget, model, NICSTRIDE_TUNE_QUICK_BYTES);
    __atomic_store_n(&quick->method, cheapest(cell, model, NICSTRIDE_TUNE_QUICK_BYTES, &cost),
                     __ATOMIC_RELAXED);
    /* Not before both are known. */
    if (cell->rate[NICSTRIDE_METHOD_PACK] > 0 && cell->rate[NICSTRIDE_METHOD_CMA] > 0) {
        spend(cell, budget, QUICK_PAUSE * cost);
        __atomic_store_n(&quick->left, QUICK_PAUSE, __ATOMIC_RELAXED);
    }
    return method;
}

/** Ends the trial under way: its method took so long, the best one `best`, if any is known. */
static void end_trial(nicstride_tune_cell_t *cell, nicstride_budget_t *budget, double nsec,
                      double best)
{
    const double lost = best > 0 && nsec > best ? nsec - best : 0;

    budget->lost += lost - cell->charged;
    if (lost > 0)
        fail(cell, cell->trial);
    else
        cell->failed[cell->trial] = 0;
    cell->trial = 0;
}

/** The lowest rate that is known of any but this method, or 0. */
static float lowest_other(const nicstride_tune_cell_t *cell, int method)
{
    float least = 0;

    for (int m = NICSTRIDE_METHOD_DIRECT; m < NICSTRIDE_METHOD_LAST; m++) {
        if (m != method && cell->rate[m] > 0 && (least == 0 || cell->rate[m] < least))
            least = cell->rate[m];
    }
    return least;
}

/** Puts an observation into what is known. */
static void update(nicstride_tune_cell_t *cell, int method, float seen)
{
    float *rate = &cell->rate[method], *least = &cell->least[method], before = *rate;
    uint8_t *higher = &cell->higher[method];

    if (before == 0 || seen <= before) {
        *rate = seen;
        *higher = 0;
    } else {
        *least = *higher > 0 && *least < seen ? *least : seen;
        if (++*higher == HIGHER) {
            *rate = *least;
            *higher = 0;
        }
    }
    if (before > 0 && (*rate > CHANGE * before || CHANGE * *rate < before)) {
        for (int m = NICSTRIDE_METHOD_DIRECT; m < NICSTRIDE_METHOD_LAST; m++)
            cell->failed[m] = 0;
    }
}

void nicstride_tune_learn(nicstride_tune_cell_t *cell, nicstride_budget_t *budget,
                          nicstride_method_t method, uint64_t bytes, double nsec)
{
    if (!(nsec > 0) || !isfinite(nsec))
        return;
    spend(cell, budget, nsec);
    if (cell->trial == method)
        end_trial(cell, budget, nsec, (double)lowest_other(cell, method) * (double)bytes);
    if (cell->seen[method] < WELL_KNOWN)
        cell->seen[method]++;
    update(cell, method, (float)(nsec / (double)bytes));
}
