/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/tune.h"

#include <math.h>
#include <stddef.h>

/** Choices before another method is tried for the first time, and the factor by which that grows,
 * up to a maximum. At that distance a method that is four times dearer costs 1 % of the time. */
#define INTERVAL_MIN    8
#define INTERVAL_FACTOR 4
#define INTERVAL_MAX    512
/** Times that it is tried then: the first finds its memory cold. Messages longer at first, since
 *  queues in shared memory are slow until each of their pages has been touched by both sides. */
#define TRIALS      2
#define TRIALS_LONG 16
/** How many observations of a method make it known well. */
#define WELL_KNOWN 64
/** Methods that the model thinks so many times dearer than the best one are never tried. */
#define MODEL_SLACK 16
/** Nor are those again that both the model and observation say to be so much dearer. */
#define RATE_SLACK 4
/** An observation that differs by this factor is a surprise, and so many in a row a change. */
#define SURPRISE  1.5F
#define SURPRISES 3
/** An observation counts no more than this many times what was known: a target that lost its
 *  processor once says little of the method. */
#define OUTLIER 2
/** One that is so many times what was expected and known says nothing: the target has left. */
#define ABSURD 16
/** Nanoseconds that an operation of few bytes takes, by any method, until it is known. */
#define QUICK_MODEL 1000
/** Such operations for one that is measured. */
#define QUICK_PAUSE 15
/** Part of the way that the known rate goes up towards an observation. It goes down all the way at
 *  once: what can disturb a transfer makes it dearer. */
#define GAIN 0.25F

static unsigned shape_of(const onic_layout_t *origin, const onic_layout_t *target)
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

static unsigned size_class(uint64_t bytes)
{
    unsigned order = 63U - (unsigned)__builtin_clzll(bytes / NICSTRIDE_TUNE_MIN);

    return order < NICSTRIDE_TUNE_SIZES ? order : NICSTRIDE_TUNE_SIZES - 1;
}

nicstride_tune_cell_t *nicstride_tune_cell(nicstride_tune_t *tune, nicstride_direction_t dir,
                                           const onic_layout_t *origin, const onic_layout_t *target)
{
    if (target->size < NICSTRIDE_TUNE_MIN)
        return NULL;
    return &tune->cell[dir == NICSTRIDE_GET][shape_of(origin, target)][size_class(target->size)];
}

static double estimate(const nicstride_tune_cell_t *cell, int m, const double *model,
                       uint64_t bytes)
{
    if (isinf(model[m]))
        return model[m];
    return cell->rate[m] > 0 ? (double)cell->rate[m] * (double)bytes : model[m];
}

/** The lower one of what the model says and what was observed. */
static double hopeful(const nicstride_tune_cell_t *cell, int m, const double *model, uint64_t bytes)
{
    double known = estimate(cell, m, model, bytes);

    return known < model[m] ? known : model[m];
}

/** Is it worth trying a method that is not thought to be the best? */
static bool may_be_better(const nicstride_tune_cell_t *cell, int m, const double *model,
                          uint64_t bytes, double best)
{
    if (isinf(model[m]))
        return false;
    if (cell->rate[m] > 0)
        return hopeful(cell, m, model, bytes) <= RATE_SLACK * best;
    return model[m] <= MODEL_SLACK * best;
}

/** The one that was not tried for longest, or `best` if there is no other. */
static int another(const nicstride_tune_cell_t *cell, int best, const double *model, uint64_t bytes)
{
    double least = hopeful(cell, best, model, bytes);
    unsigned oldest = 0;
    int found = best;

    for (int m = NICSTRIDE_METHOD_DIRECT; m < NICSTRIDE_METHOD_LAST; m++) {
        unsigned age = cell->rate[m] > 0 ? (uint16_t)(cell->clock - cell->tried[m]) : UINT16_MAX;

        if (m != best && age > oldest && may_be_better(cell, m, model, bytes, least)) {
            oldest = age;
            found = m;
        }
    }
    return found;
}

static bool uses_queues(int method)
{
    return method == NICSTRIDE_METHOD_PACK || method == NICSTRIDE_METHOD_ZCOPY;
}

static void start_trial(nicstride_tune_cell_t *cell, int method)
{
    cell->trial = (uint8_t)method;
    cell->trials = uses_queues(method) && cell->seen[method] < WELL_KNOWN ? TRIALS_LONG : TRIALS;
    cell->interval = cell->interval < INTERVAL_MAX / INTERVAL_FACTOR
                         ? (uint16_t)(cell->interval * INTERVAL_FACTOR)
                         : INTERVAL_MAX;
    cell->wait = cell->interval;
}

