/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Which ranks send to which in a barrier: the three algorithms of Yu, Buntinas, Graham and Panda
 * (2004), section 5.1, as data. Pure.
 *
 * A rank goes through its steps in order. In each it first sends, if there is a rank to send to,
 * and then waits, if there is one to wait for. After the last step all others have entered. A
 * message may belong to steps with different numbers at its sender and receiver, so a step also has
 * the other side's number. A message is addressed to (rank, step), which always has the same
 * sender.
 */
#pragma once

#include <stdint.h>

typedef enum nicbarrier_schedule_kind {
    /** Step k sends to the rank 2^k above, modulo N: ceil(log2 N) steps for all. */
    NICBARRIER_DISSEMINATION,
    /** Step k exchanges with the rank whose number differs in bit k: log2 N steps. If N is not a
     *  power of two, ranks above the largest one take part by a step before and one after. */
    NICBARRIER_PAIRWISE,
    /** Up a tree of degree NICBARRIER_DEGREE and down again: 2 log4 N messages in sequence. */
    NICBARRIER_GATHER_BROADCAST
} nicbarrier_schedule_kind_t;

/** Instead of a rank: none. */
#define NICBARRIER_NOBODY (-1)

/** Children of each rank in the tree. */
#define NICBARRIER_DEGREE 4
/** No schedule has more steps: pairwise of 2^31 - 1 ranks. */
#define NICBARRIER_STEPS_MAX 32

typedef struct nicbarrier_step {
    int32_t send_to;  /**< rank, or NICBARRIER_NOBODY */
    int32_t wait_for; /**< rank, or NICBARRIER_NOBODY; waited for after sending */
    uint8_t send_at;  /**< the step in which send_to waits for this message; 0 for nobody */
    uint8_t wait_at;  /**< the step in which wait_for sends that message; 0 for nobody */
} nicbarrier_step_t;

/** The steps of `rank` among `n` ranks. @return their number, 0 for n = 1; or -1 where an argument
 *  is out of range (n < 1, rank not within 0 .. n-1, no such kind) */
int nicbarrier_schedule(nicbarrier_schedule_kind_t kind, int32_t rank, int32_t n,
                        nicbarrier_step_t steps[NICBARRIER_STEPS_MAX]);

/** Bit masks of steps: bit k says whether step k sends, and whether it waits. */
void nicbarrier_schedule_bits(const nicbarrier_step_t *steps, int n, uint64_t *sends,
                              uint64_t *waits);
