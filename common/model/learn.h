/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What the ways to do a transfer really cost, learned from the transfers themselves: for
 *  each kind (direction, shape, order of magnitude) the observed cost of every choice replaces the
 *  model's estimate once it is known. It depends on how far two processes' cores are from each
 *  other, which differs from peer to peer and, on virtual machines, from minute to minute; and on
 *  whether the other process has a processor, for those choices that wait for it.
 *
 *  Any other than the best known choice is a trial, and trials are bounded by the time that they
 *  lose: a small part of what transfers to a peer have taken. Each trial of a choice that failed
 *  makes the next one rarer. Where nothing is to be tried and the best choice is known well, it is
 *  fixed for some transfers: they are neither chosen nor measured, and take no lock.
 *
 *  Choices are numbers below ONIC_LEARN_CHOICES; an infinite estimate means that one cannot do it.
 *  Pure; the caller serialises, but for onic_learn_fixed. Time is in nanoseconds. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/layout/layout.h"
#include "common/support/export.h"

#define ONIC_LEARN_CHOICES 10
/** Put, get and accumulate, say. */
#define ONIC_LEARN_DIRECTIONS 3
/** Contiguous, and blocks of at least 4096, 1024, 256, 64, 16, 1 bytes. */
#define ONIC_LEARN_SHAPES 7
/** All below ONIC_LEARN_LEAST bytes, powers of two from there on; the last holds all above. */
#define ONIC_LEARN_SIZES 18
/** The shortest transfers cost the same, and count as so long. */
#define ONIC_LEARN_LEAST 128

/** The part of the time that trials may lose. */
#define ONIC_LEARN_SHARE 0.05

/** Time of the transfers to one peer, nanoseconds. */
typedef struct onic_learn_budget {
    double spent; /**< on all that were observed, trials among them */
    double lost;  /**< by trials: what they took more than the best known choice would have */
} onic_learn_budget_t;

/** What is known of one kind of transfer. All zero: nothing yet. */
typedef struct onic_learn_cell {
    float rate[ONIC_LEARN_CHOICES];   /**< nanoseconds for a byte; 0: never observed */
    float since[ONIC_LEARN_CHOICES];  /**< time spent since it was tried */
    float usual[ONIC_LEARN_CHOICES];  /**< bytes that were observed since it last took very long */
    float charged;                    /**< to the budget, for the trial under way */
    uint8_t trial;                    /**< 1 + the choice that is tried; 0: none */
    uint8_t again;                    /**< the same of the last trial, if that is repeated */
    uint8_t repeats;                  /**< so often, if there is time */
    uint8_t last;                     /**< 1 + the choice that was observed last; 0: none was */
    uint8_t best;                     /**< the choice that is fixed; atomic */
    uint16_t left;                    /**< transfers for which it is; atomic */
    uint16_t ignored;                 /**< choices whose last observation did not count; bits */
    uint8_t seen[ONIC_LEARN_CHOICES]; /**< observations of each choice, up to a maximum */
    uint8_t failed[ONIC_LEARN_CHOICES]; /**< trials in a row in which it was not the best */
} onic_learn_cell_t;

/** What is known of transfers to and from one peer. All zero: nothing yet. */
typedef struct onic_learn {
    onic_learn_budget_t budget;
    onic_learn_cell_t cell[ONIC_LEARN_DIRECTIONS][ONIC_LEARN_SHAPES][ONIC_LEARN_SIZES];
} onic_learn_t;

/** Where transfers of a kind to a peer are learned. */
typedef struct onic_learned {
    onic_learn_cell_t *cell;     /**< NULL: nothing is */
    onic_learn_budget_t *budget; /**< for trials; NULL: nothing is tried */
} onic_learned_t;

/** Is what a transfer took, `nsec` until the flush behind it had ended, its own time, where `gap`
 *  of it passed between its call and that flush? The application has not worked for long then. */
