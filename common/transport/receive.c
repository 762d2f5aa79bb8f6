/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Active messages as they arrive, from all rows. A process sends its address before the
 *  first message that names it, so that a handler can answer. Rows keep the order of messages of
 *  one fragment. */
#include "common/ompi_compat.h"
#include "common/support/help.h"
#include "common/transport/internal.h"
#include "common/transport/ucx/ucx.h"

#include <string.h>

#include "ompi/constants.h"

static void address_arrived(const void *record, size_t len)
{
    onic_peer_t *from = onic_learn_peer(record, len);
    if (from == NULL)
        onic_say("ompi-nic: messages of a process with another version are dropped");
    else
        from->introduced = true;
}

/** The peer has told how much this process may send. What waits for that is sent behind this
 *  progress. */
static void limit_arrived(onic_peer_t *from, const void *header, size_t len)
{
    onic_credit_limit_t w;

    if (len != sizeof(w))
        return;
    memcpy(&w, header, sizeof(w));
    onic_credit_raise(&from->account.credit, w.limit);
    onic_transport_ask(ONIC_AM_OSC, ONIC_LOCKED);
}

/** The sender that a message names; NULL where it is not known. */
static onic_peer_t *sender_of(const void *header, size_t header_len)
{
    uint64_t name;
    if (header_len < sizeof(name))
        return NULL;
    memcpy(&name, header, sizeof(name));
    onic_peer_t *from = onic_peer_named(name);
    if (from != NULL)
        from->introduced = true;
    return from;
}

void onic_am_arrived(unsigned am_id, const void *header, size_t header_len, const void *data,
                     size_t len, onic_rndv_t *rndv, onic_peer_t **sender)
{
    onic_peer_t *from = sender != NULL ? *sender : NULL;
    if (rndv == NULL && header_len == 0) {
        header = data;
        header_len = len;
        len = 0;
    }
    if (onic_requests.closing || am_id > ONIC_AM_ADDRESS || header_len == 0)
        return;
    if (am_id == ONIC_AM_ADDRESS) {
        address_arrived(header, header_len);
        return;
    }
    if (from == NULL && onic_am_is_named(am_id)) {
        from = sender_of(header, header_len);
        if (from == NULL)
            return;
        if (sender != NULL)
            *sender = from;
    }
    if (am_id == ONIC_AM_CREDIT) {
        limit_arrived(from, header, header_len);
        return;
    }
    if (rndv != NULL)
        rndv->from = from;
    const onic_am_fn_t fn = onic_transport.am[am_id];
    if (fn != NULL)
        fn(from, header, header_len, len == 0 ? NULL : data, len, rndv);
}

int onic_rndv_recv(onic_rndv_t *rndv, void *buffer, size_t len, onic_send_cb_t cb, void *arg)
{
    if (len < rndv->len)
        return OMPI_ERR_VALUE_OUT_OF_BOUNDS; /* and so it is dropped */
    if (rndv->from != NULL && rndv->from->gone)
        return OMPI_ERR_UNREACH; /* its data will not come */
    onic_request_t *r = onic_request_get(rndv->from, cb, arg, 0);
    return r != NULL ? onic_request_begun(r, onic_ucx_receive(r, rndv, buffer))
                     : OMPI_ERR_OUT_OF_RESOURCE;
}
