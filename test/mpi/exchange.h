/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * One epoch in which every rank puts to or gets from every rank, and the proof afterwards that
 * each byte of windows and buffers is what the reference says.
 */
#pragma once

#include "test/mpi/testlib.h"
#include "test/mpi/transfer.h"

/** What one rank does to another; freed by the exchange. */
typedef struct exchange_op {
    tr_side_t origin; /**< span any */
    tr_side_t target; /**< span <= slot */
    bool get;
    bool absolute; /**< addresses in the types: MPI_BOTTOM, and displacement 0 where dynamic */
    uint64_t seed; /**< of the origin buffer's contents */
} exchange_op_t;

/**
 * Says what `origin` and `target` do with each other in a round. Has to be a function of its
 * arguments and the seed alone: the origin, and the target when it checks, both ask.
 */
typedef exchange_op_t (*exchange_plan_t)(int round, int origin, int target);

/**
 * Collective: one epoch, then the checks. Each origin has `slot` bytes of every target's memory
 * to itself, in rank order; `slot` must be a multiple of TR_ALIGN, the window at least slots large.
 */
void exchange_round(const tl_window_t *w, tl_sync_t sync, int round, MPI_Aint slot,
                    exchange_plan_t plan);
