/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * An allgather that waits for nothing, over point-to-point messages of its own.
 *
 * The agreement of an MPI_Ibarrier needs several exchanges, one after the other, the later ones
 * started from within progress. The nonblocking collectives of the module below cannot be used for
 * these: all ranks must start them in the same order, and the application may start others of its
 * own in between, on each rank at another moment. Messages with a tag that nobody else uses need no
 * such order. Not that of blocking barriers: with a priority below that of the stock component this
 * one has the nonblocking barriers alone.
 *
 * Bruck's algorithm: ceil(log2 n) rounds, any n. It is a barrier, too: it is complete at a member
 * only after all have started it.
 *
 * Threads: one at a time for each exchange. Progress may be called from opal_progress.
 */
#ifndef NICBARRIER_EXCHANGE_H
#define NICBARRIER_EXCHANGE_H

#include "common/ompi_compat.h"

#include "ompi/communicator/communicator.h"
#include "ompi/request/request.h"

typedef struct nicbarrier_exchange {
    struct ompi_communicator_t *comm;
    const int *ranks; /**< of the members, ascending; NULL: all of the communicator */
    int n;
    int me;     /**< index among the members */
    size_t len; /**< bytes of one record */
    unsigned char *all;
    unsigned char *work; /**< records of me, me + 1, ... */
    int have;            /**< records in `work` */
    int coming;          /**< records under way */
    ompi_request_t *request[2];
} nicbarrier_exchange_t;

/** Begins. `mine` is copied; `all` gets n records of `len` > 0 bytes and must stay, as `ranks`
 * must. Returns OMPI_SUCCESS or an error; then nothing is under way. */
int nicbarrier_exchange_start(nicbarrier_exchange_t *x, struct ompi_communicator_t *comm,
                              const int *ranks, int n, int me, const void *mine, size_t len,
                              void *all);

/** 1 where it is complete, 0 where it is not yet, or an OMPI error, after which it is over. */
int nicbarrier_exchange_progress(nicbarrier_exchange_t *x);

#endif
