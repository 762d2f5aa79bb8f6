/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A transfer between two layouts as RDMA requests (strided-RMA paper, section 5.2,
 * "NIC-based method": the descriptors are decoded into a series of contiguous data transfers).
 *
 *  A write or a read of an adapter has one contiguous piece of memory at the far side, and a list
 * of pieces at the near one, the process's own. So there is one request for each contiguous piece
 * of the far layout: as few as there can be, but where the list becomes too long, the message
 * longer than the port takes, or memory on either side is registered in parts.
 *
 *  Pure: what is built here is translated to libibverbs' structures elsewhere (connection.c). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/layout/layout.h"
#include "common/support/export.h"

/** Memory that is registered: `bytes` from `addr` on, which requests name with `key`. */
typedef struct onic_region {
    uint64_t addr;
    uint64_t bytes;
    uint32_t key;
} onic_rdma_region_t;

/** One side of a transfer. Its layout and its regions are there as long as the walk. */
typedef struct onic_rdma_side {
    const onic_layout_t *layout;
    uint64_t base;                    /**< the address that its offsets count from */
    const onic_rdma_region_t *region; /**< ascending, one behind another without a gap; all bytes of
                                      the layout lie in them */
    uint32_t regions;                 /**< at least 1 */
} onic_rdma_side_t;

/** What a connection takes. */
typedef struct onic_rdma_limits {
    uint32_t pieces; /**< in the list of a request, at least 1 */
    uint32_t
        inline_bytes; /**< a write of no more carries its bytes itself: they may change when it
                           has been posted, and need not lie in registered memory; 0: none does */
    uint32_t message; /**< bytes of one request, at least 16 */
} onic_rdma_limits_t;

/** A piece of the near side. */
typedef struct onic_rdma_piece {
    uint64_t addr;
    uint32_t bytes;
    uint32_t key;
} onic_rdma_piece_t;

typedef struct onic_rdma_request {
    uint64_t far; /**< address there */
    uint32_t key; /**< of the far side */
    uint32_t bytes;
    uint32_t first;  /**< its pieces in the batch */
    uint32_t pieces; /**< at least 1 */
    bool carries;    /**< the bytes themselves (inline) */
    bool signalled;  /**< its completion is shown (request_queue.h decides) */
} onic_rdma_request_t;

/** Requests that are posted together, in a list, with one doorbell. */
typedef struct onic_rdma_batch {
    bool read; /**< of the far side; else write */
    uint32_t n;
    onic_rdma_request_t *request;
    onic_rdma_piece_t *piece; /**< of all requests: as many as there may be requests, times the
                                   limit of pieces */
} onic_rdma_batch_t;

/** Where a side stands. */
typedef struct onic_rdma_place {
    onic_rdma_side_t side;
    onic_cursor_t cursor; /**< behind the piece that is at hand: */
    uint64_t addr, left;
    uint32_t at; /**< the region of `addr`, while `left` > 0 */
} onic_rdma_place_t;

/** A transfer that is being decoded: may be left at any request and gone on with. */
typedef struct onic_rdma_walk {
    onic_rdma_limits_t limits;
    bool read;
    onic_rdma_place_t near, far;
} onic_rdma_walk_t;

/** Do so many regions hold all bytes of a layout? They are ascending and without a gap. */
ONIC_EXPORT bool onic_rdma_regions_hold(const onic_rdma_region_t *region, uint32_t regions,
                                        uint64_t base, const onic_layout_t *layout);

/** Begins a transfer: a read of the far side, or a write of it. Both layouts have the same size,
 *  which is not 0, and offsets that do not lead out of the address space. No message splits an
 *  aligned element of 8 bytes of the far side, unless a piece or a region does. */
ONIC_EXPORT void onic_rdma_walk_init(onic_rdma_walk_t *w, const onic_rdma_limits_t *limits,
                                     bool read, const onic_rdma_side_t *near,
                                     const onic_rdma_side_t *far);

/** Is there nothing left? */
static inline bool onic_rdma_walk_is_done(const onic_rdma_walk_t *w)
{
    return w->far.left == 0;
}

/** Adds up to `max` further requests to an empty batch (`n` is 0) and returns how many: fewer only
 *  at the end. */
ONIC_EXPORT uint32_t onic_rdma_walk_next(onic_rdma_walk_t *w, uint32_t max,
                                         onic_rdma_batch_t *batch);

/** Can all of a write carry its bytes, so that the near side need not be registered? Then makes the
 *  limits such that it does: what touches each other at the far side is not put together to more
 *  than a request carries. False, and nothing changed, also where that is not known at a glance. */
ONIC_EXPORT bool onic_rdma_carry_all(onic_rdma_limits_t *limits, const onic_layout_t *far);

/** A region for such a near side: all memory, and no key. */
ONIC_EXPORT extern const onic_rdma_region_t onic_rdma_region_none;
