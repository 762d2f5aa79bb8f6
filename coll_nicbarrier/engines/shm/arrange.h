/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The tree by which processes of a node gather: its groups follow caches, NUMA nodes and packages.
 * Pure. The tree lies in memory that the caller gives, so that one process can make it for the
 * whole node. Its leaves are the processes, in an order in which those that share a cache are
 * neighbours. The vertices are numbered level by level, leaves first, so the children of a vertex
 * are a range of numbers and the root is the last one.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/** Where a process runs; -1: not known. Fields are compared in order, so processes gather in the
 *  nearest cache first. */
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

/** A tree whose arrays lie at `base`, aligned as an int32_t; they may be arranged already or later.
 *  Does not set `vertices`. */
nicbarrier_tree_t nicbarrier_tree_at(void *base, int leaves);

/**
 * Arranges the tree's processes, where[i] being the locality of each. No vertex has more than
 * `fanout` >= 2 children. The same arguments give the same tree. Up to `fanout` processes form one
 * group, wherever they run. The groups of leaves precede other groups, in the order of their
 * leaves. Returns 0, or -1 if memory is exhausted.
 */
int nicbarrier_arrange(nicbarrier_tree_t *tree, const nicbarrier_locality_t *where, int fanout);
