/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A transfer between two layouts as RDMA requests (strided-RMA paper, section 5.2,
 *  "NIC-based method": the descriptors are decoded into a series of contiguous data transfers).
 *
 *  A write or a read of an adapter has one contiguous piece of memory at the far side, and a list
 *  of pieces at the near one, the process's own. So there is one request for each contiguous piece
 *  of the far layout: as few as there can be, but where the list becomes too long, the message
 *  longer than the port takes, or memory on either side is registered in parts.
 *
 *  Pure: what is built here is translated to libibverbs' structures elsewhere (verbs.c). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "common/layout/layout.h"
#include "common/support/export.h"

/** One side of a transfer. Its layout is there as long as the walk. */
typedef struct onic_rdma_side {
    const onic_layout_t *layout;
    uint64_t base; /**< the address that its offsets count from */
    uint32_t key;  /**< of the registered memory, which has all its bytes */
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
    bool signalled;  /**< its completion is shown (the queue decides) */
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
} onic_rdma_place_t;

/** A transfer that is being decoded: may be left at any request and gone on with. */
typedef struct onic_rdma_walk {
    onic_rdma_limits_t limits;
    bool read;
    onic_rdma_place_t near, far;
} onic_rdma_walk_t;

/** Begins a transfer: a read of the far side, or a write of it. Both layouts have the same size,
 *  which is not 0, and offsets that do not lead out of the address space. No message splits an
 *  aligned element of 8 bytes of the far side, unless a piece does. */
ONIC_EXPORT void onic_rdma_walk_init(onic_rdma_walk_t *w, const onic_rdma_limits_t *limits,
                                     bool read, const onic_rdma_side_t *near,
                                     const onic_rdma_side_t *far);

/** True if nothing is left. */
static inline bool onic_rdma_walk_is_done(const onic_rdma_walk_t *w)
{
    return w->far.left == 0;
}

/** Adds up to `max` further requests to an empty batch (`n` is 0) and returns how many: fewer only
 *  at the end. */
ONIC_EXPORT uint32_t onic_rdma_walk_next(onic_rdma_walk_t *w, uint32_t max,
                                         onic_rdma_batch_t *batch);

/** True if all requests of a write can carry their bytes, so that the near side need not be
 *  registered. Then sets the limits so that they do: adjacent pieces at the far side are joined
 *  only up to what a request carries. False, and nothing changed, also where that cannot be told at
 *  a glance. */
ONIC_EXPORT bool onic_rdma_carry_all(onic_rdma_limits_t *limits, const onic_layout_t *far);

/* ---- the queue ----------------------------------------------------------------------------------
 *
 * The request queue of a connection: a sliding window over the requests of its transfers
 * (strided-RMA paper, section 5.2 and figure 5).
 *
 * A transfer is decoded into requests (above) as there is room for them. Those in the window
 * have been issued to the adapter and are not known to be processed yet; when it is full, progress
 * can be made only when a request is processed. An adapter shows the end of a request only where
 * it is asked to, by a signal, and that of all before it with it. So there is a signal every so
 * many requests, in the middle of the window, which is filled again while the rest is still under
 * way. Requests are issued in batches, each with one doorbell; a batch waits until there is room
 * for all of it, which is half of the window at most, and ends with a signal.
 *
 * For n requests of a transfer that takes ceil(n / batch) doorbells, and for each batch of m
 * requests ceil(m / signal) signals: what the paper's algorithm needs where its host writes one
 * descriptor, and is told of one end.
 *
 * Pure; one thread at a time. */

/** A transfer in a queue. Its owner keeps it until it has ended. */
typedef struct onic_rdma_transfer {
    STAILQ_ENTRY(onic_rdma_transfer) next;
    onic_rdma_walk_t walk; /**< begun */
    uint64_t last;         /**< once all of it is issued: its last request */
    /** It has ended: all its bytes are where they belong, or it has failed, and it is unknown
     *  which are. The transfer is the owner's again, who may begin others in here. */
    void (*ended)(struct onic_rdma_transfer *t, bool failed);
} onic_rdma_transfer_t;

typedef STAILQ_HEAD(onic_rdma_transfers, onic_rdma_transfer) onic_rdma_transfers_t;

/** What was done, ever. */
typedef struct onic_rdma_counts {
    unsigned long long doorbells;
    unsigned long long requests;
    unsigned long long completions; /**< shown by the adapter */
    unsigned long long bytes;       /**< of the requests */
} onic_rdma_counts_t;

/** How a queue works. */
typedef struct onic_request_queue_spec {
    uint32_t window; /**< requests that may be issued and not processed, at least 2 */
    uint32_t batch;  /**< with one doorbell, 1 .. window / 2 */
    uint32_t signal; /**< every so many requests of a batch, and its last one, are signalled; 1 ..
                          batch */
    uint32_t pieces; /**< in the list of a request, at least 1 */
} onic_request_queue_spec_t;

typedef struct onic_request_queue onic_request_queue_t;

struct onic_request_queue {
    onic_request_queue_spec_t spec;
    uint64_t issued;    /**< requests, ever: the number of the last one */
    uint64_t processed; /**< as far as is known */
    bool failed;
    onic_rdma_transfers_t waiting; /**< not all of them is issued; the first one's turn */
    onic_rdma_transfers_t issued_all;
    onic_rdma_batch_t batch;    /**< room for one */
    onic_rdma_counts_t *counts; /**< of all queues together */

    /** Posts a batch, of which request i has number `first` + i, with one doorbell. False where it
     *  was not posted, or not all of it: the connection is to be given up. */
    bool (*post)(void *arg, const onic_rdma_batch_t *batch, uint64_t first);
    void *arg;
};

/** An empty queue. False where memory is exhausted. `post`, `arg` and `counts` are the owner's to
 *  set, before anything is begun. */
ONIC_EXPORT bool onic_request_queue_init(onic_request_queue_t *q,
                                         const onic_request_queue_spec_t *spec);

/** Nothing is in it. Frees its memory. */
ONIC_EXPORT void onic_request_queue_fini(onic_request_queue_t *q);

/** True if nothing is in it, neither waiting nor under way. */
static inline bool onic_request_queue_is_empty(const onic_request_queue_t *q)
{
    return STAILQ_EMPTY(&q->waiting) && STAILQ_EMPTY(&q->issued_all);
}

/** Enters a transfer, and issues of it what there is room for. Transfers are issued in their
 *  order. In a queue that has failed it ends at once. */
ONIC_EXPORT void onic_request_queue_begin(onic_request_queue_t *q, onic_rdma_transfer_t *t);

/** The adapter shows that a request has been processed, and so have all before it: ends transfers,
 *  and issues what there is room for now. */
ONIC_EXPORT void onic_request_queue_processed(onic_request_queue_t *q, uint64_t number);

/** The connection is given up, and the adapter touches nothing of its transfers any more: all end,
 *  as failed, and those that are begun later. */
ONIC_EXPORT void onic_request_queue_fail(onic_request_queue_t *q);
