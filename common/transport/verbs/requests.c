/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/transport/verbs/requests.h"

#include <stdlib.h>

#define WORD 8u

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

bool onic_rdma_carry_all(onic_rdma_limits_t *limits, const onic_layout_t *far)
{
    uint64_t longest = far->nruns == 0 ? far->block : 0;

    for (uint32_t i = 0; i < far->nruns; i++)
        longest = far->runs[i].block > longest ? far->runs[i].block : longest;
    if (longest > limits->inline_bytes || limits->inline_bytes < 2 * WORD)
        return false;
    limits->message = limits->inline_bytes;
    return true;
}

/** The next piece of a side comes to hand; none at the end. */
static void step(onic_rdma_place_t *p)
{
    int64_t offset;

    if (onic_cursor_next(&p->cursor, UINT64_MAX, &offset, &p->left))
        p->addr = p->side.base + (uint64_t)offset;
    else
        p->left = 0;
}

static void begin(onic_rdma_place_t *p, const onic_rdma_side_t *side)
{
    p->side = *side;
    onic_cursor_init(&p->cursor, side->layout, 0);
    step(p);
}

static void take(onic_rdma_place_t *p, uint64_t bytes)
{
    p->addr += bytes;
    p->left -= bytes;
    if (p->left == 0)
        step(p);
}

void onic_rdma_walk_init(onic_rdma_walk_t *w, const onic_rdma_limits_t *limits, bool read,
                         const onic_rdma_side_t *near, const onic_rdma_side_t *far)
{
    w->limits = *limits;
    w->read = read;
    begin(&w->near, near);
    begin(&w->far, far);
}

/** Adds bytes of the near side to the list of a request; false where it is full. */
static bool add_piece(onic_rdma_request_t *r, onic_rdma_batch_t *b, uint32_t max, uint64_t addr,
                      uint32_t key, uint32_t bytes)
{
    onic_rdma_piece_t *next = &b->piece[r->first + r->pieces];

    if (r->pieces > 0 && next[-1].addr + next[-1].bytes == addr && next[-1].key == key) {
        next[-1].bytes += bytes;
    } else if (r->pieces < max) {
        *next = (onic_rdma_piece_t){addr, bytes, key};
        r->pieces++;
    } else {
        return false;
    }
    return true;
}

static void next_request(onic_rdma_walk_t *w, onic_rdma_request_t *r, onic_rdma_batch_t *b)
{
    const uint64_t start = w->far.addr;
    /* As long a message as ends before a word. */
    const uint64_t message = w->limits.message - (start + w->limits.message) % WORD;

    while (w->far.left > 0 && r->bytes < message && w->far.addr == start + r->bytes) {
        const uint64_t here = least(w->near.left, w->far.left);
        const uint32_t bytes = (uint32_t)least(here, message - r->bytes);

        if (!add_piece(r, b, w->limits.pieces, w->near.addr, w->near.side.key, bytes))
            break;
        r->bytes += bytes;
        take(&w->near, bytes);
        take(&w->far, bytes);
    }
    r->far = start;
    r->key = w->far.side.key;
    r->carries = !w->read && r->bytes <= w->limits.inline_bytes;
}

uint32_t onic_rdma_walk_next(onic_rdma_walk_t *w, uint32_t max, onic_rdma_batch_t *batch)
{
    uint32_t pieces = 0;

    batch->read = w->read;
    for (batch->n = 0; batch->n < max && !onic_rdma_walk_is_done(w); batch->n++) {
        onic_rdma_request_t *r = &batch->request[batch->n];

        *r = (onic_rdma_request_t){.first = pieces};
        next_request(w, r, batch);
        pieces += r->pieces;
    }
    return batch->n;
}

/* ---- the queue ------------------------------------------------------------------------------- */

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
    while (!STAILQ_EMPTY(&q->waiting) && !q->failed &&
           q->issued - q->processed + q->spec.batch <= q->spec.window) {
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
