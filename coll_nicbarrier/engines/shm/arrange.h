/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * How the processes of a node gather: a tree of groups that follows caches, NUMA nodes and
 * packages. Pure. The tree lies in memory that the caller gives, so that one process may make it
 * for all of its node. Its leaves are the processes, in an order in which those that share a cache
 * are neighbours. The vertices are numbered level by level, leaves first, so the children of a
 * vertex are a range of numbers and the root is the last one.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/** Where a process runs; -1 where that is not known. Compared from the first to the last: processes
 *  gather in the nearest cache first. */
typedef struct nicbarrier_locality {
    int32_t package;
    int32_t numa;
    int32_t cache;
} nicbarrier_locality_t;

typedef struct nicbarrier_vertex {
    int32_t parent; /**< -1 for the root */
    int32_t first;  /**< its first child; 0 for leaves */
    int32_t count;  /**< how many children; 0 for leaves */
    int32_t leaf;   /**< the first leaf below it */
} nicbarrier_vertex_t;

typedef struct nicbarrier_tree {
    int leaves;                  /**< processes */
    int vertices;                /**< all, at most nicbarrier_tree_max(leaves) */
    int32_t *leaf;               /**< for each process the number of its leaf */
    nicbarrier_vertex_t *vertex; /**< all */
} nicbarrier_tree_t;

/** Most vertices that a tree of `leaves` leaves can have, whatever the fanout. */
int nicbarrier_tree_max(int leaves);

/** Bytes of a tree's arrays. */
size_t nicbarrier_tree_bytes(int leaves);

/** A tree whose arrays lie at `base`, aligned as an int32_t, whether one has been arranged there or
 *  is to be; `vertices` is not known from that. */
nicbarrier_tree_t nicbarrier_tree_at(void *base, int leaves);

/**
 * Arranges the tree's processes, where[i] being the locality of each. No vertex has more than
 * `fanout` >= 2 children. The same arguments give the same tree. Up to `fanout`
 * processes are one group, wherever they are. The groups of leaves come first among the groups, in
 * the order of their leaves. Returns 0, or -1 where memory for the work is exhausted.
 */
int nicbarrier_arrange(nicbarrier_tree_t *tree, const nicbarrier_locality_t *where, int fanout);