static inline bool onic_learn_is_whole(double gap, double nsec)
{
    return gap <= 1000 || gap <= nsec / 16;
}

/** Nothing is learned. */
#define ONIC_MODEL_ALONE ((onic_learned_t){.cell = NULL})

/** The shape of a transfer, below ONIC_LEARN_SHAPES: by the mean block of the side that has more
 *  of them. Both sides have the same, positive size. */
ONIC_EXPORT unsigned onic_learn_shape(const onic_layout_t *origin, const onic_layout_t *target);

/** The same of `bytes` bytes in pieces of `block`, on average; positive. */
ONIC_EXPORT unsigned onic_learn_shape_of(uint64_t block, uint64_t bytes);

/** Its class by size, below ONIC_LEARN_SIZES. Inlined: the shortest take it on their way. */
static inline unsigned onic_learn_size(uint64_t bytes)
{
    const uint64_t units = bytes / ONIC_LEARN_LEAST;
    const unsigned order = units > 0 ? 64U - (unsigned)__builtin_clzll(units) : 0;

    return order < ONIC_LEARN_SIZES ? order : ONIC_LEARN_SIZES - 1;
}

/** What is known of contiguous transfers; `direction` below ONIC_LEARN_DIRECTIONS. */
static inline onic_learn_cell_t *onic_learn_contiguous(onic_learn_t *learn, unsigned direction,
                                                       uint64_t bytes)
{
    return &learn->cell[direction][0][onic_learn_size(bytes)];
}

/** The direction of those of which that is known. */
static inline unsigned onic_learn_direction(const onic_learn_t *learn,
                                            const onic_learn_cell_t *cell)
{
    return (unsigned)((size_t)(cell - &learn->cell[0][0][0]) /
                      ((size_t)ONIC_LEARN_SHAPES * ONIC_LEARN_SIZES));
}

/** The same of any transfers. */
ONIC_EXPORT onic_learn_cell_t *onic_learn_cell(onic_learn_t *learn, unsigned direction,
                                               const onic_layout_t *origin,
                                               const onic_layout_t *target);

/** Is the choice for the next transfer fixed? Then it is neither to be chosen nor to be measured,
 *  and where it `counts` has been counted. Threads that meet may lose a count or two. The caller
 *  checks that the choice can do this one. */
static inline bool onic_learn_fixed(onic_learn_cell_t *cell, bool counts, unsigned *choice)
{
    const uint16_t left = __atomic_load_n(&cell->left, __ATOMIC_RELAXED);

    if (left == 0)
        return false;
    if (counts)
        __atomic_store_n(&cell->left, (uint16_t)(left - 1), __ATOMIC_RELAXED);
    *choice = __atomic_load_n(&cell->best, __ATOMIC_RELAXED);
    return true;
}

/** Puts what is known in the place of the model's estimates. */
ONIC_EXPORT void onic_learn_known(const onic_learn_cell_t *cell, double model[ONIC_LEARN_CHOICES],
                                  uint64_t bytes);

/** The choice for the next transfer of this kind, of `bytes` >= 1, which is about to be observed:
 *  most often the cheapest one; now and then another one, if the time that this may lose is there.
 *  `model`: estimates in nanoseconds; infinite for choices that cannot do it. At least one can. */
ONIC_EXPORT unsigned onic_learn_choose(onic_learn_cell_t *cell, onic_learn_budget_t *budget,
                                       const double model[ONIC_LEARN_CHOICES], uint64_t bytes);

/** Is this choice being tried, as onic_learn_choose last said? */
static inline bool onic_learn_is_trial(const onic_learn_cell_t *cell, unsigned choice)
{
    return cell->trial == choice + 1;
}

/** A transfer of `bytes` by `choice` took `nsec` from its start to its completion at the target. */
ONIC_EXPORT void onic_learn_note(onic_learn_cell_t *cell, onic_learn_budget_t *budget,
                                 unsigned choice, uint64_t bytes, double nsec);
