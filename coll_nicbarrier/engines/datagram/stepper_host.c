/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The stepper of the process itself; see stepper.h. Its state is net->rule. */
#include "coll_nicbarrier/engines/datagram/state.h"

/** Advances the group as far as possible, and sends messages that become due. */
static void advance(nicbarrier_net_t *net)
{
    const uint64_t out = nicbarrier_rule_advance(&net->rule);
    for (uint32_t k = 0; out >> k != 0; k++)
        if (out >> k & 1)
            nicbarrier_datagram_send(net, NICBARRIER_PACKET_EPOCH, k,
                                     nicbarrier_rule_word(&net->rule, k));
}

static bool host_install(nicbarrier_net_t *net, nicbarrier_reason_t *why)
{
    (void)net;
    (void)why;
    return true;
}

static bool host_enter(nicbarrier_net_t *net, uint64_t epoch)
{
    nicbarrier_rule_enter(&net->rule, epoch);
    advance(net);
    return true;
}

static bool host_take(nicbarrier_net_t *net, uint32_t k, uint64_t word)
{
    (void)nicbarrier_rule_receive(&net->rule, k, word);
    advance(net);
    return true;
}

const nicbarrier_stepper_t nicbarrier_stepper_host = {
    .install = host_install, .enter = host_enter, .take = host_take};
