/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * One measurement of strided_rma: an operation between ranks 0 (origin) and 1 (target).
 */
#pragma once

#include "perf/bench.h"
#include "perf/shape.h"

typedef enum rma_op {
    RMA_PUT,
    RMA_GET,
    RMA_ACC,
    RMA_GACC,
    RMA_PUT_TYPELOOP,
    RMA_GET_TYPELOOP,
    RMA_ACC_TYPELOOP,
    RMA_PUT_LAT,
    RMA_GET_LAT,
    RMA_ACC_LAT,
    RMA_FOP_LAT,
    RMA_CAS_LAT,
    RMA_OPS
} rma_op_t;

/** In order: lock_all with a flush; fences; post, start, complete and wait; lock and unlock. */
typedef enum rma_sync {
    RMA_SYNC_FLUSH,
    RMA_SYNC_FENCE,
    RMA_SYNC_PSCW,
    RMA_SYNC_LOCK,
    RMA_SYNCS
} rma_sync_t;

extern const char *const rma_op_names[RMA_OPS];
extern const char *const rma_sync_names[RMA_SYNCS];

/** True if the operation is a single element, measured for its latency. */
bool rma_op_is_latency(rma_op_t op);

/** True if the target calls MPI for the synchronisation, too. */
bool rma_sync_is_active(rma_sync_t sync);

/** One side of a transfer. */
typedef struct rma_side {
    bench_shape_t shape;
    MPI_Datatype type;
    int count;
    bool derived;
} rma_side_t;

typedef struct rma_test {
    MPI_Comm comm; /* two ranks */
    int rank;
    rma_op_t op;
    rma_sync_t sync;
    bool target_computes; /* between operations the target computes outside of MPI */
    double slice;         /* seconds of that at a time */
    double unit;          /* seconds per unit of its work in the last rma_sample or rma_rest */
    double budget;        /* seconds to measure for */
    int burst;            /* operations between two synchronisations */
    int nth;              /* the current one of these; each has its own place */
    const bench_window_t *window;
    MPI_Group peer; /* the other rank, while an epoch is open */
    char *local;    /* origin's private buffer, the extents of a burst of its shape */
    char *results;  /* the same for what RMA_GACC fetches */
    char *scratch;  /* destination of the in-process copy, the extent of the target's shape */
    rma_side_t origin, target;
} rma_test_t;

/** Seconds of one operation, with its share of the synchronisation: the median and the best of the
 *  measured batches. */
typedef struct rma_time {
    double median;
    double best;
} rma_time_t;

/** Makes the types of both sides from their shapes, unless the operation makes its own each time.
 */
void rma_test_begin(rma_test_t *t);
/** Frees what rma_test_begin made. */
void rma_test_end(rma_test_t *t);

/** Collective. Opens and closes the epoch in which all tests on the window run. */
void rma_epoch_open(rma_test_t *t);
void rma_epoch_close(rma_test_t *t);

/**
 * Collective. Measures the operation, completion at the target included; with `reads` also the time
 * in which the side that receives data reads it (and, for data that arrives at the target, one
 * exchange of empty messages, or a second fence, to take turns). The result is valid on rank 0.
 */
rma_time_t rma_measure(rma_test_t *t, bool reads);

/**
 * Collective, in lock_all. Seconds of each of up to `n` single bursts, completion included. The
 * origin computes for `pause` seconds on average before each, and begins none after `limit`
 * seconds. Returns the number of bursts, on rank 0.
 */
int rma_sample(rma_test_t *t, double pause, double limit, double *seconds, int n);

/** The same without bursts: the origin computes for this many seconds. */
void rma_rest(rma_test_t *t, double seconds);

/** On rank 0, while rank 1 waits in MPI's next call: the in-process copy between the same shapes.
 */
rma_time_t rma_measure_copy(const rma_test_t *t, bool reads);

/**
 * Collective. Does one burst on cleared memory and compares what arrived, gaps included.
 * Returns the number of wrong elements and gap bytes, on both ranks.
 */
long rma_check(rma_test_t *t);
