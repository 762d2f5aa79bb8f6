/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>

#include "common/verbs/request_queue.h"

bool onic_request_queue_init(onic_request_queue_t *q, const onic_request_queue_spec_t *spec)
{
    *q = (onic_request_queue_t){.spec = *spec};
    STAILQ_INIT(&q->waiting);
    STAILQ_INIT(&q->issued_all);
    q->batch.request = calloc(spec->batch, sizeof(*q->batch.request));
    q->batch.piece = calloc((size_t)spec->batch * spec->pieces, sizeof(*q->batch.piece));
    if (q->batch.request != NULL && q->batch.piece != NULL)
        return true;
    onic_request_queue_fini(q);
    return false;
}

void onic_request_queue_fini(onic_request_queue_t *q)
{
    free(q->batch.request);
    free(q->batch.piece);
    q->batch.request = NULL;
    q->batch.piece = NULL;
}

static bool has_room(const onic_request_queue_t *q)
{
    return q->issued - q->processed + q->spec.batch <= q->spec.window;
}

static void issue_batch(onic_request_queue_t *q, onic_rdma_transfer_t *t)
{
    onic_rdma_batch_t *b = &q->batch;
    const uint32_t n = onic_rdma_walk_next(&t->walk, q->spec.batch, b);

    for (uint32_t i = 0; i < n; i++) {
        b->request[i].signalled = (i + 1) % q->spec.signal == 0 || i + 1 == n;
        q->counts->bytes += b->request[i].bytes;
    }
    q->failed = !q->post(q->arg, b, q->issued + 1);
    q->issued += n;
    q->counts->requests += n;
    q->counts->doorbells++;
}

static void issue(onic_request_queue_t *q)
{
    while (!STAILQ_EMPTY(&q->waiting) && has_room(q) && !q->failed) {
        onic_rdma_transfer_t *t = STAILQ_FIRST(&q->waiting);

        issue_batch(q, t);
        if (onic_rdma_walk_is_done(&t->walk)) {
            t->last = q->issued;
            STAILQ_REMOVE_HEAD(&q->waiting, next);
            STAILQ_INSERT_TAIL(&q->issued_all, t, next);
        }
    }
}

void onic_request_queue_begin(onic_request_queue_t *q, onic_rdma_transfer_t *t)
{
    if (q->failed) {
        t->ended(t, true);
        return;
    }
    STAILQ_INSERT_TAIL(&q->waiting, t, next);
    issue(q);
}

void onic_request_queue_processed(onic_request_queue_t *q, uint64_t number)
{
    q->counts->completions++;
    q->processed = number;
    for (onic_rdma_transfer_t *t;
         (t = STAILQ_FIRST(&q->issued_all)) != NULL && t->last <= q->processed;) {
        STAILQ_REMOVE_HEAD(&q->issued_all, next);
        t->ended(t, false);
    }
    issue(q);
}

void onic_request_queue_fail(onic_request_queue_t *q)
{
    q->failed = true;
    while (!onic_request_queue_is_empty(q)) {
        onic_rdma_transfers_t *list = STAILQ_EMPTY(&q->issued_all) ? &q->waiting : &q->issued_all;
        onic_rdma_transfer_t *t = STAILQ_FIRST(list);

        STAILQ_REMOVE_HEAD(list, next);
        t->ended(t, true);
    }
}
