/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Which members of a communicator share memory with me, and memory that all map. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/support/export.h"
#include "common/transport/row/address.h"
#include "common/transport/shm/kind.h"

struct ompi_communicator_t;

/** The members of a communicator on my node, in rank order. Always holds at least myself. */
typedef struct onic_node {
    int n;           /**< members on this node, 1 .. communicator size, below 2^16 */
    int me;          /**< my index among them */
    int *ranks;      /**< their ranks in the communicator, ascending */
    uint16_t *place; /**< from the first of these to the last for each rank its index and 1, or 0 */
} onic_node_t;

/** The index of a rank among the members, or -1. */
static inline int onic_node_index(const onic_node_t *node, int rank)
{
    const int first = node->ranks[0];

    return rank < first || rank > node->ranks[node->n - 1] ? -1
                                                           : (int)node->place[rank - first] - 1;
}

/** A piece of shared memory mapped by all members of an onic_node_t. */
typedef struct onic_segment {
    void *base;
    size_t size;
} onic_segment_t;

/** True if Open MPI takes that rank to be on this node. */
ONIC_EXPORT bool onic_node_has(struct ompi_communicator_t *comm, int rank);

/** The first rank of this node, by Open MPI's locality: what each sends before onic_node_find. */
ONIC_EXPORT int onic_node_leader(struct ompi_communicator_t *comm);

/** The node, by what all have sent: the leader of rank i stands i * `stride` bytes behind
 *  `leaders`. A rank whose leader has another leader is a node of its own. Ends the job where
 *  memory is exhausted. onic_node_fini must follow. */
ONIC_EXPORT void onic_node_find(struct ompi_communicator_t *comm, const int32_t *leaders,
                                size_t stride, onic_node_t *node);

/** The first rank of the node of any rank, likewise. */
ONIC_EXPORT int onic_node_first(const int32_t *leaders, size_t stride, int rank);

/** Turns it into a node of this process alone. */
ONIC_EXPORT void onic_node_alone(onic_node_t *node);

/** What has become of a segment; the same for all members of the node. */
typedef enum onic_made {
    ONIC_MADE,
    ONIC_NO_SPACE,  /**< it could not be had, or not be mapped by all; nothing is mapped */
    ONIC_NODE_SPLIT /**< some could not map it: they are nodes of their own now, and the others are
                       one; nothing is mapped */
} onic_made_t;

/** Collective over the members of the node: one more zeroed segment of `size` > 0 bytes. Space is
 *  reserved, so that running out shows here and not as SIGBUS later. `parts`: each member reserves
 *  an equal share, in memory near to its process. Else the first reserves all, and the node is
 *  split where some cannot map it (two containers).
 *
 *  Nothing of it is in the file system when this has returned, nor, unless some process must not
 *  open the files of another, before. A process that is alone gets private memory. An error where
 *  messages fail or private memory is exhausted. No text is printed. */
ONIC_EXPORT int onic_node_segment(struct ompi_communicator_t *comm, onic_node_t *node, size_t size,
                                  bool parts, onic_segment_t *segment, onic_made_t *made_p);

/** Collective over the members: the first sends `len` bytes to the others, which receive them. */
int onic_node_tell(struct ompi_communicator_t *comm, const onic_node_t *node, void *bytes,
                   size_t len);

/** Zeroed memory of this process alone. */
ONIC_EXPORT bool onic_segment_private(size_t size, onic_segment_t *segment);

ONIC_EXPORT void onic_segment_unmap(onic_segment_t *segment);
ONIC_EXPORT void onic_node_fini(onic_node_t *node);

/* ---- hardware ------------------------------------------------------------------------------- */

/** Where a process runs. Indices are logical ones of its machine, -1 where it is not bound to one.
 */
typedef struct onic_locality {
    int32_t package;
    int32_t numa;
    int32_t cache;          /**< last-level cache */
    int32_t processors;     /**< that it may run on; 0: not known */
    uint64_t processor_set; /**< a hash of which these are */
} onic_locality_t;

/** Where this process runs, from Open MPI's hwloc topology and the binding. Thread-safe. */
ONIC_EXPORT onic_locality_t onic_locality(void);

/** How far from a process of this node, by its name (peer.h), as Open MPI knows where both are
 *  bound: from one that is not bound as far as any on this machine. Thread-safe. */
ONIC_EXPORT onic_kind_t onic_distance(uint64_t name);

/** A kind of processor, as CPUID tells it. */
typedef struct onic_processor {
    char vendor[16]; /**< empty: not known */
    int family, model;
} onic_processor_t;

/** That of this machine, from Open MPI's hwloc topology. Thread-safe. */
ONIC_EXPORT onic_processor_t onic_processor(void);

/** Bytes of one core's L2 cache, from Open MPI's hwloc topology; 1 MiB where it cannot tell.
 *  Thread-safe. */
ONIC_EXPORT size_t onic_l2_size(void);
