/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Active messages as they arrive: by UCX, by a queue, or from this process itself; and
 *  rendezvous.
 *
 *  A process that sends a message which names its sender to one that may not know it first sends
 *  its address, so that a handler can answer. UCX keeps the order of messages of one fragment, and
 *  so do queues. Messages of this process to itself wait for the next progress: no handler ever
 *  runs inside a send. */
#include "common/ompi_compat.h"
#include "common/layout/copy.h"
#include "common/support/help.h"
#include "common/transport/internal.h"

#include <stdlib.h>
#include <string.h>

#include "ompi/constants.h"

/* ---- handlers ------------------------------------------------------------------------------- */

/** Calls the handler. */
static void deliver(unsigned am_id, onic_peer_t *from, const void *header, size_t header_len,
                    const void *data, size_t len, onic_rndv_t *rndv)
{
    const onic_am_fn_t fn = onic_transport.fns[am_id].am;
    if (rndv != NULL)
        rndv->from = from;
    if (fn != NULL)
        fn(from, header, header_len, data, len, rndv);
}

/* ---- messages of this process to itself ---------------------------------------------------- */

int onic_loop_send(unsigned am_id, const void *header, size_t header_len,
                   const onic_payload_t *payload, unsigned flags, onic_send_cb_t cb, void *arg)
{
    const bool rndv = (flags & ONIC_SEND_RNDV) != 0;
    const size_t data_at = (header_len + 15) & ~(size_t)15,
                 len = payload != NULL ? payload->len : 0;
    onic_loop_message_t *m = malloc(sizeof(*m) + data_at + (rndv ? 0 : len));
    if (m == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    *m = (onic_loop_message_t){
        .am_id = am_id, .header_len = header_len, .len = len, .data = m->bytes + data_at};
    memcpy(m->bytes, header, header_len);
    if (rndv) {
        m->rndv_base = onic_payload_bytes(payload);
        m->cb = cb;
        m->arg = arg;
    } else if (len > 0) {
        onic_payload_copy(m->data, payload, false);
    }
    STAILQ_INSERT_TAIL(&onic_transport.loop, m, next);
    return rndv ? 0 : 1;
}

static void deliver_looped(onic_loop_message_t *m)
{
    onic_peer_t *from = onic_am_is_named(m->am_id) ? onic_transport.self : NULL;
    onic_rndv_t rndv = {.base = m->rndv_base, .len = m->len};
    const bool meets = m->rndv_base != NULL;
    deliver(m->am_id, from, m->bytes, m->header_len, meets ? NULL : m->data, m->len,
            meets ? &rndv : NULL);
    if (m->cb != NULL)
        m->cb(m->arg, OMPI_SUCCESS);
    free(m);
}

int onic_loop_progress(void)
{
    int events = 0;
    /* Handlers may send to this process again; that is for the next time. */
    onic_loop_t now = STAILQ_HEAD_INITIALIZER(now);
    STAILQ_CONCAT(&now, &onic_transport.loop);
    for (onic_loop_message_t *m; (m = STAILQ_FIRST(&now)) != NULL; events++) {
        STAILQ_REMOVE_HEAD(&now, next);
        deliver_looped(m);
    }
    return events;
}

void onic_loop_stop(void)
{
    for (onic_loop_message_t *m; (m = STAILQ_FIRST(&onic_transport.loop)) != NULL;) {
        STAILQ_REMOVE_HEAD(&onic_transport.loop, next);
        free(m);
    }
}

/* ---- arrival --------------------------------------------------------------------------------- */

static void address_arrived(const void *record, size_t len)
{
    onic_peer_t *from = onic_learn_peer(record, len);
    if (from == NULL)
        onic_say("ompi-nic: messages of a process with another version are dropped");
    else
        from->introduced = true;
}

/** The peer has told what this process may send it. What waits for that follows this progress. */
static void limit_arrived(onic_peer_t *from, const void *header, size_t len)
{
    onic_credit_limit_t w;

    if (len != sizeof(w))
        return;
    memcpy(&w, header, sizeof(w));
    onic_credit_raise(&from->account.credit, w.limit);
    onic_transport_defer(ONIC_AM_OSC);
}

void onic_am_arrived(unsigned am_id, const void *header, size_t header_len, const void *data,
                     size_t len, void *desc)
{
    onic_rndv_t rndv = {.desc = desc, .len = len};
    onic_peer_t *from = NULL;
    uint64_t name;
    if (desc == NULL && header_len == 0) {
        header = data;
        header_len = len;
        len = 0;
    }
    /* An empty one only goes behind another. */
    if (onic_transport.closing || am_id > ONIC_AM_ADDRESS || header_len == 0)
        return;
    if (am_id == ONIC_AM_ADDRESS) {
        address_arrived(header, header_len);
        return;
    }
    if (onic_am_is_named(am_id)) {
        if (header_len < sizeof(name))
            return;
        memcpy(&name, header, sizeof(name));
        from = onic_peer_named(name);
        if (from == NULL)
            return;
        from->introduced = true;
    }
    if (am_id == ONIC_AM_CREDIT) {
        limit_arrived(from, header, header_len);
        return;
    }
    deliver(am_id, from, header, header_len, desc != NULL || len == 0 ? NULL : data, len,
            desc != NULL ? &rndv : NULL);
}

/** What the handler of a rendezvous has not taken UCX drops, and tells the sender. */
static ucs_status_t arrived(void *arg, const void *header, size_t header_len, void *data,
                            size_t len, const ucp_am_recv_param_t *param)
{
    const bool meets = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
    onic_am_arrived((unsigned)(uintptr_t)arg, header, header_len, data, len, meets ? data : NULL);
    return UCS_OK;
}

int onic_am_start(void)
{
    ucs_status_t status = UCS_OK;
    STAILQ_INIT(&onic_transport.loop);
    for (unsigned id = ONIC_AM_OSC; id <= ONIC_AM_ADDRESS && status == UCS_OK; id++) {
        ucp_am_handler_param_t param = {
            .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                          UCP_AM_HANDLER_PARAM_FIELD_ARG,
            .id = id,
            .cb = arrived,
            .arg = (void *)(uintptr_t)id,
        };
        status = onic_ucx.worker_set_am_recv_handler(onic_transport.worker, &param);
    }
    return onic_ucs_error(status);
}

/* ---- rendezvous ----------------------------------------------------------------------------- */

static void received(void *request, ucs_status_t status, size_t length, void *user_data)
{
    (void)length;
    onic_send_sent(request, status, user_data);
}

int onic_rndv_recv(onic_rndv_t *rndv, void *buffer, size_t len, onic_send_cb_t cb, void *arg)
{
    if (len < rndv->len)
        return OMPI_ERR_VALUE_OUT_OF_BOUNDS; /* and so it is dropped */
    if (rndv->from != NULL && rndv->from->gone)
        return OMPI_ERR_UNREACH; /* its data will not come */
    if (rndv->desc == NULL) {
        onic_copy_bytes(buffer, rndv->base, rndv->len);
        return 1;
    }
    onic_send_t *s = onic_send_get(cb, arg, 0);
    if (s == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    s->peer = rndv->from;
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.recv_am = received,
        .user_data = s,
    };
    return onic_send_begun(
        s, onic_ucx.am_recv_data_nbx(onic_transport.worker, rndv->desc, buffer, rndv->len, &param));
}