static uint8_t cheapest(const nicstride_tune_cell_t *cell, const double *model, uint64_t bytes)
{
    uint8_t best = NICSTRIDE_METHOD_PACK;

    for (uint8_t m = NICSTRIDE_METHOD_DIRECT; m < NICSTRIDE_METHOD_LAST; m++) {
        if (estimate(cell, m, model, bytes) < estimate(cell, best, model, bytes))
            best = m;
    }
    return best;
}

nicstride_method_t nicstride_tune_choose(nicstride_tune_cell_t *cell, const double *model,
                                         uint64_t bytes)
{
    uint8_t best = cheapest(cell, model, bytes);

    cell->clock++;
    if (cell->interval == 0)
        cell->wait = cell->interval = INTERVAL_MIN;
    if (cell->trials == 0 && --cell->wait == 0) {
        start_trial(cell, another(cell, best, model, bytes));
    }
    if (cell->trials > 0) {
        cell->trials--;
        /* What could be done when the trial began may not be possible for this transfer. */
        if (!isinf(model[cell->trial]))
            best = cell->trial;
    }
    cell->tried[best] = cell->clock;
    cell->expected = (float)(model[best] / (double)bytes);
    return (nicstride_method_t)best;
}

/** Is another method known to be cheaper than single copy? */
static bool copies_are_dearer(const nicstride_tune_cell_t *cell)
{
    bool dearer = false;

    for (int m = NICSTRIDE_METHOD_DIRECT; m < NICSTRIDE_METHOD_LAST && !dearer; m++)
        dearer = cell->rate[m] > 0 && cell->rate[m] < cell->rate[NICSTRIDE_METHOD_CMA];
    return dearer;
}

bool nicstride_tune_copies(nicstride_tune_t *tune, nicstride_direction_t dir, uint64_t bytes)
{
    nicstride_tune_cell_t *cell;

    if (bytes < NICSTRIDE_TUNE_MIN)
        return false;
    cell = &tune->cell[dir == NICSTRIDE_GET][0][size_class(bytes)];
    if (cell->trials > 0 || cell->wait <= 1 || cell->surprises > 0 ||
        cell->seen[NICSTRIDE_METHOD_PACK] == 0 || cell->seen[NICSTRIDE_METHOD_CMA] < WELL_KNOWN ||
        copies_are_dearer(cell))
        return false;
    /* Nor for long without a measurement. */
    if (--cell->wait % (QUICK_PAUSE + 1) == 0)
        return false;
    cell->clock++;
    return true;
}

nicstride_method_t nicstride_tune_quick(nicstride_tune_quick_t *quick, bool *measure)
{
    nicstride_tune_cell_t *cell = &quick->cell;
    double model[NICSTRIDE_METHOD_LAST];
    nicstride_method_t method;

    *measure = !nicstride_tune_settled(quick, &method);
    if (!*measure)
        return method;
    for (int m = 0; m < NICSTRIDE_METHOD_LAST; m++)
        model[m] = INFINITY;
    model[NICSTRIDE_METHOD_PACK] = model[NICSTRIDE_METHOD_CMA] = QUICK_MODEL;
    method = nicstride_tune_choose(cell, model, NICSTRIDE_TUNE_QUICK_BYTES);
    __atomic_store_n(&quick->method, cheapest(cell, model, NICSTRIDE_TUNE_QUICK_BYTES),
                     __ATOMIC_RELAXED);
    /* Not before both are known, nor within a trial, whose operations come one after the other. */
    if (cell->trials == 0 && cell->rate[NICSTRIDE_METHOD_PACK] > 0 &&
        cell->rate[NICSTRIDE_METHOD_CMA] > 0)
        __atomic_store_n(&quick->left, QUICK_PAUSE, __ATOMIC_RELAXED);
    return method;
}

/** Tries everything again soon. */
static void start_anew(nicstride_tune_cell_t *cell)
{
    cell->surprises = 0;
    cell->interval = INTERVAL_MIN;
    if (cell->wait > INTERVAL_MIN)
        cell->wait = INTERVAL_MIN;
}

void nicstride_tune_learn(nicstride_tune_cell_t *cell, nicstride_method_t method, uint64_t bytes,
                          double nsec)
{
    float *rate = &cell->rate[method];
    float seen = (float)(nsec / (double)bytes);

    if (!(seen > 0) || (seen > ABSURD * cell->expected && seen > ABSURD * *rate))
        return;
    if (cell->seen[method] < WELL_KNOWN)
        cell->seen[method]++;
    if (*rate == 0) {
        *rate = seen;
        return;
    }
    if (seen > SURPRISE * *rate || seen * SURPRISE < *rate)
        cell->surprises++;
    else
        cell->surprises = 0;
    if (seen > OUTLIER * *rate)
        seen = OUTLIER * *rate;
    *rate = seen < *rate ? seen : *rate + GAIN * (seen - *rate);
    if (cell->surprises >= SURPRISES)
        start_anew(cell);
}
