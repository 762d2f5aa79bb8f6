/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/model/learn.h"

#include <math.h>
#include <string.h>

#define N    ONIC_LEARN_CHOICES
#define NONE N

/** What a trial costs beside the time that it loses, as a part of the best choice's time: where all
 *  are equal they are not tried all the time. */
#define PRICE 0.0625
/** Each trial in a row that fails makes the next one half as frequent; up to so often. */
#define FAILED_FIRST 2
#define FAILED_MAX   6
/** So many observations make a choice known well. The first find memory cold: until then the model
 *  is believed where it says less. */
#define WELL_KNOWN 64
/** An observation moves what is known by such a part of the difference, so that a choice which
 *  costs now this and now that counts with the mean: how fast the kernel copies depends on where
 *  both ends lie in their pages. By more where a trial finds it far below. */
#define WEIGHT       0.125
#define WEIGHT_LOWER 0.25
/** The first so many, until one is odd, are lowered at once by one that took half as long: memory
 *  was cold. */
#define COLD 16
/** Of the first so many the lowest counts. */
#define COLDEST 6
/** Others are tried when the best choice has been observed so often: where both processes begin
 * with cold memory, each would leave the choice that is best when both make it. */
#define TRIED_AFTER 3
/** An observation of more than so many times what is known is odd: others had the processor, or the
 *  target was away. A single one changes nothing. But a choice that waits for processes which have
 *  no processor meets them again and again, where another choice may do without these processes. */
#define ODD 3
/** So an odd one counts where it took so many times as long as all since the last odd one. What is
 *  known becomes the mean of those and this one. */
#define ODD_COUNTS 30
/** The first observation of a choice weighs like so many here. */
#define ODD_FIRST 64
/** So many times what the best is known to take is the most that is spent or lost: what is above
 *  is not the choice's own, and gives no time for trials. */
#define OWN 16
/** A trial is repeated so often, as the first transfer by another choice finds memory and code
 *  cold, and does not count; more often where nothing is expected to be lost. */
#define REPEATS         2
#define REPEATS_HOPEFUL 7
/** A cost that changes by this factor: what failed before may not now. */
#define CHANGE 2
/** Transfers for which a choice is fixed. */
#define FIXED 15

unsigned onic_learn_shape_of(uint64_t block, uint64_t bytes)
{
    uint64_t least = 4096;
    unsigned shape = 1;

    if (block >= bytes)
        return 0;
    for (; shape < ONIC_LEARN_SHAPES - 1 && block < least; shape++)
        least /= 4;
    return shape;
}

unsigned onic_learn_shape(const onic_layout_t *origin, const onic_layout_t *target)
{
    const uint64_t a = onic_layout_blocks(origin), b = onic_layout_blocks(target);
    const uint64_t blocks = a > b ? a : b;

    return onic_learn_shape_of(blocks > 1 ? target->size / blocks : target->size, target->size);
}

onic_learn_cell_t *onic_learn_cell(onic_learn_t *learn, unsigned direction,
                                   const onic_layout_t *origin, const onic_layout_t *target)
{
    return &learn->cell[direction][onic_learn_shape(origin, target)][onic_learn_size(target->size)];
}

/** The length that a transfer counts as. */
static double counted(uint64_t bytes)
{
    return bytes < ONIC_LEARN_LEAST ? ONIC_LEARN_LEAST : (double)bytes;
}

static double expected(const onic_learn_cell_t *cell, unsigned c, const double *model, double bytes)
{
    const double known = (double)cell->rate[c] * bytes;

    if (isinf(model[c]) || cell->rate[c] == 0)
        return model[c];
    return cell->seen[c] < WELL_KNOWN ? fmin(known, model[c]) : known;
}

void onic_learn_known(const onic_learn_cell_t *cell, double model[N], uint64_t bytes)
{
    for (unsigned c = 0; c < N; c++)
        model[c] = expected(cell, c, model, counted(bytes));
}

/** The cheapest that is known, or by the model; `*cost_p` gets what it takes. */
static unsigned cheapest(const onic_learn_cell_t *cell, const double *model, double bytes,
                         double *cost_p)
{
    unsigned known = NONE, guess = NONE;

    for (unsigned c = 0; c < N; c++) {
        if (isinf(model[c]))
            continue;
        if (cell->rate[c] > 0 && (known == NONE || cell->rate[c] < cell->rate[known]))
            known = c;
        if (guess == NONE || model[c] < model[guess])
            guess = c;
    }
    if (guess == NONE)
        guess = 0;
    *cost_p = known != NONE ? (double)cell->rate[known] * bytes : model[guess];
    return known != NONE ? known : guess;
}

