/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/ompi_compat.h"
#include "common/transport/account.h"
#include "common/transport/internal.h"

#include "ompi/constants.h"

onic_account_t *onic_peer_account(onic_peer_t *peer)
{
    return &peer->account;
}

void onic_account_tell(onic_peer_t *peer)
{
    const onic_credit_limit_t w = {.name = onic_transport_me(),
                                   .limit = onic_credit_limit(&peer->account.sender)};

    if (peer->failed == OMPI_SUCCESS &&
        onic_peer_send(peer, ONIC_AM_CREDIT, &w, sizeof(w), NULL, 0, NULL, NULL) < 0)
        onic_peer_give_up(peer);
}
