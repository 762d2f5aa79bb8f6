/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * When a send is over: what UCX has taken and not sent.
 *
 * UCX's TCP copies what its socket has no room for, and says that it is complete. It would stay
 * until this process calls UCX again, which the program, for which the send is over, need not do.
 * So a send is over when it has left UCX, too.
 *
 * UCX tells of all its transports together, and at once, whether one holds anything. Where one does
 * (seldom: others do not read, or the network is slow), or has something else to wait for, an empty
 * message follows. For TCP holds one message of a connection at a time: when it takes the next, the
 * one before has left. A flush of the connection would wait for the other side.
 */
#include "common/wire/wire_internal.h"

#include "ompi/constants.h"

bool onic_wire_is_flushed(void)
{
    static const ucp_request_param_t param = {.op_attr_mask = 0};
    if (onic_wire.flush != NULL) {
        if (ucp_request_check_status(onic_wire.flush) == UCS_INPROGRESS) {
            return false;
        }
        ucp_request_free(onic_wire.flush);
        onic_wire.flush = NULL;
    }
    const ucs_status_ptr_t answer = ucp_worker_flush_nbx(onic_wire.worker, &param);
    onic_wire.flush = UCS_PTR_IS_PTR(answer) ? answer : NULL;
    return onic_wire.flush == NULL;
}

static void end_held(onic_peer_t *peer, ucs_status_t status)
{
    onic_send_t *held = peer->held;
    peer->held = NULL;
    if (held != NULL) {
        onic_send_finish(held, status);
    }
}

static void followed(void *request, ucs_status_t status, void *user_data)
{
    onic_peer_t *peer = user_data;
    ucp_request_free(request);
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
        if (!UCS_PTR_IS_PTR(ucp_am_send_nbx(peer->ep, ONIC_AM_ADDRESS, NULL, 0, NULL, 0, &param))) {
            peer->follows = false;
        }
    }
    return !peer->follows;
}

bool onic_send_has_left(onic_send_t *s)
{
    onic_peer_t *peer = s->peer;
    if (!s->copied) {
        return true;
    }
    s->copied = false;
    end_held(peer, UCS_OK);
    if (onic_wire_is_flushed() || follow(peer)) {
        return true;
    }
    peer->held = s;
    s->starting = s->done = false;
    onic_server_look_after();
    return false;
}

int onic_peer_leaves(onic_peer_t *peer, onic_send_cb_t cb, void *arg)
{
    onic_send_t *s = onic_send_get(cb, arg);
    if (s == NULL) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    s->peer = s->eager = peer;
    s->copied = true;
    return onic_send_put_if_over(s, onic_send_has_left(s) ? 1 : 0);
}

int onic_done_progress(void)
{
    int events = 0;
    onic_send_t *s = onic_wire.done_head;
    onic_wire.done_head = NULL;
    onic_wire.done_tail = &onic_wire.done_head;
    while (s != NULL) {
        onic_send_t *next = s->next;
        if (s->status != OMPI_SUCCESS || onic_send_has_left(s)) {
            onic_send_end(s, s->status);
        }
        s = next;
        events++;
    }
    return events;
}
