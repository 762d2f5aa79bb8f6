/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Active messages as they are sent. A send takes a record (record.c), where its header
 *  outlives the call. Short headers without a payload are tried without: as UCX's payload, which
 *  costs one piece less to gather. */
#include "common/ompi_compat.h"
#include "common/transport/put.h"
#include "common/transport/internal.h"

#include <string.h>

#include "ompi/constants.h"

/* ---- by UCX --------------------------------------------------------------------------------- */

/** Sends a message that the record describes. As onic_send_started. */
static int ucx_send(ucp_ep_h ep, onic_send_t *s, const onic_payload_t *payload, unsigned flags)
{
    ucp_request_param_t param = {
        .op_attr_mask =
            UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS,
        .cb.send = onic_send_sent,
        .user_data = s,
        .flags = (flags & ONIC_SEND_RNDV) != 0 ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER,
    };
    const void *buffer = s->len > 0 ? onic_payload_bytes(payload) : NULL;
    size_t count = s->len;
    if (s->len > 0 && buffer == NULL) {
        s->start = s->cursor.pos;
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
        param.datatype = onic_transport.gather_dt;
        buffer = s;
        count = 1;
    }
    s->copied = s->peer->copies;
    const int rc = onic_send_started(
        s, onic_ucx.am_send_nbx(ep, s->am_id, s->header, s->header_len, buffer, count, &param));
    return rc == 1 && !onic_send_has_left(s) ? 0 : rc;
}

/** Likewise by a queue; the message may wait for room. */
static int queue_send(onic_queue_out_t *out, onic_send_t *s, const onic_payload_t *payload)
{
    if (s->header_len + s->len > onic_outbox_most(&out->box, s->header_len + s->len))
        return OMPI_ERR_BAD_PARAM; /* there would never be room */
    if (onic_queue_put(out, s->am_id, s->header, s->header_len, payload))
        return 1;
    onic_queue_wait(out, s);
    return 0;
}

/** Sends a message whose header is in the record, by UCX or, where `ep` is NULL, by the queue. */
static int transmit(onic_peer_t *to, ucp_ep_h ep, onic_send_t *s, unsigned am_id, size_t header_len,
                    const onic_payload_t *payload, unsigned flags)
{
    s->peer = to;
    s->eager = (flags & ONIC_SEND_RNDV) == 0 ? to : NULL;
    s->am_id = am_id;
    s->header_len = header_len;
    s->len = 0;
    if (payload != NULL) {
        s->base = payload->base;
        s->cursor = payload->cursor;
        s->len = payload->len;
    }
    const int rc = ep != NULL ? ucx_send(ep, s, payload, flags) : queue_send(to->queue, s, payload);
    if (rc != 0)
        onic_send_put(s);
    return rc;
}

/** Sends a process this one's address, before the first message that names its sender, by the way
 *  that that one takes. As a payload: it may be longer than headers are. By UCX it must be one
 *  fragment, or that message could overtake it: addresses have some hundreds to thousands of bytes,
 *  fragments 8 KiB or more, unless somebody wants it otherwise. */
