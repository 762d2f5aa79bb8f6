/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Agreement over a communicator, with its own collectives. MPI threads. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/support/export.h"

struct ompi_communicator_t;

/** Collectives that this process has taken part in by these functions. */
ONIC_EXPORT extern unsigned long long onic_collectives;

/** The smallest of each value over all ranks, in place: of error codes the worst. Returns the
 *  collective's own error. */
ONIC_EXPORT int onic_agree_all(struct ompi_communicator_t *comm, int *values, int n);

/** In the tree along which ranks agree, whose root is rank 0: how many are below one at most; the
 *  one above a rank > 0; the i-th below it, where there is such a rank. */
enum { ONIC_BRANCHES = 4 };
static inline int onic_tree_above(int rank)
{
    return (rank - 1) / ONIC_BRANCHES;
}
static inline int onic_tree_below(int rank, int i)
{
    return rank * ONIC_BRANCHES + 1 + i;
}

/** Whether all ranks take part, where not all may: `joins` says whether another one does, and is
 *  asked about those above and below this rank in the tree only, ONIC_BRANCHES + 1 at most. Two
 *  ranks must answer the same about each other, and a rank that joins must call this.
 *
 *  @return true where all ranks take part, else false at all that do. False, too, where messages
 *          fail. */
ONIC_EXPORT bool onic_agree_among(struct ompi_communicator_t *comm,
                                  bool (*joins)(struct ompi_communicator_t *comm, int rank));

/** Every rank's `len` bytes to every rank, in rank order. */
ONIC_EXPORT int onic_share(struct ompi_communicator_t *comm, const void *mine, int len, void *all);

/** A message between two ranks; some hundred bytes do not wait for the other side. */
ONIC_EXPORT int onic_send_bytes(struct ompi_communicator_t *comm, int to, const void *bytes,
                                size_t len);
ONIC_EXPORT int onic_receive_bytes(struct ompi_communicator_t *comm, int from, void *bytes,
                                   size_t len);

/** Ends the job: there is no memory for what all have to do together. `what` is in the text. */
ONIC_EXPORT void onic_abort_no_memory(struct ompi_communicator_t *comm, const char *what)
    __attribute__((noreturn));
