/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Active messages as they arrive: handlers, and rendezvous. Those that name their sender come by
 * named.c.
 */
#include "common/ompi_compat.h"
#include "common/wire/wire_internal.h"

#include "ompi/constants.h"

#include "common/layout/copy.h"

/* ---- handlers ------------------------------------------------------------------------------- */

/** Calls the function for messages without a name; a rendezvous that it does not take is refused.
 */
static void deliver(unsigned am_id, const void *header, size_t header_len, const void *data,
                    size_t len, onic_rndv_t *rndv)
{
    onic_am_fn_t fn = onic_wire.am_fn[am_id];
    if (fn != NULL && !onic_wire.closing) {
        fn(header, header_len, data, len, rndv);
    }
}

static ucs_status_t am_arrived(void *arg, const void *header, size_t header_len, void *data,
                               size_t len, const ucp_am_recv_param_t *param)
{
    const unsigned am_id = (unsigned)(uintptr_t)arg;
    if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
        onic_rndv_t rndv = {.desc = data, .len = len};
        deliver(am_id, header, header_len, NULL, len, &rndv);
    } else if (header_len == 0) {
        deliver(am_id, data, len, NULL, 0, NULL);
    } else {
        deliver(am_id, header, header_len, data, len, NULL);
    }
    return UCS_OK;
}

static ucs_status_t named_arrived(void *arg, const void *header, size_t header_len, void *data,
                                  size_t len, const ucp_am_recv_param_t *param)
{
    const unsigned am_id = (unsigned)(uintptr_t)arg;
    if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
        return onic_named_arrived(am_id, header, header_len, NULL, len, data) ? UCS_INPROGRESS
                                                                              : UCS_OK;
    }
    if (header_len == 0) {
        (void)onic_named_arrived(am_id, data, len, NULL, 0, NULL);
    } else {
        (void)onic_named_arrived(am_id, header, header_len, data, len, NULL);
    }
    return UCS_OK;
}

static ucs_status_t address_arrived(void *arg, const void *header, size_t header_len, void *data,
                                    size_t len, const ucp_am_recv_param_t *param)
{
    (void)arg;
    (void)header;
    (void)header_len;
    /* An empty one goes behind another. */
    if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0 && len > 0) {
        onic_address_arrived(data, len);
    }
    return UCS_OK;
}

void onic_am_arrived(unsigned am_id, const void *header, size_t header_len, const void *data,
                     size_t len)
{
    if (am_id == ONIC_AM_ADDRESS) {
        onic_address_arrived(header, header_len);
    } else if (am_id < ONIC_AM_COUNT && onic_am_is_named(am_id)) {
        (void)onic_named_arrived(am_id, header, header_len, data, len, NULL);
    } else if (am_id < ONIC_AM_COUNT) {
        deliver(am_id, header, header_len, data, len, NULL);
    }
}

/* ---- rendezvous ----------------------------------------------------------------------------- */

static void received(void *request, ucs_status_t status, size_t length, void *user_data)
{
    (void)length;
    ucp_request_free(request);
    onic_send_finish(user_data, status);
}

int onic_rndv_recv(onic_rndv_t *rndv, void *buffer, size_t len, onic_send_cb_t cb, void *arg)
{
    if (len < rndv->len) {
        return OMPI_ERR_VALUE_OUT_OF_BOUNDS; /* and so it is dropped */
    }
    if (rndv->from != NULL && rndv->from->gone) {
        return OMPI_ERR_UNREACH; /* its data will not come */
    }
    if (rndv->desc == NULL) {
        onic_copy_bytes(buffer, rndv->base, rndv->len);
        return 1;
    }
    onic_send_t *s = onic_send_get(cb, arg);
    if (s == NULL) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    rndv->taken = true;
    s->peer = rndv->from;
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.recv_am = received,
        .user_data = s,
    };
    return onic_send_put_if_over(
        s, onic_send_started(
               s, ucp_am_recv_data_nbx(onic_wire.worker, rndv->desc, buffer, rndv->len, &param)));
}

void onic_rndv_drop(onic_rndv_t *rndv)
{
    /* UCX drops what the handler did not receive, and tells the sender. */
    (void)rndv;
}

int onic_wire_set_am_fn(unsigned am_id, onic_am_fn_t fn)
{
    if (am_id >= ONIC_AM_COUNT || onic_am_is_named(am_id)) {
        return OMPI_ERR_BAD_PARAM;
    }
    onic_wire_lock();
    onic_wire.am_fn[am_id] = fn;
    onic_wire_unlock();
    return OMPI_SUCCESS;
}

/* ---- start ---------------------------------------------------------------------------------- */

/** Has UCX call a function, with the identifier as its argument. */
static ucs_status_t have_called(unsigned am_id, ucp_am_recv_callback_t fn)
{
    ucp_am_handler_param_t param = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id = am_id,
        .cb = fn,
        .arg = (void *)(uintptr_t)am_id,
    };
    return ucp_worker_set_am_recv_handler(onic_wire.worker, &param);
}

int onic_am_start(void)
{
    ucs_status_t status = have_called(ONIC_AM_ADDRESS, address_arrived);
    for (unsigned id = ONIC_AM_OSC; id < ONIC_AM_COUNT && status == UCS_OK; id++) {
        status = have_called(id, onic_am_is_named(id) ? named_arrived : am_arrived);
    }
    return onic_ucs_error(status);
}
