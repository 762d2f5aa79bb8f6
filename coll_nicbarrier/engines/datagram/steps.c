/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine datagram: the steps of a group, by the kernel or by this process; see state.h. */
#include <string.h>

#include "coll_nicbarrier/engines/datagram/state.h"

bool nicbarrier_steps_begin(nicbarrier_net_t *net, nicbarrier_reason_t *why)
{
    const int stepper = nicbarrier_datagram_config.stepper;
    return (stepper != NICBARRIER_HOST && nicbarrier_offload(net, why)) ||
           stepper != NICBARRIER_BPF;
}

void nicbarrier_steps_teach(nicbarrier_net_t *net)
{
    if (nicbarrier_net_page(net) == NULL)
        return;
    for (uint32_t k = 0; k < net->rule.nsteps; k++)
        if (net->to[k] != NULL)
            nicbarrier_datagram_send(net, NICBARRIER_PACKET_REPEAT, k, 0);
}

const nicbarrier_rule_t *nicbarrier_net_state(nicbarrier_net_t *net)
{
    uint64_t before[NICBARRIER_RULE_STEPS];
    if (nicbarrier_net_page(net) == NULL)
        return &net->rule;
    memcpy(before, net->rule.received, sizeof(before));
    nicbarrier_bpf_client_snapshot(&net->kernel, &net->rule);
    for (uint32_t k = 0; k < net->rule.nsteps; k++) {
        if (net->rule.received[k] != before[k]) {
            net->from[k]->refused = 0;
            nicbarrier_nacks_received(&net->nacks, k);
        }
    }
    return &net->rule;
}

/** From now on the process takes the steps. The page stays until the group is freed, since other
 *  threads may still read it. */
static void fall_back(nicbarrier_net_t *net)
{
    nicbarrier_bpf_client_stop(&net->kernel);
    (void)nicbarrier_net_state(net);
    atomic_store_explicit(&net->page, NULL, memory_order_release);
    onic_count(&nicbarrier_datagram_counters.stepper_fallbacks, 1);
}

/** Advances the group as far as possible, and sends messages that become due. */
static void advance(nicbarrier_net_t *net)
{
    const uint64_t out = nicbarrier_rule_advance(&net->rule);
    for (uint32_t k = 0; out >> k != 0; k++)
        if (out >> k & 1)
            nicbarrier_datagram_send(net, NICBARRIER_PACKET_EPOCH, k,
                                     nicbarrier_rule_word(&net->rule, k));
}

void nicbarrier_steps_enter(nicbarrier_net_t *net, uint64_t epoch)
{
    if (nicbarrier_net_page(net) != NULL) {
        if (nicbarrier_bpf_client_enter(&net->kernel, epoch))
            return;
        fall_back(net);
    }
    nicbarrier_rule_enter(&net->rule, epoch);
    advance(net);
}

void nicbarrier_steps_take(nicbarrier_net_t *net, uint32_t k, uint64_t word)
{
    if (nicbarrier_net_page(net) != NULL) {
        if (nicbarrier_bpf_client_take(&net->kernel, k, word))
            return;
        fall_back(net);
    }
    (void)nicbarrier_rule_receive(&net->rule, k, word);
    advance(net);
}
