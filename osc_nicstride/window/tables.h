/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What a window keeps by the number of its ranks, and what making it sends. What all ranks
 *  have sent alike is kept once; what differs once for each node, in shared memory. Pure. */
#ifndef NICSTRIDE_TABLES_H
#define NICSTRIDE_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What is kept of what each rank sends the others about its part of the window. No gaps. */
typedef struct nicstride_rank_info {
    uint64_t size; /**< bytes; 0 for dynamic windows */
    uint32_t disp_unit;
    uint32_t win;    /**< its name for the window */
    uint32_t window; /**< messages that it sends without acknowledgement (credit.h) */
    uint32_t share;  /**< bytes that it keeps for each process, for all windows (credit.h) */
    uint32_t align;  /**< the last bits of its memory's address, below NICSTRIDE_LINE */
    uint32_t spare;
} nicstride_rank_info_t;

/** Which parts of that must be kept for each rank. */
typedef struct nicstride_per_rank {
    bool rows;  /**< nicstride_rank_info_t: ranks have sent different things */
    bool names; /**< the ranks are not processes of one job that follow one another */
} nicstride_per_rank_t;

/** Bytes of that, for each node. */
static inline size_t nicstride_per_rank_bytes(const nicstride_per_rank_t *kept, size_t ranks)
{
    return ranks * (kept->rows * sizeof(nicstride_rank_info_t) + kept->names * sizeof(uint64_t));
}

/** Bytes that each process keeps for each rank: where its peer is, and its state in the epoch. */
static inline size_t nicstride_rank_bytes(size_t ranks)
{
    return ranks * (sizeof(void *) + sizeof(uint8_t));
}

/** The same for each node: its first rank. */
static inline size_t nicstride_node_bytes(size_t nodes)
{
    return nodes * sizeof(int);
}

#endif
