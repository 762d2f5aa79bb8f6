/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Records of sends and receives that are not complete: from a pool, since a header must
 *  outlive the call that sends it.
 *
 *  When a send is over: UCX's TCP copies what its socket has no room for, says that it is complete,
 *  and keeps it until this process calls UCX again. So a send is over when it has left UCX, too,
 *  which UCX tells of all its transports together. Where one holds something (seldom) an empty
 *  message follows: TCP holds one message of a connection at a time, so when it takes the next, the
 *  one before has left. A flush of the connection would wait for the other side. */
#include "common/ompi_compat.h"
#include "common/transport/internal.h"

#include <stdlib.h>
#include <string.h>

#include "ompi/constants.h"

/** Memory for a header of that length, which stays with the record. */
static bool reserve_header(onic_send_t *s, size_t len)
{
    s->header = len > ONIC_SEND_INLINE_HEADER ? s->header_big : s->header_inline;
    if (len > ONIC_SEND_INLINE_HEADER && len > s->header_big_cap) {
        void *big = realloc(s->header_big, len);
        if (big == NULL)
            return false;
        s->header = s->header_big = big;
        s->header_big_cap = len;
    }
    return true;
}

onic_send_t *onic_send_get(onic_send_cb_t cb, void *arg, size_t header_len)
{
    onic_send_t *s = STAILQ_FIRST(&onic_transport.send_pool);
    if (s == NULL && (s = calloc(1, sizeof(*s))) != NULL)
        STAILQ_INSERT_HEAD(&onic_transport.send_pool, s, next);
    if (s == NULL || !reserve_header(s, header_len))
        return NULL;
    STAILQ_REMOVE_HEAD(&onic_transport.send_pool, next);
    TAILQ_INSERT_HEAD(&onic_transport.sends_used, s, use);
    atomic_store_explicit(&onic_transport.sends_out, onic_transport.sends_out + 1,
                          memory_order_relaxed);
    s->cb = cb;
    s->arg = arg;
    s->peer = s->eager = NULL;
    s->starting = true;
    s->done = s->copied = false;
    return s;
}

void onic_send_put(onic_send_t *s)
{
    TAILQ_REMOVE(&onic_transport.sends_used, s, use);
    STAILQ_INSERT_HEAD(&onic_transport.send_pool, s, next);
    atomic_store_explicit(&onic_transport.sends_out, onic_transport.sends_out - 1,
                          memory_order_relaxed);
}

static void free_all(void)
{
    while (!TAILQ_EMPTY(&onic_transport.sends_used))
        onic_send_put(TAILQ_FIRST(&onic_transport.sends_used));
    for (onic_send_t *s; (s = STAILQ_FIRST(&onic_transport.send_pool)) != NULL;) {
        STAILQ_REMOVE_HEAD(&onic_transport.send_pool, next);
        free(s->header_big);
        free(s);
    }
}

/** The callback comes after UCX's progress, since it may send: UCX's UD (1.13) loses count of what
 *  a callback adds, and asserts. */
void onic_send_finish(onic_send_t *s, ucs_status_t status)
{
    s->status = onic_ucs_error(status);
    s->done = true;
    if (!s->starting)
        STAILQ_INSERT_TAIL(&onic_transport.done, s, next);
}

void onic_send_end(onic_send_t *s, int rc)
{
    const onic_send_cb_t cb = s->cb;
    void *arg = s->arg;
    if (rc != OMPI_SUCCESS && s->eager != NULL)
        onic_peer_give_up(s->eager);
    onic_send_put(s);
    if (cb != NULL && !onic_transport.closing)
        cb(arg, rc);
}

void onic_send_sent(void *request, ucs_status_t status, void *record)
{
    onic_ucx.request_free(request);
    onic_send_finish(record, status);
}

int onic_send_started(onic_send_t *s, ucs_status_ptr_t answer)
{
    if (UCS_PTR_IS_PTR(answer) && !s->done) {
        s->starting = false;
        onic_server_look_after();
        return 0;
    }
    int rc = UCS_PTR_IS_PTR(answer) ? s->status : onic_ucs_error(UCS_PTR_STATUS(answer));
    return rc == OMPI_SUCCESS ? 1 : rc;
}

int onic_send_begun(onic_send_t *s, ucs_status_ptr_t answer)
{
    const int rc = onic_send_started(s, answer);
    if (rc != 0)
        onic_send_put(s);
    return rc;
}

/* ---- what UCX has taken and not sent ------------------------------------------------------- */

bool onic_transport_is_flushed(void)
{
    static const ucp_request_param_t param = {.op_attr_mask = 0};
    if (onic_transport.flush != NULL) {
        if (onic_ucx.request_check_status(onic_transport.flush) == UCS_INPROGRESS)
            return false;
        onic_ucx.request_free(onic_transport.flush);
        onic_transport.flush = NULL;
    }
    const ucs_status_ptr_t answer = onic_ucx.worker_flush_nbx(onic_transport.worker, &param);
    onic_transport.flush = UCS_PTR_IS_PTR(answer) ? answer : NULL;
    return onic_transport.flush == NULL;
}