/** Is there time for a trial that is expected to lose so much? */
static bool is_time(const onic_learn_budget_t *budget, double extra)
{
    return budget->lost + extra <= ONIC_LEARN_SHARE * budget->spent;
}

/** And was the last one long enough ago? */
static bool may_try(const onic_learn_cell_t *cell, const onic_learn_budget_t *budget, unsigned c,
                    double extra, double best)
{
    const int most = cell->seen[c] < WELL_KNOWN ? FAILED_FIRST : FAILED_MAX;
    const int failed = cell->failed[c] < most ? cell->failed[c] : most;

    return (extra + PRICE * best) * (double)(1U << failed) <= ONIC_LEARN_SHARE * cell->since[c] &&
           is_time(budget, extra);
}

static double extra_of(const onic_learn_cell_t *cell, unsigned c, const double *model, double bytes,
                       double cost)
{
    const double extra = expected(cell, c, model, bytes) - cost;

    return extra > 0 ? extra : 0;
}

/** Of the choices that may be tried the one that has failed least, or the most promising of those;
 *  NONE where there is none. One that the model believes too much in is not to stand before the
 *  others for ever. `*extra_p` gets what it may lose. */
static unsigned to_be_tried(const onic_learn_cell_t *cell, const onic_learn_budget_t *budget,
                            const double *model, double bytes, unsigned best, double cost,
                            double *extra_p)
{
    unsigned found = NONE;

    for (unsigned c = 0; c < N; c++) {
        double extra;

        if (c == best || isinf(model[c]))
            continue;
        extra = extra_of(cell, c, model, bytes, cost);
        if (may_try(cell, budget, c, extra, cost) &&
            (found == NONE || cell->failed[c] < cell->failed[found] ||
             (cell->failed[c] == cell->failed[found] && extra < *extra_p))) {
            found = c;
            *extra_p = extra;
        }
    }
    return found;
}

static void fail(onic_learn_cell_t *cell, unsigned c)
{
    if (cell->failed[c] < UINT8_MAX)
        cell->failed[c]++;
}

/** A trial whose cost was not seen leaves the model's word. */
static void give_up_trial(onic_learn_cell_t *cell, const double *model, double bytes)
{
    const unsigned c = cell->trial - 1U;

    if (cell->trial == 0)
        return;
    cell->trial = 0;
    cell->repeats = 0;
    fail(cell, c);
    if (cell->rate[c] == 0 && !isinf(model[c]))
        cell->rate[c] = (float)(model[c] / bytes);
}

/** The choice to be tried for the next transfer, or NONE; `*extra_p`: what it may lose. */
static unsigned next_trial(onic_learn_cell_t *cell, const onic_learn_budget_t *budget,
                           const double *model, double bytes, unsigned best, double cost,
                           double *extra_p)
{
    if (cell->repeats > 0) {
        const unsigned c = cell->again - 1U;

        cell->repeats--;
        *extra_p = extra_of(cell, c, model, bytes, cost);
        if (c != best && !isinf(model[c]) && is_time(budget, *extra_p))
            return c;
        cell->repeats = 0;
    }
    const unsigned found = to_be_tried(cell, budget, model, bytes, best, cost, extra_p);
    if (found != NONE) {
        cell->again = (uint8_t)(found + 1);
        cell->repeats = *extra_p > 0 ? REPEATS : REPEATS_HOPEFUL;
    }
    return found;
}

static void spend(onic_learn_cell_t *cell, onic_learn_budget_t *budget, double nsec)
{
    budget->spent += nsec;
    for (unsigned c = 0; c < N; c++)
        cell->since[c] += (float)nsec;
}

/** The best choice holds for the next transfers, too, if it is known well. */
static void fix(onic_learn_cell_t *cell, onic_learn_budget_t *budget, unsigned best, double cost,
                double bytes)
{
    const uint16_t left = __atomic_load_n(&cell->left, __ATOMIC_RELAXED);

    /* Nor where one of the last was odd: something may have changed. */
    if (cell->seen[best] < WELL_KNOWN || (double)cell->usual[best] < COLD * bytes)
        return;
    /* Some of the last ones may have gone another way, and been noted. */
    spend(cell, budget, (FIXED - left) * cost);
    __atomic_store_n(&cell->best, (uint8_t)best, __ATOMIC_RELAXED);
    __atomic_store_n(&cell->left, FIXED, __ATOMIC_RELAXED);
}

