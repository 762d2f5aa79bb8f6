/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The tables of sends of the matrix of progress, and which of them must leave by themselves.
 */
#pragma once

#include "test/mpi/p2p.h"
#include "test/mpi/progress.h"

typedef enum mode { STANDARD, BUFFERED, SYNCHRONOUS, READY, MODES } send_mode_t;

typedef enum call { BLOCKING, NONBLOCKING, PERSISTENT, CALLS } call_t;

typedef struct payload {
    const char *name;
    p2p_shape_t shape;
    int bytes;
    bool is_short; /**< for all layers */
} payload_t;

/** What the sender does then: outside of MPI or in it. */
typedef enum then {
    SLEEPS,
    WAITS, /**< and the next: for its request, and then sleeps */
    TESTS,
    FREES, /**< its request, and then sleeps */
    FREES_POLLS,
    POLLS,
    RECEIVES,
    IN_BARRIER,
    COMM_FREES, /**< and then sleeps */
    COMM_FREES_POLLS,
    DETACHES,
    THENS
} then_t;

/** Where the receiver is. */
typedef enum where {
    WAITING, /**< in MPI_Recv */
    POSTED,  /**< outside of MPI, with a receive posted */
    TESTING,
    PROBING,
    LATE,         /**< outside of MPI, without a receive */
    LATE_POLLING, /**< in MPI, without a receive */
    WHERES
} where_t;

typedef struct send {
    call_t call;
    send_mode_t mode;
    where_t where;
    const payload_t *payload;
    then_t then;
} send_t;

enum { MOST_SHORT = 4000, PAYLOADS = 6, SENDS = CALLS * MODES * WHERES * PAYLOADS * THENS };

/** The send of an index. What changes most often comes first, so that the first cells are short
 *  ones of a process that sleeps. */
send_t send_of(int index);

/** Is the sender in MPI then? */
bool send_in_mpi(then_t then);

/** Does it free the communicator? */
bool send_frees_comm(then_t then);

/** Name and rule of a cell: there is what the receiver has for short messages, or it is used up. */
void send_describe(progress_cell_t *cell, const progress_context_t *context, bool credit);
