/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What the methods really cost on this machine, learned from the transfers themselves.
 *
 * The model (cost.h) knows a machine by a few constants. How messages compare with single copy by
 * the kernel depends on more: on how far the two processes' cores are from each other, which
 * differs from peer to peer and, on virtual machines, from minute to minute. So for each kind of
 * transfer (direction, shape, order of magnitude) the observed cost of every method is kept, and
 * replaces the model's estimate once it is known.
 *
 * Any other than the best known method is a trial, and trials are bounded by the time that they
 * lose: of what transfers to a peer have taken, no more than a small part is lost to trials (and to
 * the one that was under way when it turned out dearer than expected). Each trial of a method that
 * failed makes the next one rarer.
 *
 * Pure; the caller serialises. Time comes as an argument, in nanoseconds.
 */
#ifndef NICSTRIDE_TUNE_H
#define NICSTRIDE_TUNE_H

#include <stdbool.h>
#include <stdint.h>

#include "osc_nicstride/plan.h"

/** Transfers of fewer bytes follow the model alone. */
#define NICSTRIDE_TUNE_MIN 64
/** Powers of two from there on; the last holds all that is larger. */
#define NICSTRIDE_TUNE_SIZES 18
/** What is learned of transfers of fewer bytes is good for those that stand alone between two
 *  flushes: messages cost much less where they overlap. */
#define NICSTRIDE_TUNE_ALONE 4096
/** Contiguous, and blocks of at least 4096, 1024, 256, 64, 16, 1 bytes. */
#define NICSTRIDE_TUNE_SHAPES 7

/** The part of the time that trials may lose. */
#define NICSTRIDE_TUNE_SHARE 0.05

/** Time of the transfers to one peer, nanoseconds. */
struct nicstride_budget {
    double spent; /**< on all that were observed, trials among them */
    double lost;  /**< by trials: what they took more than the best known method would have */
};

/** What is known of one kind of transfer. All zero: nothing yet. */
struct nicstride_tune_cell {
    float rate[NICSTRIDE_METHOD_LAST];     /**< nanoseconds for a byte; 0: never observed */
    float least[NICSTRIDE_METHOD_LAST];    /**< the lowest of some observations above that */
    float since[NICSTRIDE_METHOD_LAST];    /**< time spent since it was tried */
    float charged;                         /**< to the budget, for the trial under way */
    uint8_t trial;                         /**< its method; 0: none */
    uint8_t again;                         /**< method of the last trial, if that is repeated */
    uint8_t repeats;                       /**< so often, if there is time */
    uint8_t quick;                         /**< transfers that need not be chosen or measured */
    uint8_t seen[NICSTRIDE_METHOD_LAST];   /**< observations of each method, up to a maximum */
    uint8_t higher[NICSTRIDE_METHOD_LAST]; /**< observations in a row that were above its rate */
    uint8_t failed[NICSTRIDE_METHOD_LAST]; /**< trials in a row in which it was not the best */
};

/**
 * What is known of operations of few bytes that stand alone between two flushes. They cost so
 * little that most are neither chosen nor measured anew.
 */
typedef struct nicstride_tune_quick {
    nicstride_tune_cell_t cell;
    uint16_t left;  /**< operations that still follow the last choice */
    uint8_t method; /**< that choice */
} nicstride_tune_quick_t;

/** All of them count as so long. */
#define NICSTRIDE_TUNE_QUICK_BYTES 128

/** What is known of transfers to and from one peer. */
typedef struct nicstride_tune {
    nicstride_budget_t budget;
    nicstride_tune_quick_t quick[2];
    nicstride_tune_cell_t cell[2][NICSTRIDE_TUNE_SHAPES][NICSTRIDE_TUNE_SIZES];
} nicstride_tune_t;

/** The kind of a transfer, below NICSTRIDE_TUNE_SHAPES and NICSTRIDE_TUNE_SIZES. The size must not
 *  be 0; below NICSTRIDE_TUNE_MIN it counts as that. */
unsigned nicstride_tune_shape(const onic_layout_t *origin, const onic_layout_t *target);
unsigned nicstride_tune_size(uint64_t bytes);

/** What is known of transfers of a kind: NULL where they are too small for this. */
nicstride_tune_cell_t *nicstride_tune_cell(nicstride_tune_t *tune, nicstride_direction_t dir,
                                           const onic_layout_t *origin,
                                           const onic_layout_t *target);

/** Puts what is known in the place of the model's estimates. */
void nicstride_tune_known(const nicstride_tune_cell_t *cell, double *model, uint64_t bytes);

/**
 * The method for the next transfer of this kind, which is about to be observed.
 *
 * @param model  estimates of the model in nanoseconds, by method; infinite for those that cannot
 * @param bytes  that the transfer moves
 * Most often the cheapest one that is known, or by the model the cheapest while none is; now and
 * then another one, if the time that this is expected to lose is there.
 */
nicstride_method_t nicstride_tune_choose(nicstride_tune_cell_t *cell, nicstride_budget_t *budget,
                                         const double *model, uint64_t bytes);

/**
 * The next contiguous transfer of so many bytes: is single copy known to be the cheaper way, and
 * nothing else to be tried? Then that is done without choosing and measuring.
 */
bool nicstride_tune_copies(nicstride_tune_t *tune, nicstride_direction_t dir, uint64_t bytes);

/**
 * Is the method for the next operation of few bytes settled, its cost not to be learned? Inlined;
 * the only function here that needs no serialising: threads that meet may lose a count or two.
 */
static inline bool nicstride_tune_settled(nicstride_tune_quick_t *quick, nicstride_method_t *method)
{
    const uint16_t left = __atomic_load_n(&quick->left, __ATOMIC_RELAXED);

    if (left == 0)
        return false;
    __atomic_store_n(&quick->left, (uint16_t)(left - 1), __ATOMIC_RELAXED);
    *method = (nicstride_method_t)__atomic_load_n(&quick->method, __ATOMIC_RELAXED);
    return true;
}

/**
 * The method for the next operation of few bytes: PACK, or CMA where that is cheaper.
 *
 * @param measure  set to whether its cost is to be learned, as NICSTRIDE_TUNE_QUICK_BYTES in `cell`
 */
nicstride_method_t nicstride_tune_quick(nicstride_tune_quick_t *quick, nicstride_budget_t *budget,
                                        bool *measure);

/** A transfer of `bytes` by `method` took `nsec` from its start to its completion at the target. */
void nicstride_tune_learn(nicstride_tune_cell_t *cell, nicstride_budget_t *budget,
                          nicstride_method_t method, uint64_t bytes, double nsec);

#endif
