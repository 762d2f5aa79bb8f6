/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The tables of one-sided operations of the matrix of progress, and which must be done. */
#pragma once

#include "test/mpi/progress_accesses.h"

typedef enum epoch { LOCK_SHARED, LOCK_EXCLUSIVE, LOCK_ALL, START, FENCE, EPOCHS } epoch_t;

/** What the origin does then. */
typedef enum then {
    WAITS, /**< for the request of the operation */
    TESTS,
    FLUSHES,
    FLUSHES_LOCAL,
    FLUSHES_ALL,
    FLUSHES_LOCAL_ALL,
    ENDS,         /**< the epoch: unlock, unlock_all, complete, fence */
    FREES_WINDOW, /**< it ends the epoch, and then is in MPI_Win_free */
    SLEEPS,
    POLLS,
    RECEIVES,
    THENS
} then_t;

/** Where the target is. */
typedef enum where {
    RECEIVING, /**< in MPI_Recv, until the origin's call has returned */
    POLLING,
    IN_BARRIER,
    OUTSIDE,
    LATE,     /**< outside, and in MPI_Recv a moment later */
    ENDING,   /**< its own part: locks its memory, MPI_Win_wait, MPI_Win_fence, and the origin is
                   outside of MPI by then */
    TESTING,  /**< the same by MPI_Win_test */
    WATCHING, /**< looks into its memory, polling, and the origin stays where it is */
    WHERES
} where_t;

typedef struct plan {
    rma_t op;
    epoch_t epoch;
    const amount_t *amount;
    bool second; /**< not the first operation of the epoch */
    where_t where;
    then_t then;
} plan_t;

enum { PLANS = RMA_CALLS * EPOCHS * AMOUNTS * 2 * WHERES * THENS };

const char *plan_then_name(then_t then);

/** The operation of an index, and what becomes of it. */
plan_t plan_of(int index);

/** Is it passive target? */
bool plan_passive(const plan_t *p);

/** Does the target hold, until the origin's call has returned? */
bool plan_target_holds(where_t where);

/** Name and rule of a cell. */
void plan_describe(progress_cell_t *cell, const progress_context_t *context);
