/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Messages by UCX: active messages, eager or by rendezvous.
 *
 *  UCX's TCP copies what its socket has no room for, calls it complete, and keeps it until this
 *  process calls UCX again, which one that has sent and computes does not. So a message is complete
 *  when it has left UCX. A flush of the worker tells so: by our setting (config.c) it asks each
 *  interface and waits for no peer; 30 to 50 ns of the 5 us of a message. If an interface holds
 *  something (seldom), an empty message follows: TCP holds one message of a connection at a time,
 *  so when it takes the next, the one before has left. A flush of the connection would wait for the
 *  other side. */
#include "common/ompi_compat.h"
#include "common/transport/ucx/internal.h"

#include <string.h>

#include "ompi/constants.h"

/* ---- what UCX has taken and not sent ------------------------------------------------------- */

/** True if UCX holds nothing of what it has taken. */
static bool is_flushed(void)
{
    static const ucp_request_param_t param = {.op_attr_mask = 0};
    if (onic_ucx_state.flush != NULL) {
        if (ucp_request_check_status(onic_ucx_state.flush) == UCS_INPROGRESS)
            return false;
        ucp_request_free(onic_ucx_state.flush);
        onic_ucx_state.flush = NULL;
    }
    const ucs_status_ptr_t answer = ucp_worker_flush_nbx(onic_ucx_state.worker, &param);
    onic_ucx_state.flush = UCS_PTR_IS_PTR(answer) ? answer : NULL;
    return onic_ucx_state.flush == NULL;
}

static void end_held(onic_ucx_peer_t *u, ucs_status_t status)
{
    onic_request_t *held = u->held;
    u->held = NULL;
    if (held != NULL)
        onic_request_done(held, onic_ucs_error(status));
}

static void followed(void *request, ucs_status_t status, void *user_data)
{
    onic_ucx_peer_t *u = user_data;
    ucp_request_free(request);
    u->follows = false;
    end_held(u, status);
}

/** Sends an empty message, unless one is on its way. True where UCX has taken it. */
static bool follow(onic_ucx_peer_t *u)
{
    const ucp_request_param_t param = {
        .op_attr_mask =
            UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS,
        .cb.send = followed,
        .user_data = u,
        .flags = UCP_AM_SEND_FLAG_EAGER,
    };
    if (!u->follows) {
        u->follows = true;
        if (!UCS_PTR_IS_PTR(ucp_am_send_nbx(u->ep, ONIC_AM_ADDRESS, NULL, 0, NULL, 0, &param)))
            u->follows = false;
    }
    return !u->follows;
}

bool onic_ucx_has_left(onic_request_t *r)
{
    if (!r->copied)
        return true;
    onic_ucx_peer_t *u = r->peer->ucx;
    r->copied = false;
    end_held(u, UCS_OK);
    if (is_flushed() || follow(u))
        return true;
    u->held = r;
    r->starting = r->done = false;
    onic_row_calls.left(false);
    return false;
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

void onic_ucx_sent(void *request, ucs_status_t status, void *r)
{
    ucp_request_free(request);
    onic_request_done(r, onic_ucs_error(status));
}

int onic_ucx_send(onic_request_t *r, const onic_payload_t *payload, unsigned flags)
{
    const onic_ucx_peer_t *u = r->peer->ucx;
    ucp_request_param_t param = {
        .op_attr_mask =
            UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS,
        .cb.send = onic_ucx_sent,
        .user_data = r,
        .flags = (flags & ONIC_SEND_RNDV) != 0 ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER,
    };
    const void *buffer = r->len > 0 ? onic_payload_bytes(payload) : NULL;
    size_t count = r->len;
    if (r->len > 0 && buffer == NULL) {
        r->start = r->cursor.pos;
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
        param.datatype = onic_ucx_state.gather_dt;
        buffer = r;
        count = 1;
    }
    r->copied = u->copies;
    const int rc = onic_ucx_started(
        r, ucp_am_send_nbx(u->ep, r->am_id, r->header, r->header_len, buffer, count, &param));
    return rc == 1 && !onic_ucx_has_left(r) ? 0 : rc;
}

/* Without a header, as UCX's payload: that is one piece less to gather. Transports take some 100
 * bytes to 8 KiB at once. */
onic_sent_t onic_ucx_send_now(onic_peer_t *peer, unsigned am_id, const void *header,
                              size_t header_len, const onic_payload_t *payload)
{
    static const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL,
        .flags = UCP_AM_SEND_FLAG_EAGER,
    };
    const onic_ucx_peer_t *u = peer->ucx;
    const size_t len = payload != NULL ? payload->len : 0;
    unsigned char all[ONIC_SEND_NOW_MAX];
    if (u == NULL || header_len + len > sizeof(all))
        return ONIC_SENT_NOT;
    if (len > 0) {
        memcpy(all, header, header_len);
        onic_payload_copy(all + header_len, payload, false);
        header = all;
    }
    if (ucp_am_send_nbx(u->ep, am_id, NULL, 0, header, header_len + len, &param) != NULL)
        return ONIC_SENT_NOT;
    return !u->copies || is_flushed() ? ONIC_SENT_WHOLLY : ONIC_SENT_HELD;
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
    onic_rndv_t rndv = {.row = onic_ucx_state.row, .desc = data, .len = len};
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
