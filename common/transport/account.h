/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The credit between this process and a peer (credit.h), and how limits are told. The
 *  transport lock is held. */
#pragma once

#include "common/support/export.h"
#include "common/transport/row/credit.h"
#include "common/transport/message.h"

/** The credit of a peer and this process, which stays as long as the peer does. */
ONIC_EXPORT onic_account_t *onic_peer_account(onic_peer_t *peer);

/** The peer sends by credit: tells it its first limit, unless that has been done. */
ONIC_EXPORT void onic_peer_meet(onic_peer_t *peer);

/** Raises the peer's limit as far as the pool allows, and tells it. `lacks`: the peer has asked for
 *  credit. */
ONIC_EXPORT void onic_peer_grant(onic_peer_t *peer, bool lacks);

/** The peer sends nothing any more. Messages of it that wait here count until they are freed. */
ONIC_EXPORT void onic_peer_forget_credit(onic_peer_t *peer);

/** The record of the peer is about to be freed: gives all that it holds back to the pool. */
void onic_account_close(onic_peer_t *peer);

/** A message of that cost has come from the peer. `waits`: it may wait for a receive. */
static inline void onic_credit_arrived(onic_peer_t *peer, onic_account_t *a, uint64_t bytes,
                                       bool waits)
{
    if (!a->sender.met)
        onic_peer_meet(peer);
    onic_credit_pool_arrived(&onic_credit_pool, &a->sender, bytes, waits);
}

/** That message is not kept any more. */
static inline void onic_credit_freed(onic_peer_t *peer, onic_account_t *a, uint64_t bytes,
                                     bool waits)
{
    if (onic_credit_pool_freed(&onic_credit_pool, &a->sender, bytes, waits))
        onic_peer_grant(peer, false);
}

/** The peer lacks credit for a message of that cost. */
static inline void onic_credit_lacks(onic_peer_t *peer, onic_account_t *a, uint64_t bytes)
{
    if (onic_credit_pool_lacks(&onic_credit_pool, &a->sender, bytes))
        onic_peer_grant(peer, true);
}
