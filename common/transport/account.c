/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/ompi_compat.h"
#include "common/transport/account.h"
#include "common/transport/internal.h"

onic_account_t *onic_peer_account(onic_peer_t *peer)
{
    return &peer->account;
}

void onic_peer_meet(onic_peer_t *peer)
{
    if (peer->account.sender.met || peer->account.sender.lost)
        return;
    onic_credit_pool_meet(&onic_credit_pool, &peer->account.sender,
                          peer->name >> 32 == onic_transport.job);
    onic_peer_grant(peer, false);
}

void onic_peer_grant(onic_peer_t *peer, bool lacks)
{
    const onic_credit_limit_t w = {
        .name = onic_transport_me(),
        .limit = onic_credit_pool_grant(&onic_credit_pool, &peer->account.sender, lacks)};

    if (w.limit == peer->account.told)
        return;
    peer->account.told = w.limit;
    if (onic_peer_send(peer, ONIC_AM_CREDIT, &w, sizeof(w), NULL, 0, NULL, NULL) < 0)
        onic_peer_give_up(peer);
}

void onic_peer_forget_credit(onic_peer_t *peer)
{
    onic_credit_pool_forget(&onic_credit_pool, &peer->account.sender);
}

void onic_account_close(onic_peer_t *peer)
{
    onic_credit_user_t *s = &peer->account.sender;

    onic_credit_pool_forget(&onic_credit_pool, s);
    if (s->met)
        (void)onic_credit_pool_follow_freed(&onic_credit_pool, s, onic_credit_pool_holds(s), false);
}
