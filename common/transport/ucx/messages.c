/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Messages by UCX: active messages, eager or by rendezvous.
 *
 *  UCX's TCP copies what its socket has no room for, calls it complete, and keeps it until this
 *  process calls UCX again, which one that has sent and computes does not. So a flush of the worker
 *  follows each message that is complete: by our setting (config.c) it asks each interface and
 *  waits for no peer; 30 to 50 ns of the 5 us of a message. If an interface holds something
 *  (seldom), that flush is a request that is under way, which the server thread completes if no MPI
 *  thread does. */
#include "common/ompi_compat.h"
#include "common/transport/ucx/internal.h"

#include <string.h>

#include "ompi/constants.h"

/** Messages to this process itself, which its next progress gives to UCX, in order. */
static onic_request_list_t to_self = STAILQ_HEAD_INITIALIZER(to_self);

/* ---- what UCX has taken and not sent ------------------------------------------------------- */

static void pushed(void *arg, int status)
{
    (void)arg, (void)status;
    onic_ucx_state.pushes = false;
}

/* A flush ends when no interface holds anything, so it is also one of what is sent meanwhile. */
void onic_ucx_push(void)
{
    onic_request_t *r;
    onic_ucx_state.copied = false;
    if (onic_ucx_state.pushes || (r = onic_request_get(NULL, pushed, NULL, 0)) == NULL)
        return;
    const ucp_request_param_t param = onic_ucx_param_of(r);
    const int rc = onic_ucx_started(r, ucp_worker_flush_nbx(onic_ucx_state.worker, &param));
    onic_ucx_state.pushes = onic_request_begun(r, rc) == 0;
    if (onic_ucx_state.pushes)
        onic_row_calls.left(true);
}

/* ---- sending --------------------------------------------------------------------------------- */

int onic_ucx_started(onic_request_t *r, ucs_status_ptr_t answer)
{
    if (UCS_PTR_IS_PTR(answer) && !r->done) {
        r->starting = false;
        onic_row_calls.left(false);
        return 0;
    }
    const int rc = UCS_PTR_IS_PTR(answer) ? r->status : onic_ucs_error(UCS_PTR_STATUS(answer));
    return rc == OMPI_SUCCESS ? 1 : rc;
}

void onic_ucx_sent(void *request, ucs_status_t status, void *user_data)
{
    onic_request_t *r = user_data;
    ucp_request_free(request);
    onic_ucx_state.copied |= r->peer != NULL && r->peer->ucx != NULL && r->peer->ucx->copies;
    onic_request_done(r, onic_ucs_error(status));
}

ucp_request_param_t onic_ucx_param_of(onic_request_t *r)
{
    return (ucp_request_param_t){
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb = {.send = onic_ucx_sent},
        .user_data = r,
    };
}

static int give(onic_request_t *r, const onic_payload_t *payload, unsigned flags)
{
    const onic_ucx_peer_t *u = r->peer->ucx;
    ucp_request_param_t param = onic_ucx_param_of(r);
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = (flags & ONIC_SEND_RNDV) != 0 ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER;
    const void *buffer = r->len > 0 ? onic_payload_bytes(payload) : NULL;
    size_t count = r->len;
    if (r->len > 0 && buffer == NULL) {
        r->start = r->cursor.pos;
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
        param.datatype = onic_ucx_state.gather_dt;
        buffer = r;
        count = 1;
    }
    const int rc = onic_ucx_started(
        r, ucp_am_send_nbx(u->ep, r->am_id, r->header, r->header_len, buffer, count, &param));
    if (rc == 1 && u->copies)
        onic_ucx_push();
    return rc;
}

/* UCX's own transport for them runs the handler within the send, in the middle of what the sender
 * is about. */
int onic_ucx_send(onic_request_t *r, const onic_payload_t *payload, unsigned flags)
{
    if (!r->peer->self)
        return give(r, payload, flags);
    r->starting = false;
    STAILQ_INSERT_TAIL(&to_self, r, next);
    onic_row_calls.left(false);
    return 0;
}