static int introduce(onic_peer_t *to, ucp_ep_h ep)
{
    const size_t len = onic_address_record_size();
    if (ep != NULL && len > to->frag_max) {
        onic_peer_print_lost(to, "no message reaches", "the address of this one is too long");
        return OMPI_ERR_NOT_SUPPORTED;
    }
    onic_send_t *s = onic_send_get(NULL, NULL, len);
    if (s == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    if (onic_address_record(s->header, len) == 0) {
        onic_send_put(s);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    const onic_payload_t payload = {.base = s->header, .len = len};
    const int rc = transmit(to, ep, s, ONIC_AM_ADDRESS, 0, &payload, 0);
    to->introduced = rc >= 0;
    return rc < 0 ? rc : OMPI_SUCCESS;
}

static inline bool must_introduce(const onic_peer_t *to, unsigned am_id)
{
    return onic_am_is_named(am_id) && !to->introduced;
}

/* ---- the way --------------------------------------------------------------------------------- */

/** Goes a message by a queue where there is one? All between two processes of a node do, but
 *  for the barrier's, whose receiver is woken by UCX, and the pipeline's to other hosts. */
static inline bool may_queue(unsigned am_id, unsigned flags)
{
    return (am_id == ONIC_AM_OSC || am_id == ONIC_AM_PML || am_id == ONIC_AM_SHORT ||
            am_id == ONIC_AM_CREDIT) &&
           (flags & ONIC_SEND_RNDV) == 0;
}

/** Finds the way of a message: the queue of the peer, or *ep_p. */
static int find_way(onic_peer_t *to, unsigned am_id, unsigned flags, ucp_ep_h *ep_p)
{
    int rc = OMPI_SUCCESS;
    const bool queues = may_queue(am_id, flags);
    *ep_p = NULL;
    if (queues && !to->queue_tried)
        onic_queue_open(to);
    if (!queues || to->queue == NULL || onic_peer_is_lost(to))
        *ep_p = onic_peer_ep(to, &rc);
    if (rc == OMPI_SUCCESS && must_introduce(to, am_id))
        rc = introduce(to, *ep_p);
    return rc;
}

/* ---- sending -------------------------------------------------------------------------------- */

/* Transports take some 100 bytes to 8 KiB at once. */
static onic_sent_t ucx_send_now(const onic_peer_t *peer, unsigned am_id, const void *header,
                                size_t header_len)
{
    static const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL,
        .flags = UCP_AM_SEND_FLAG_EAGER,
    };
    if (onic_ucx.am_send_nbx(peer->ep, am_id, NULL, 0, header, header_len, &param) != NULL)
        return ONIC_SENT_NOT;
    return !peer->copies || onic_transport_is_flushed() ? ONIC_SENT_WHOLLY : ONIC_SENT_HELD;
}

onic_sent_t onic_peer_send_now(onic_peer_t *peer, unsigned am_id, const void *header,
                               size_t header_len, const onic_payload_t *payload)
{
    unsigned char all[ONIC_SEND_NOW_MAX];
    const size_t len = payload != NULL ? payload->len : 0;
    if (peer->failed != UCS_OK || must_introduce(peer, am_id))
        return ONIC_SENT_NOT;
    if (peer->queue != NULL && may_queue(am_id, 0)) {
        return onic_queue_put(peer->queue, am_id, header, header_len, payload) ? ONIC_SENT_WHOLLY
                                                                               : ONIC_SENT_NOT;
    }
    if (peer->ep == NULL || (may_queue(am_id, 0) && !peer->queue_tried))
        return ONIC_SENT_NOT;
    if (len == 0)
        return ucx_send_now(peer, am_id, header, header_len);
    if (header_len + len > sizeof(all))
        return ONIC_SENT_NOT;
    memcpy(all, header, header_len);
    onic_payload_copy(all + header_len, payload, false);
    return ucx_send_now(peer, am_id, all, header_len + len);
}

int onic_peer_send(onic_peer_t *peer, unsigned am_id, const void *header, size_t header_len,
                   const onic_payload_t *payload, unsigned flags, onic_send_cb_t cb, void *arg)
{
    if (payload == NULL || payload->len == 0) {
        flags &= ~(unsigned)ONIC_SEND_RNDV; /* there is nothing to meet for */
        payload = NULL;
    } else if ((flags & ONIC_SEND_RNDV) != 0 && onic_payload_bytes(payload) == NULL) {
        return OMPI_ERR_BAD_PARAM;
    }
    const bool is_long = header_len > onic_transport.header_max;
    if (header_len == 0 || (is_long && payload != NULL) || am_id >= ONIC_AM_COUNT)
        return OMPI_ERR_BAD_PARAM;
    if (onic_am_is_named(am_id) &&
        (header_len < sizeof(onic_transport.self->name) ||
         memcmp(header, &onic_transport.self->name, sizeof(onic_transport.self->name)) != 0))
        return OMPI_ERR_BAD_PARAM;
    if (peer->self)
        return onic_loop_send(am_id, header, header_len, payload, flags, cb, arg);
    ucp_ep_h ep;
    const int rc = find_way(peer, am_id, flags, &ep);
    if (rc != OMPI_SUCCESS)
        return rc;
    if (ep == NULL || (header_len <= ONIC_SEND_NOW_MAX && payload == NULL)) {
        const onic_sent_t sent = onic_peer_send_now(peer, am_id, header, header_len, payload);
        if (sent != ONIC_SENT_NOT)
            return sent == ONIC_SENT_WHOLLY ? 1 : onic_peer_leaves(peer, cb, arg);
    }
    onic_send_t *s = onic_send_get(cb, arg, header_len);
    if (s == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    memcpy(s->header, header, header_len);
    if (is_long) {
        const onic_payload_t whole = {.base = s->header, .len = header_len};
        return transmit(peer, ep, s, am_id, 0, &whole, flags);
    }
    return transmit(peer, ep, s, am_id, header_len, payload, flags);
}

/* ---- connections --------------------------------------------------------------------------- */

/** Do messages of that identifier go to the peer through a queue? */
static bool sends_by_queue(onic_peer_t *peer, unsigned am_id)
{
    if (!may_queue(am_id, 0) || peer->self)
        return false;
    if (!peer->queue_tried && peer->failed == UCS_OK)
        onic_queue_open(peer);
    return peer->queue != NULL;
}

void onic_peer_connect(onic_peer_t *peer, unsigned am_id)
{
    /* A failure is printed when the connection is needed. */
    if (!peer->self && !sends_by_queue(peer, am_id) && peer->ep == NULL && peer->failed == UCS_OK)
        (void)onic_make_ep(peer);
}

/** Most bytes of one fragment by UCX. */
static size_t frag_max(onic_peer_t *peer)
{
    int rc;
    if (peer->self)
        return onic_transport_frag_max("posix");
    if (peer->ep == NULL)
        (void)onic_peer_ep(peer, &rc);
    return peer->frag_max > 0 ? peer->frag_max : onic_transport_frag_max("");
}

bool onic_peer_puts_by_rdma(onic_peer_t *peer)
{
    return frag_max(peer) > 0 && peer->rdma;
}

size_t onic_peer_message_max(onic_peer_t *peer, unsigned am_id, size_t wanted)
{
    if (sends_by_queue(peer, am_id))
        return onic_outbox_most(&peer->queue->box, wanted);
    return frag_max(peer);
}

bool onic_peer_has_queue(const onic_peer_t *peer)
{
    return peer->queue != NULL || (!peer->queue_tried && onic_queue_can_open(peer));
}
