/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What the processes of a node do with one target's memory that all of them map, as they
 *  write it down for each other, so that each finds accesses of others that conflict with its own.
 *
 *  For each 8 bytes there are four cells. A cell says which process has accessed which of these
 *  bytes, how, and until when that lasts. It is one word, written by compare and swap, and the
 * others are read after that: of two processes that access the same bytes at the same time one at
 * least sees the other. Where all four last one is given up, and a conflict with it is not found.
 * What is found is a conflict.
 *
 *  Pure; lies in shared memory. Any number of processes and threads at a time. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/layout/layout.h"
#include "osc_nicstride/check/rule.h"

#define NICSTRIDE_GRANULE 8u
#define NICSTRIDE_CELLS   4u
/** Processes of a node that cells can tell apart. */
#define NICSTRIDE_SHADOWED_MAX 1024u

typedef _Atomic uint64_t nicstride_cells_t[NICSTRIDE_CELLS];

/** Until when an access lasts. */
typedef enum nicstride_lasts {
    NICSTRIDE_LASTS_NOT,    /**< an empty cell */
    NICSTRIDE_LASTS_THERE,  /**< until its origin knows that it is complete at the target, */
    NICSTRIDE_LASTS_HERE,   /**< that it is locally complete, */
    NICSTRIDE_LASTS_BUFFER, /**< or until its process next synchronises; */
    NICSTRIDE_LASTS_POST,   /**< until the target has waited for the end of its exposure epoch; */
    NICSTRIDE_LASTS_FENCE   /**< as long as others access in the same fence epoch */
} nicstride_lasts_t;

/** How often each of that has happened. */
typedef struct nicstride_ends {
    _Atomic uint32_t there, here, buffer;
} nicstride_ends_t;

/** What stands before the cells of a target. */
typedef struct nicstride_shadow_head {
    _Atomic uint32_t posts;  /**< exposure epochs that are over */
    nicstride_ends_t ends[]; /**< for each process of the node */
} nicstride_shadow_head_t;

/** The shadow of a target. */
typedef struct nicstride_shadow {
    nicstride_shadow_head_t *head;
    nicstride_cells_t *cells;
    uint64_t bytes; /**< of its memory */
} nicstride_shadow_t;

/** Bytes of one, with its head, for `bytes` of memory and `n` processes; a multiple of 64. 0: too
 *  many. */
size_t nicstride_shadow_size(uint64_t bytes, int n);
/** The shadow that begins at `at`, zeroed at first. */
nicstride_shadow_t nicstride_shadow_at(void *at, uint64_t bytes, int n);

/** An access. */
typedef struct nicstride_visit {
    uint32_t origin; /**< index of the process on its node */
    nicstride_use_t use;
    bool buffer; /**< the memory is a buffer of a call of this process */
    nicstride_lasts_t lasts;
    uint32_t tag; /**< number of the epoch: of ends that have come, of the fence, of the post */
} nicstride_visit_t;

/** The access that one conflicts with. */
typedef struct nicstride_crossing {
    nicstride_visit_t other;
    uint64_t at; /**< the first byte of the memory where they do */
} nicstride_crossing_t;

/** Notes an access to the layout's bytes from `base` on, those that are in the memory; false where
 *  that conflicts with one of another process, the first of which is `*crossing_p`. `leaves`: a
 * mark for others to find. */
bool nicstride_shadow_visit(const nicstride_shadow_t *s, const nicstride_visit_t *v, int64_t base,
                            const onic_layout_t *l, const nicstride_promises_t *promises,
                            bool leaves, nicstride_crossing_t *crossing_p);
