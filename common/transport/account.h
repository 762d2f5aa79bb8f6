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
