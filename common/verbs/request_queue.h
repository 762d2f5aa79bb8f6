/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The request queue of a connection: a sliding window over the requests of its transfers
 *  (strided-RMA paper, section 5.2 and figure 5).
 *
 *  A transfer is decoded into requests (requests.h) as there is room for them. Those in the window
 *  have been issued to the adapter and are not known to be processed yet; when it is full, progress
 *  can be made only when a request is processed. An adapter shows the end of a request only where
 *  it is asked to, by a signal, and that of all before it with it. So there is a signal every so
 *  many requests, in the middle of the window, which is filled again while the rest is still under
 *  way. Requests are issued in batches, each with one doorbell; a batch waits until there is room
 *  for all of it, which is half of the window at most, and ends with a signal.
 *
 *  For n requests of a transfer that takes ceil(n / batch) doorbells, and for each batch of m
 *  requests ceil(m / signal) signals: what the paper's algorithm needs where its host writes one
 *  descriptor, and is told of one end.
 *
 *  Pure; one thread at a time. */
#pragma once

#include <sys/queue.h>

#include "common/support/export.h"
#include "common/verbs/requests.h"

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

/** Is nothing in it, neither waiting nor under way? */
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