int onic_ucx_send_to_self(void)
{
    int n = 0;
    /* Handlers may send to this process again; that is for the next time. */
    onic_request_list_t now = STAILQ_HEAD_INITIALIZER(now);
    STAILQ_CONCAT(&now, &to_self);
    for (onic_request_t *r; (r = STAILQ_FIRST(&now)) != NULL; n++) {
        const onic_payload_t payload = {.base = r->base, .cursor = r->cursor, .len = r->len};
        STAILQ_REMOVE_HEAD(&now, next);
        r->starting = true;
        const int rc = give(r, &payload, r->eager ? 0 : ONIC_SEND_RNDV);
        if (rc != 0)
            onic_request_end(r, rc == 1 ? OMPI_SUCCESS : rc);
    }
    return n;
}

bool onic_ucx_has_to_self(void)
{
    return !STAILQ_EMPTY(&to_self);
}

/* Without a header, as UCX's payload: that is one piece less to gather. Transports take some 100
 * bytes to 8 KiB at once. */
bool onic_ucx_send_now(onic_peer_t *peer, unsigned am_id, const void *header, size_t header_len,
                       const onic_payload_t *payload)
{
    static const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL,
        .flags = UCP_AM_SEND_FLAG_EAGER,
    };
    const onic_ucx_peer_t *u = peer->ucx;
    const size_t len = payload != NULL ? payload->len : 0;
    unsigned char all[ONIC_SEND_NOW_MAX];
    if (u == NULL || peer->self || header_len + len > sizeof(all))
        return false;
    if (len > 0) {
        memcpy(all, header, header_len);
        onic_payload_copy(all + header_len, payload, false);
        header = all;
    }
    if (ucp_am_send_nbx(u->ep, am_id, NULL, 0, header, header_len + len, &param) != NULL)
        return false;
    if (u->copies)
        onic_ucx_push();
    return true;
}

/* ---- how UCX packs a payload with a layout: its buffer is the request ------------------------ */

static void *gather_start(void *context, const void *buffer, size_t count)
{
    (void)context;
    (void)count;
    return (void *)(uintptr_t)buffer;
}

static size_t gather_size(void *state)
{
    const onic_request_t *r = state;
    return r->len;
}

/** UCX may ask for the same bytes again after it found no room for them. */
static size_t gather(void *state, size_t offset, void *dest, size_t max)
{
    onic_request_t *r = state;
    const size_t n = max < r->len - offset ? max : r->len - offset;
    if (r->cursor.pos != r->start + offset)
        onic_cursor_init(&r->cursor, r->cursor.layout, r->start + offset);
    return onic_pack(&r->cursor, r->base, dest, n);
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

/* ---- receiving ------------------------------------------------------------------------------- */

/** UCX drops a rendezvous that its handler has not taken, and tells the sender. */
static ucs_status_t arrived(void *arg, const void *header, size_t header_len, void *data,
                            size_t len, const ucp_am_recv_param_t *param)
{
    const bool meets = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
    onic_rndv_t rndv = {.desc = data, .len = len};
    onic_row_calls.arrived((unsigned)(uintptr_t)arg, header, header_len, meets ? NULL : data, len,
                           meets ? &rndv : NULL, NULL);
    return UCS_OK;
}

static void received(void *request, ucs_status_t status, size_t length, void *user_data)
{
    (void)length;
    onic_ucx_sent(request, status, user_data);
}

int onic_ucx_receive(onic_request_t *r, const onic_rndv_t *rndv, void *buffer)
{
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.recv_am = received,
        .user_data = r,
    };
    return onic_ucx_started(
        r, ucp_am_recv_data_nbx(onic_ucx_state.worker, rndv->desc, buffer, rndv->len, &param));
}

/* ---- start and stop -------------------------------------------------------------------------- */

int onic_ucx_messages_start(void)
{
    ucs_status_t status = UCS_OK;
    STAILQ_INIT(&to_self);
    for (unsigned id = ONIC_AM_OSC; id <= ONIC_AM_ADDRESS && status == UCS_OK; id++) {
        ucp_am_handler_param_t param = {
            .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                          UCP_AM_HANDLER_PARAM_FIELD_ARG,
            .id = id,
            .cb = arrived,
            .arg = (void *)(uintptr_t)id,
        };
        status = ucp_worker_set_am_recv_handler(onic_ucx_state.worker, &param);
    }
    if (status == UCS_OK)
        status = ucp_dt_create_generic(&gather_ops, NULL, &onic_ucx_state.gather_dt);
    return onic_ucs_error(status);
}

void onic_ucx_messages_stop(void)
{
    ucp_dt_destroy(onic_ucx_state.gather_dt);
}
