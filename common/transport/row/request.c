/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/ompi_compat.h"
#include "common/transport/row/row.h"

#include <stdlib.h>

#include "ompi/constants.h"

onic_requests_t onic_requests;
onic_row_calls_t onic_row_calls;

/** Memory for a header of that length, which stays with the request. */
static bool reserve_header(onic_request_t *r, size_t len)
{
    r->header = len > ONIC_REQUEST_INLINE_HEADER ? r->header_big : r->header_inline;
    if (len > ONIC_REQUEST_INLINE_HEADER && len > r->header_big_cap) {
        void *big = realloc(r->header_big, len);
        if (big == NULL)
            return false;
        r->header = r->header_big = big;
        r->header_big_cap = len;
    }
    return true;
}

static void count(int more)
{
    atomic_store_explicit(&onic_requests.out, onic_requests.out + (unsigned)more,
                          memory_order_relaxed);
}

onic_request_t *onic_request_get(onic_peer_t *peer, onic_send_cb_t cb, void *arg, size_t header_len)
{
    onic_request_t *r = STAILQ_FIRST(&onic_requests.pool);
    if (r == NULL && (r = calloc(1, sizeof(*r))) != NULL)
        STAILQ_INSERT_HEAD(&onic_requests.pool, r, next);
    if (r == NULL || !reserve_header(r, header_len))
        return NULL;
    STAILQ_REMOVE_HEAD(&onic_requests.pool, next);
    TAILQ_INSERT_HEAD(&onic_requests.used, r, use);
    count(1);
    r->cb = cb;
    r->arg = arg;
    r->peer = peer;
    r->starting = true;
    r->eager = r->done = r->abandoned = false;
    return r;
}

void onic_request_put(onic_request_t *r)
{
    TAILQ_REMOVE(&onic_requests.used, r, use);
    STAILQ_INSERT_HEAD(&onic_requests.pool, r, next);
    if (!r->abandoned)
        count(-1);
}

int onic_request_begun(onic_request_t *r, int rc)
{
    if (rc != 0)
        onic_request_put(r);
    return rc;
}

void onic_request_done(onic_request_t *r, int rc)
{
    r->status = rc;
    r->done = true;
    if (!r->starting)
        STAILQ_INSERT_TAIL(&onic_requests.done, r, next);
}

void onic_request_end(onic_request_t *r, int rc)
{
    const onic_send_cb_t cb = r->cb;
    void *arg = r->arg;
    if (rc != OMPI_SUCCESS && r->eager)
        onic_row_calls.lost(r->peer, OMPI_ERR_UNREACH, "a message could not be sent", false);
    onic_request_put(r);
    if (cb != NULL && !onic_requests.closing)
        cb(arg, rc);
}

int onic_requests_progress(void)
{
    int events = 0;
    onic_request_list_t done = STAILQ_HEAD_INITIALIZER(done);
    STAILQ_CONCAT(&done, &onic_requests.done);
    for (onic_request_t *r; (r = STAILQ_FIRST(&done)) != NULL; events++) {
        STAILQ_REMOVE_HEAD(&done, next);
        onic_request_end(r, r->status);
    }
    return events;
}

/** Tells the caller that the request has failed, once and for all. */
static void abandon(onic_request_t *r)
{
    const onic_send_cb_t cb = r->cb;
    r->cb = NULL;
    r->abandoned = true;
    count(-1);
    if (cb != NULL && !onic_requests.closing)
        cb(r->arg, OMPI_ERR_UNREACH);
}

/* A row that does not know of a death keeps messages that a full queue did not take, and each
 * rendezvous that has begun. It does not touch their memory any more. */
void onic_requests_abandon(void)
{
    /* Callbacks may begin others, which are inserted before these. */
    for (onic_request_t *r = TAILQ_FIRST(&onic_requests.used); r != NULL; r = TAILQ_NEXT(r, use))
        if (r->peer != NULL && r->peer->gone && !r->starting && !r->done && !r->abandoned)
            abandon(r);
}

void onic_requests_start(void)
{
    STAILQ_INIT(&onic_requests.done);
    STAILQ_INIT(&onic_requests.pool);
    TAILQ_INIT(&onic_requests.used);
    onic_requests.closing = false;
}

void onic_requests_stop(void)
{
    STAILQ_INIT(&onic_requests.done);
    while (!TAILQ_EMPTY(&onic_requests.used))
        onic_request_put(TAILQ_FIRST(&onic_requests.used));
    for (onic_request_t *r; (r = STAILQ_FIRST(&onic_requests.pool)) != NULL;) {
        STAILQ_REMOVE_HEAD(&onic_requests.pool, next);
        free(r->header_big);
        free(r);
    }
}
