/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The ring of the leaders, and whom a leader knows on it: those 1, 2, 4, ... away on both sides.
 * Who is 2^(k+1) away is known to the one 2^k away, so ceil(log2 L) - 1 rounds of two messages tell
 * all of them (pointer doubling). These are the partners of dissemination and pairwise exchange.
 *
 * Pure.
 */
#ifndef NICBARRIER_RING_H
#define NICBARRIER_RING_H

#include <stdint.h>

#define NICBARRIER_FINGERS_MAX 31

typedef struct nicbarrier_ring {
    int32_t n;                             /**< leaders */
    int32_t me;                            /**< index among them */
    uint32_t up[NICBARRIER_FINGERS_MAX];   /**< rank of the leader 2^k behind me */
    uint32_t down[NICBARRIER_FINGERS_MAX]; /**< and of that before me */
} nicbarrier_ring_t;

/** ceil(log2 n): so many distances 1, 2, 4, ... are less than n >= 1. */
int nicbarrier_fingers(int32_t n);

/** The rank of the leader of that index; NICBARRIER_NO_RANK where it is no power of two away. */
uint32_t nicbarrier_ring_rank(const nicbarrier_ring_t *ring, int32_t index);

#endif
