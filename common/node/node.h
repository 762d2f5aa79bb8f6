/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Node topology and mapped segments: which members of a communicator share memory with me, and
 * memory that we all have mapped.
 */
#ifndef ONIC_NODE_H
#define ONIC_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/support/export.h"
#include "common/support/peer_file.h"

struct ompi_communicator_t;

/** The members of a communicator on my node, in rank order. Always holds at least myself. */
typedef struct onic_node {
    int n;      /**< members on this node, 1 .. communicator size */
    int me;     /**< my index among them */
    int *ranks; /**< their ranks in the communicator, ascending */
    int *index; /**< for each rank of the communicator its index here, or -1 */
} onic_node_t;

/** What finds a segment, and tells it from another of the same name on another machine. Travels
 *  between processes. */
typedef struct onic_segment_key {
    onic_file_key_t file; /**< a file without a name, open at the maker; or none: */
    char name[32];        /**< a name */
    uint64_t size;        /**< 0: there is no segment */
    uint64_t nonce;
    uint64_t shares; /**< processes that are to reserve a share of the space each */
} onic_segment_key_t;

/** A piece of shared memory mapped by all members of an onic_node_t. */
typedef struct onic_segment {
    void *base;
    size_t size;
} onic_segment_t;

/**
 * Collective over `comm`: finds who shares this node, by Open MPI's locality flags and then by a
 * mapping that must succeed: a segment of `size` bytes is created by the first member, and those
 * that could map it are the node. `size` must be the same on all members of a node and > 0.
 * The segment is zeroed. Every rank gets the same code; a process that could not map (shared memory
 * is exhausted, or not the same in both containers) becomes a node of its own with private memory.
 * `*shared_p` is false where somebody is missing from this node for such a reason; it is true for a
 * process that is alone by right.
 * Nothing of the segment is in the file system when this has returned on all ranks, and, unless
 * some process must not open the files of another, not before either.
 */
ONIC_EXPORT int onic_node_create(struct ompi_communicator_t *comm, size_t size, onic_node_t *node,
                                 onic_segment_t *segment, bool *shared_p);

/**
 * Collective over `comm`, after onic_node_create: one more segment for each node (sizes may differ
 * between nodes, the same on the members of one). `*ok_p` is false on ALL ranks of a node where it
 * could not be had there (no space, limits); nothing is mapped then and no text is printed.
 * Space is reserved, so that running out shows here and not as SIGBUS later. Each member reserves
 * an equal share, in the order of the members: where the parts of a segment are laid out so, each
 * lies in memory near to its process. (The first segment is reserved by the first member alone.)
 */
ONIC_EXPORT int onic_node_segment(struct ompi_communicator_t *comm, const onic_node_t *node,
                                  size_t size, onic_segment_t *segment, bool *ok_p);

ONIC_EXPORT void onic_segment_unmap(onic_segment_t *segment);
ONIC_EXPORT void onic_node_fini(onic_node_t *node);

/** Whether a process has a segment that another one has made; travels between processes. */
typedef enum onic_joined {
    ONIC_NOT_JOINED,
    ONIC_JOINED,
    ONIC_NEEDS_NAME /**< not joined: it must not open what has no name, or cannot */
} onic_joined_t;

/* ---- the same in steps, without arrays --------------------------------------------------------
 *
 * For those who tell each other what there is to be told, node by node. None of these waits or
 * prints anything. Any MPI thread.
 */

/** Does Open MPI take that rank to be on this node? */
ONIC_EXPORT bool onic_node_has(struct ompi_communicator_t *comm, int rank);

/** Makes a zeroed segment of `bytes` > 0 with all its space reserved. `named`: somebody has needed
 *  a name; from then on all segments that this process makes have one. False where it cannot be
 *  had: the key is empty then. Otherwise onic_node_hide must follow, when all have mapped it. */
ONIC_EXPORT bool onic_node_make(size_t bytes, bool named, onic_segment_key_t *key,
                                onic_segment_t *segment);

/** Maps the segment of that key, made with the same `bytes` by another process of this node. */
ONIC_EXPORT onic_joined_t onic_node_map(const onic_segment_key_t *key, size_t bytes,
                                        onic_segment_t *segment);

/** By its maker: nobody can find it any more, and the key is empty. An empty key may be given. */
ONIC_EXPORT void onic_node_hide(onic_segment_key_t *key);

/* ---- hardware ------------------------------------------------------------------------------- */

/** Where a process runs, as logical indices on its machine; -1 where it is not bound to one. */
typedef struct onic_locality {
    int32_t package;
    int32_t numa;
    int32_t cache; /**< last-level cache */
} onic_locality_t;

/** Where this process runs, from Open MPI's hwloc topology and the binding. Thread-safe. */
ONIC_EXPORT onic_locality_t onic_locality(void);

/** Bytes of one core's L2 and of the shared L3 cache, from Open MPI's hwloc topology; defaults of
 *  1 MiB and 32 MiB where it cannot tell. Thread-safe. */
ONIC_EXPORT void onic_cache_sizes(size_t *l2_p, size_t *l3_p);

#endif
