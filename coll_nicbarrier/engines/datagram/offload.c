/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine datagram: whether a stepper or this process takes the steps of a group; see
 * state.h. */
#include <string.h>

#include "coll_nicbarrier/engines/datagram/state.h"

static bool is_wanted(const char *stepper)
{
    const char *name = nicbarrier_datagram_config.stepper;
    return name == NULL || strcmp(name, "auto") == 0 || strcmp(name, stepper) == 0;
}

bool nicbarrier_offload_install(nicbarrier_net_t *net, nicbarrier_reason_t *why)
{
    nicbarrier_view_t *view = NULL;
    uint64_t sends, waits;
    nicbarrier_schedule_bits(net->step, net->nsteps, &sends, &waits);
    nicbarrier_rule_init(&net->rule, (uint32_t)net->nsteps, sends, waits);
    nicbarrier_reason(why, "this build has no stepper of that name");
    for (int i = 0; nicbarrier_steppers[i] != NULL && net->offload == NULL; i++) {
        net->stepper = nicbarrier_steppers[i];
        if (is_wanted(net->stepper->name))
            net->offload = net->stepper->install(net, &view, why);
    }
    atomic_store_explicit(&net->view, view, memory_order_release);
    return net->offload != NULL || is_wanted("host");
}

void nicbarrier_offload_remove(nicbarrier_net_t *net)
{
    if (net->offload != NULL)
        net->stepper->remove(net->offload);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/** Advances the group in this process as far as possible, and sends messages that become due. */
static void advance(nicbarrier_net_t *net)
{
    const uint64_t out = nicbarrier_rule_advance(&net->rule);
    for (uint32_t k = 0; out >> k != 0; k++)
        if (out >> k & 1)
            nicbarrier_datagram_send(net, NICBARRIER_PACKET_EPOCH, k, &net->to[k]->at,
                                     nicbarrier_rule_word(&net->rule, k));
}

void nicbarrier_offload_fall_back(nicbarrier_net_t *net)
{
    net->stepper->stop(net->offload);
    (void)nicbarrier_net_state(net);
    atomic_store_explicit(&net->view, NULL, memory_order_release);
    nicbarrier_count(&nicbarrier_datagram_counters.stepper_fallbacks);
    advance(net);
}

void nicbarrier_offload_enter(nicbarrier_net_t *net, uint64_t epoch)
{
    if (nicbarrier_net_view(net) != NULL) {
        if (net->stepper->enter(net->offload, epoch))
            return;
        nicbarrier_offload_fall_back(net);
    }
    nicbarrier_rule_enter(&net->rule, epoch);
    advance(net);
}

void nicbarrier_offload_take(nicbarrier_net_t *net, uint32_t k, uint64_t word)
{
    if (nicbarrier_net_view(net) != NULL) {
        if (net->stepper->take(net->offload, k, word))
            return;
        nicbarrier_offload_fall_back(net);
    }
    (void)nicbarrier_rule_receive(&net->rule, k, word);
    advance(net);
}

void nicbarrier_offload_readdress(nicbarrier_net_t *net, uint32_t k)
{
    if (nicbarrier_net_view(net) != NULL && !net->stepper->readdress(net->offload, net, k))
        nicbarrier_offload_fall_back(net);
}