static void end_held(onic_peer_t *peer, ucs_status_t status)
{
    onic_send_t *held = peer->held;
    peer->held = NULL;
    if (held != NULL)
        onic_send_finish(held, status);
}

static void followed(void *request, ucs_status_t status, void *user_data)
{
    onic_peer_t *peer = user_data;
    onic_ucx.request_free(request);
    peer->follows = false;
    end_held(peer, status);
}

/** Sends an empty message, unless one is on its way. True where UCX has taken it. */
static bool follow(onic_peer_t *peer)
{
    const ucp_request_param_t param = {
        .op_attr_mask =
            UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS,
        .cb.send = followed,
        .user_data = peer,
        .flags = UCP_AM_SEND_FLAG_EAGER,
    };
    if (!peer->follows) {
        peer->follows = true;
        if (!UCS_PTR_IS_PTR(
                onic_ucx.am_send_nbx(peer->ep, ONIC_AM_ADDRESS, NULL, 0, NULL, 0, &param)))
            peer->follows = false;
    }
    return !peer->follows;
}

bool onic_send_has_left(onic_send_t *s)
{
    onic_peer_t *peer = s->peer;
    if (!s->copied)
        return true;
    s->copied = false;
    end_held(peer, UCS_OK);
    if (onic_transport_is_flushed() || follow(peer))
        return true;
    peer->held = s;
    s->starting = s->done = false;
    onic_server_look_after();
    return false;
}

int onic_peer_leaves(onic_peer_t *peer, onic_send_cb_t cb, void *arg)
{
    onic_send_t *s = onic_send_get(cb, arg, 0);
    if (s == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    s->peer = s->eager = peer;
    s->copied = true;
    if (!onic_send_has_left(s))
        return 0;
    onic_send_put(s);
    return 1;
}

int onic_done_progress(void)
{
    int events = 0;
    onic_sends_t done = STAILQ_HEAD_INITIALIZER(done);
    STAILQ_CONCAT(&done, &onic_transport.done);
    for (onic_send_t *s; (s = STAILQ_FIRST(&done)) != NULL; events++) {
        STAILQ_REMOVE_HEAD(&done, next);
        if (s->status != OMPI_SUCCESS || onic_send_has_left(s))
            onic_send_end(s, s->status);
    }
    return events;
}

/* ---- processes that are gone --------------------------------------------------------------- */

/** Tells the caller of a send that it has failed, and nothing any more. */
static void abandon(onic_send_t *s)
{
    const onic_send_cb_t cb = s->cb;
    s->cb = NULL;
    if (cb != NULL && !onic_transport.closing)
        cb(s->arg, OMPI_ERR_UNREACH);
}

/* UCX, which need not know of a death, keeps what a full queue does not take, and each rendezvous
 * that has begun. It will not touch their memory any more. */
void onic_sends_abandon(void)
{
    /* What is called may begin others, which go before these. */
    for (onic_send_t *s = TAILQ_FIRST(&onic_transport.sends_used); s != NULL;
         s = TAILQ_NEXT(s, use))
        if (s->peer != NULL && s->peer->gone && !s->starting && !s->done)
            abandon(s);
}

bool onic_sends_name(const onic_peer_t *peer)
{
    const onic_send_t *s = TAILQ_FIRST(&onic_transport.sends_used);
    while (s != NULL && s->peer != peer && s->eager != peer)
        s = TAILQ_NEXT(s, use);
    return s != NULL;
}

unsigned onic_transport_outstanding(void)
{
    return onic_transport.sends_out;
}

/* ---- how UCX packs a payload with a layout: its buffer is the record of the send ----------- */

static void *gather_start(void *context, const void *buffer, size_t count)
{
    (void)context;
    (void)count;
    return (void *)(uintptr_t)buffer;
}

static size_t gather_size(void *state)
{
    const onic_send_t *s = state;
    return s->len;
}

/** UCX may ask for the same bytes again after it found no room for them. */
static size_t gather(void *state, size_t offset, void *dest, size_t max)
{
    onic_send_t *s = state;
    const size_t n = max < s->len - offset ? max : s->len - offset;
    if (s->cursor.pos != s->start + offset)
        onic_cursor_init(&s->cursor, s->cursor.layout, s->start + offset);
    return onic_pack(&s->cursor, s->base, dest, n);
}

static void gather_finish(void *state)
{
    (void)state;
}

/* Nothing is received by it. */
static const ucp_generic_dt_ops_t gather_ops = {
    .start_pack = gather_start,
    .packed_size = gather_size,
    .pack = gather,
    .finish = gather_finish,
};

/* ---- start and stop ------------------------------------------------------------------------- */

int onic_sends_start(void)
{
    STAILQ_INIT(&onic_transport.done);
    STAILQ_INIT(&onic_transport.send_pool);
    TAILQ_INIT(&onic_transport.sends_used);
    onic_transport.drain = 0;
    return onic_ucs_error(onic_ucx.dt_create_generic(&gather_ops, NULL, &onic_transport.gather_dt));
}

void onic_sends_stop(void)
{
    onic_ucx.dt_destroy(onic_transport.gather_dt);
    STAILQ_INIT(&onic_transport.done);
    free_all();
}
