/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Shadow of one target's memory that all processes of a node map. The processes record their
 *  accesses in it, so that each finds accesses of others that conflict with its own.
 *
 *  For each 8 bytes there are four cells. A cell tells which process accessed which of these bytes,
 *  how, and until when the access lasts. A cell is one word, written by compare and swap; the
 *  writer then reads the other cells. So if two processes access the same bytes at the same time,
 *  at least one sees the other. If all four cells still last, one of them is overwritten, and
 *  conflicts with it are missed. Every conflict that is reported is real.
 *
 *  Pure; the shadow lies in shared memory. Any number of processes and threads may use it at a
 *  time. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/layout/layout.h"
#include "osc_nicstride/check/rule.h"

#define NICSTRIDE_GRANULE 8u
#define NICSTRIDE_CELLS   4u
/** The number of processes of a node that cells can tell apart. */
#define NICSTRIDE_SHADOWED_MAX 1024u

typedef _Atomic uint64_t nicstride_cells_t[NICSTRIDE_CELLS];

/** When an access ends. */
typedef enum nicstride_lasts {
    NICSTRIDE_LASTS_NOT,    /**< an empty cell */
    NICSTRIDE_LASTS_THERE,  /**< when its origin knows that it is complete at the target */
    NICSTRIDE_LASTS_HERE,   /**< when its origin knows that it is locally complete */
    NICSTRIDE_LASTS_BUFFER, /**< when its process next synchronises */
    NICSTRIDE_LASTS_POST,   /**< when the target has waited for the end of its exposure epoch */
    NICSTRIDE_LASTS_FENCE   /**< when no other process accesses in the same fence epoch */
} nicstride_lasts_t;

/** How many ends of each kind a process has had. */
typedef struct nicstride_ends {
    _Atomic uint32_t there, here, buffer;
} nicstride_ends_t;

/** What lies before the cells of a target. */
typedef struct nicstride_shadow_head {
    _Atomic uint32_t posts;  /**< exposure epochs that are over */
    nicstride_ends_t ends[]; /**< for each process of the node */
} nicstride_shadow_head_t;

/** The shadow of a target. */
typedef struct nicstride_shadow {
    nicstride_shadow_head_t *head;
    nicstride_cells_t *cells;
    uint64_t bytes; /**< size of the target's memory */
} nicstride_shadow_t;

/** Bytes of a shadow with its head, for `bytes` of memory and `n` processes; a multiple of 64. 0:
 *  too many. */
size_t nicstride_shadow_size(uint64_t bytes, int n);
/** The shadow that begins at `at`, where the memory must be zero at first. */
nicstride_shadow_t nicstride_shadow_at(void *at, uint64_t bytes, int n);

/** An access. */
typedef struct nicstride_visit {
    uint32_t origin; /**< index of the process on its node */
    nicstride_use_t use;
    bool buffer; /**< the memory is a buffer of a call of its own process */
    nicstride_lasts_t lasts;
    uint32_t tag; /**< which end it lasts until: the number of ends so far, of the fence, or of the
                     post */
} nicstride_visit_t;

/** The access that a new one conflicts with. */
typedef struct nicstride_crossing {
    nicstride_visit_t other;
    uint64_t at; /**< the first byte of the memory that they share */
} nicstride_crossing_t;

/** Notes an access to the bytes of the layout from `base` on that are in the memory. False if it
 *  conflicts with an access of another process; `*crossing_p` is then the first one found.
 *  `leaves`: leave a mark for others to find. */
bool nicstride_shadow_visit(const nicstride_shadow_t *s, const nicstride_visit_t *v, int64_t base,
                            const onic_layout_t *l, const nicstride_promises_t *promises,
                            bool leaves, nicstride_crossing_t *crossing_p);