unsigned onic_learn_choose(onic_learn_cell_t *cell, onic_learn_budget_t *budget,
                           const double model[N], uint64_t bytes)
{
    const double len = counted(bytes);
    double cost, extra = 0;
    unsigned best, trial;

    give_up_trial(cell, model, len);
    best = cheapest(cell, model, len, &cost);
    trial = cell->seen[best] >= TRIED_AFTER
                ? next_trial(cell, budget, model, len, best, cost, &extra)
                : NONE;
    if (trial == NONE) {
        fix(cell, budget, best, cost, len);
        return best;
    }
    cell->trial = (uint8_t)(trial + 1);
    cell->charged = (float)extra;
    cell->since[trial] = 0;
    budget->lost += cell->charged;
    return trial;
}

/** Ends the trial under way: it took so long, the best other choice `best`, or 0: none is known. */
static void end_trial(onic_learn_cell_t *cell, onic_learn_budget_t *budget, double nsec,
                      double best)
{
    const double lost = best > 0 && nsec > best ? fmin(nsec, OWN * best) - best : 0;

    budget->lost += lost - cell->charged;
    if (lost > 0)
        fail(cell, cell->trial - 1U);
    else
        cell->failed[cell->trial - 1U] = 0;
    cell->trial = 0;
}

/** The lowest rate that is known of any but this choice (NONE: of all), or 0. */
static float lowest_other(const onic_learn_cell_t *cell, unsigned choice)
{
    float least = 0;

    for (unsigned c = 0; c < N; c++)
        if (c != choice && cell->rate[c] > 0 && (least == 0 || cell->rate[c] < least))
            least = cell->rate[c];
    return least;
}

/** Another choice has left the data in other caches, which costs the first transfer behind it, but
 *  none of a series. So that one does not count, but for a trial's only one, or where each of this
 *  choice would be one. */
static bool is_ignored(onic_learn_cell_t *cell, unsigned choice, bool trial)
{
    const uint16_t bit = (uint16_t)(1U << choice);

    if (cell->last == choice + 1 || (trial && cell->repeats == 0) || (cell->ignored & bit) != 0) {
        cell->ignored &= (uint16_t)~bit;
        return false;
    }
    cell->ignored |= bit;
    return true;
}

static void update(onic_learn_cell_t *cell, unsigned choice, bool trial, double nsec, double len)
{
    float *rate = &cell->rate[choice], *usual = &cell->usual[choice];
    const double before = (double)*rate, seen = nsec / len;
    const bool lower = CHANGE * seen < before;

    if (before > 0 && seen > ODD * before) {
        const double others = (double)*usual * before;

        if (nsec > ODD_COUNTS * others) {
            *rate = (float)((others + nsec) / ((double)*usual + len));
            cell->seen[choice] = WELL_KNOWN; /* it is not that memory was cold */
            memset(cell->failed, 0, sizeof(cell->failed));
            cell->repeats = 0;
        }
        *usual = 0;
        return;
    }
    *usual += (float)(before == 0 ? ODD_FIRST * len : len);
    if (before == 0 || (cell->seen[choice] <= COLD && lower) ||
        (cell->seen[choice] <= COLDEST && seen < before)) {
        cell->ignored &= (uint16_t) ~(1U << choice);
        *rate = (float)seen;
        return;
    }
    if (is_ignored(cell, choice, trial))
        return;
    if (!trial && lower)
        memset(cell->failed, 0, sizeof(cell->failed));
    *rate += (float)((trial && lower ? WEIGHT_LOWER : WEIGHT) * (seen - before));
}

void onic_learn_note(onic_learn_cell_t *cell, onic_learn_budget_t *budget, unsigned choice,
                     uint64_t bytes, double nsec)
{
    const double len = counted(bytes);
    const bool trial = onic_learn_is_trial(cell, choice);
    const double best = (double)lowest_other(cell, NONE) * len;
    const double known = (double)cell->rate[choice] * len;

    if (!(nsec > 0) || !isfinite(nsec))
        return;
    spend(cell, budget, best > 0 ? fmin(nsec, OWN * best) : nsec);
    if (trial)
        end_trial(cell, budget, nsec, (double)lowest_other(cell, choice) * len);
    else if (cell->last != choice + 1) /* what the trial before it has cost this one */
        budget->lost += fmax(fmin(nsec, 2 * known) - known, 0);
    if (cell->seen[choice] < WELL_KNOWN)
        cell->seen[choice]++;
    update(cell, choice, trial, nsec, len);
    cell->last = (uint8_t)(choice + 1);
}
