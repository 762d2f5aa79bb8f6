/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * A sweep: every rank's record to rank 0 and an answer back, over a binomial tree in which each
 * rank stands for a range of ranks that begins with its own: 2 (N - 1) messages, ceil(log2 N) one
 * after another each way, and at most that many children.
 *
 * What comes up is combined in ascending order, so that it may count: the answer tells each range
 * what is before it and behind it.
 *
 * Pure.
 */
#ifndef NICBARRIER_SWEEP_H
#define NICBARRIER_SWEEP_H

#include "coll_nicbarrier/agree/message.h"

/** Most children of a rank. */
#define NICBARRIER_CHILDREN_MAX 31

/** The leaders of a range of ranks. */
typedef struct nicbarrier_span {
    uint32_t leaders;
    uint32_t first; /**< where there is one */
    uint32_t last;
} nicbarrier_span_t;

/** Child k = 0, 1, ... of a rank among `size` ranks; -1 where there is none, nor further ones. The
 *  ranges of the children follow upon each other. */
int32_t nicbarrier_child(int32_t rank, int32_t size, int k);
/** Of a rank other than 0. */
int32_t nicbarrier_parent(int32_t rank);

/** Adds to the record of a range that of the one behind it. */
void nicbarrier_combine(nicbarrier_summary_t *range, const nicbarrier_summary_t *next);

/**
 * The part of an answer to a range that goes to child `k` of the `n` of the rank that stands for
 * it; k = -1 is for that rank alone, of which `mine` tells whether it leads. The answer to all
 * ranks is the record of all.
 */
nicbarrier_summary_t nicbarrier_answer_part(const nicbarrier_summary_t *answer,
                                            nicbarrier_span_t mine, const nicbarrier_span_t *child,
                                            int n, int k);

#endif
