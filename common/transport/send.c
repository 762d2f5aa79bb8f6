/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Active messages as they are sent: by the row that the peer has for them, from its first
 *  contact on, so that they stay in order; a rendezvous by UCX. */
#include "common/ompi_compat.h"
#include "common/transport/internal.h"
#include "common/transport/ucx/ucx.h"

#include <string.h>

#include "ompi/constants.h"

/* ---- the row of a peer ----------------------------------------------------------------------- */

int onic_peer_reach(onic_peer_t *peer, const onic_row_t *row)
{
    if (peer->failed != OMPI_SUCCESS) {
        (void)onic_peer_lost(peer); /* which says so */
        /* The loss has been counted, but what has just been started must end, too. */
        onic_transport_count_loss();
        return peer->failed;
    }
    const int rc = row->connect(peer);
    if (rc != OMPI_SUCCESS) {
        peer->failed = rc;
        onic_transport_count_loss();
        onic_peer_print_lost(peer, "no UCX transport reaches", peer->why);
    }
    return rc;
}

/** The first row that reaches the peer and takes the message that introduces this process. */
static const onic_row_t *find_row(onic_peer_t *peer)
{
    const size_t record = onic_address_record_size();
    const onic_row_t *const *row = onic_rows;
    while (row[1] != NULL && (!(*row)->reaches(peer) || (*row)->message_max(peer, record) < record))
        row++;
    return *row;
}

static inline const onic_row_t *row_of(onic_peer_t *peer)
{
    if (peer->messages == NULL)
        peer->messages = find_row(peer);
    return peer->messages;
}

size_t onic_peer_message_max(onic_peer_t *peer, size_t wanted)
{
    const onic_row_t *row = row_of(peer);
    return peer->failed == OMPI_SUCCESS && onic_peer_reach(peer, row) == OMPI_SUCCESS
               ? row->message_max(peer, wanted)
               : ONIC_MESSAGE_LEAST;
}

/* ---- sending --------------------------------------------------------------------------------- */

void onic_send_left(bool must_run)
{
    if (must_run)
        onic_transport_need_help_locked();
    onic_server_look_after();
}

/** Sends a message whose header is in the request. */
static int transmit(const onic_row_t *row, onic_request_t *r, unsigned am_id, size_t header_len,
                    const onic_payload_t *payload, unsigned flags)
{
    r->eager = (flags & ONIC_SEND_RNDV) == 0;
    r->am_id = am_id;
    r->header_len = header_len;
    r->len = 0;
    if (payload != NULL) {
        r->base = payload->base;
        r->cursor = payload->cursor;
        r->len = payload->len;
    }
    return onic_request_begun(r, row->send(r, payload, flags));
}

/** Sends a process this one's address before the first message that names its sender, by the same
 *  row. The address is the payload, since it may be longer than a header. By UCX it must be one
 *  fragment, or the message could overtake it: addresses have some hundreds to thousands of bytes,
 *  fragments 8 KiB or more unless configured otherwise. */
static int introduce(onic_peer_t *to, const onic_row_t *row)
{
    const size_t len = onic_address_record_size();
    if (len > row->message_max(to, len)) {
        onic_peer_print_lost(to, "no message reaches", "the address of this one is too long");
        return OMPI_ERR_NOT_SUPPORTED;
    }
    onic_request_t *r = onic_request_get(to, NULL, NULL, len);
    if (r == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    if (onic_address_record(r->header, len) == 0) {
        onic_request_put(r);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    const onic_payload_t payload = {.base = r->header, .len = len};
    const int rc = transmit(row, r, ONIC_AM_ADDRESS, 0, &payload, 0);
    to->introduced = rc >= 0;
    return rc < 0 ? rc : OMPI_SUCCESS;
}

static inline bool must_introduce(const onic_peer_t *to, unsigned am_id)
{
    return onic_am_is_named(am_id) && !to->introduced;
}

bool onic_peer_send_now(onic_peer_t *peer, unsigned am_id, const void *header, size_t header_len,
                        const onic_payload_t *payload)
{
    return peer->messages != NULL && peer->failed == OMPI_SUCCESS && !must_introduce(peer, am_id) &&
           peer->messages->send_now(peer, am_id, header, header_len, payload);
}

/** True if such a message may be sent. A long header goes in place of a payload. */
static bool is_sound(unsigned am_id, const void *header, size_t header_len,
                     const onic_payload_t *payload, unsigned flags)
{
    if (header_len == 0 || (header_len > onic_header_max && payload != NULL) ||
        am_id >= ONIC_AM_COUNT)
        return false;
    if ((flags & ONIC_SEND_RNDV) != 0 && onic_payload_bytes(payload) == NULL)
        return false;
    return !onic_am_is_named(am_id) ||
           (header_len >= sizeof(onic_here.name) &&
            memcmp(header, &onic_here.name, sizeof(onic_here.name)) == 0);
}

int onic_peer_send(onic_peer_t *peer, unsigned am_id, const void *header, size_t header_len,
                   const onic_payload_t *payload, unsigned flags, onic_send_cb_t cb, void *arg)
{
    if (payload == NULL || payload->len == 0) {
        flags &= ~(unsigned)ONIC_SEND_RNDV; /* there is nothing to meet for */
        payload = NULL;
    }
    if (!is_sound(am_id, header, header_len, payload, flags))
        return OMPI_ERR_BAD_PARAM;
    const onic_row_t *row = (flags & ONIC_SEND_RNDV) != 0 ? &onic_row_ucx : row_of(peer);
    int rc = onic_peer_reach(peer, row);
    if (rc == OMPI_SUCCESS && must_introduce(peer, am_id))
        rc = introduce(peer, row);
    if (rc != OMPI_SUCCESS)
        return rc;
    if ((flags & ONIC_SEND_RNDV) == 0 && (payload == NULL || !row->joins) &&
        row->send_now(peer, am_id, header, header_len, payload))
        return 1;
    onic_request_t *r = onic_request_get(peer, cb, arg, header_len);
    if (r == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    memcpy(r->header, header, header_len);
    if (header_len <= onic_header_max)
        return transmit(row, r, am_id, header_len, payload, flags);
    const onic_payload_t whole = {.base = r->header, .len = header_len};
    return transmit(row, r, am_id, 0, &whole, flags);
}

onic_account_t *onic_peer_account(onic_peer_t *peer)
{
    return &peer->account;
}

void onic_account_tell(onic_peer_t *peer)
{
    const onic_credit_limit_t w = {.name = onic_here.name,
                                   .limit = onic_credit_limit(&peer->account.sender)};

    if (peer->failed == OMPI_SUCCESS &&
        onic_peer_send(peer, ONIC_AM_CREDIT, &w, sizeof(w), NULL, 0, NULL, NULL) < 0)
        onic_peer_give_up(peer);
}
