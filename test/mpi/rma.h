/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The one-sided calls as a table, for tests that go through all of them. */
#pragma once

#include <mpi.h>
#include <stdbool.h>

/** Those from RMA_RPUT on have a request, and are for passive target. */
typedef enum rma {
    RMA_PUT,
    RMA_GET,
    RMA_ACCUMULATE,
    RMA_GET_ACCUMULATE,
    RMA_FETCH_AND_OP,
    RMA_COMPARE_AND_SWAP,
    RMA_RPUT,
    RMA_RGET,
    RMA_RACCUMULATE,
    RMA_RGET_ACCUMULATE,
    RMA_CALLS
} rma_t;
extern const char *const rma_names[RMA_CALLS];

/** So many elements in a row or not. */
typedef struct rma_data {
    void *at;
    int n;
    MPI_Datatype type;
} rma_data_t;

/** What a call is given. MPI_Fetch_and_op and MPI_Compare_and_swap take one element of `type`. */
typedef struct rma_given {
    rma_data_t origin; /**< what is sent */
    rma_data_t result; /**< where it goes what is got or fetched */
    const void *compare;
    int target;
    MPI_Aint disp;
    int n; /**< at the target */
    MPI_Datatype type;
    MPI_Op op;
    MPI_Win win;
} rma_given_t;

/** `n` elements of a predefined type everywhere; the sum. */
rma_given_t rma_plain(void *origin, void *result, int n, MPI_Datatype type, int target,
                      MPI_Aint disp, MPI_Win win);

/** Makes the call and returns its code. `request` may be NULL for calls without one. */
int rma_call(rma_t call, const rma_given_t *g, MPI_Request *request);

/** The same, and waits for the request, if there is one. The first error. */
int rma_call_and_wait(rma_t call, const rma_given_t *g);

/** Does it give back what the target has? Does it change the target? Is it of one element? */
bool rma_fetches(rma_t call);
bool rma_writes(rma_t call);
bool rma_is_single(rma_t call);
/** Does it use MPI_Op, so that it is atomic? Not MPI_Compare_and_swap. */
bool rma_has_op(rma_t call);
