/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Messages of the transport: sending, receiving, rendezvous. The transport lock is held, if
 *  not said otherwise. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/support/export.h"
#include "common/transport/row/credit.h"
#include "common/transport/row/message_types.h"

/* ---- sending ------------------------------------------------------------------------------- */

/** Most bytes of header + payload of one active message, so that it travels as one fragment, in
 *  order. Never becomes less. On a node always at least ONIC_MESSAGE_LEAST, and more where so many
 *  are `wanted` and there is memory for it. Makes the connection if there is none. */
ONIC_EXPORT size_t onic_peer_message_max(onic_peer_t *peer, size_t wanted);

/** Sends an active message as onic_peer_send, if that can be done at once: true. The header has no
 *  more than ONIC_SEND_NOW_MAX bytes. A receiver may find all of it in the header. */
ONIC_EXPORT bool onic_peer_send_now(onic_peer_t *peer, unsigned am_id, const void *header,
                                    size_t header_len, const onic_payload_t *payload);

/** Sends an active message. The header, 1 .. onic_header_max bytes or, where there is no
 *  payload, any number, is copied before return. `payload` may be NULL; the struct is copied, the
 *  memory it names must stay until local completion. For a rendezvous it must be contiguous.
 *  Handlers may send. A message to this process itself is handled in a later progress. Returns 1
 *  where the send is already locally complete (cb is not called), 0 where cb will be called, or an
 *  OMPI error (cb is not called). */
ONIC_EXPORT int onic_peer_send(onic_peer_t *peer, unsigned am_id, const void *header,
                               size_t header_len, const onic_payload_t *payload, unsigned flags,
                               onic_send_cb_t cb, void *arg);

/* ---- credit (credit.h) --------------------------------------------------------------------- */

/** The credit of a peer and this process, which stays as long as the peer does. */
ONIC_EXPORT onic_account_t *onic_peer_account(onic_peer_t *peer);

/** Tells the peer its new limit. */
ONIC_EXPORT void onic_account_tell(onic_peer_t *peer);

/** A message of that cost has come from the peer. */
static inline void onic_account_arrived(onic_account_t *a, uint64_t bytes)
{
    a->sender.arrived += bytes;
}

/** That message is not kept any more. */
static inline void onic_account_freed(onic_peer_t *peer, onic_account_t *a, uint64_t bytes)
{
    if (onic_credit_freed(&a->sender, bytes))
        onic_account_tell(peer);
}

/* ---- receiving ----------------------------------------------------------------------------- */

/** Handler of an active message. Header and data live only until it returns. `from`: the sender,
 *  where the message or its way names it, else NULL. `rndv` is NULL for data that has arrived;
 *  otherwise `data` is, and the payload is refused unless the handler calls onic_rndv_recv: the
 *  sender's send completes with success. What comes while there is no handler is dropped. */
typedef void (*onic_am_fn_t)(onic_peer_t *from, const void *header, size_t header_len,
                             const void *data, size_t len, onic_rndv_t *rndv);

/** Receives the payload into `buffer`, of `len` bytes, at least the announced length (otherwise the
 *  payload is refused and OMPI_ERR_VALUE_OUT_OF_BOUNDS returned); same returns as send. */
ONIC_EXPORT int onic_rndv_recv(onic_rndv_t *rndv, void *buffer, size_t len, onic_send_cb_t cb,
                               void *arg);
