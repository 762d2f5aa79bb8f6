/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine datagram: the stepper of a group; see stepper.h. */
#include <string.h>

#include "coll_nicbarrier/engines/datagram/state.h"

bool nicbarrier_steps_begin(nicbarrier_net_t *net, nicbarrier_reason_t *why)
{
    const int wanted = nicbarrier_datagram_config.stepper;
    for (int i = 0; nicbarrier_steppers[i] != NULL; i++) {
        net->stepper = nicbarrier_steppers[i];
        if ((wanted == NICBARRIER_AUTO || wanted == i + 1) && net->stepper->install(net, why))
            return true;
    }
    return false;
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
    net->stepper->snapshot(net);
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
    net->stepper->stop(net);
    (void)nicbarrier_net_state(net);
    atomic_store_explicit(&net->page, NULL, memory_order_release);
    onic_count(&nicbarrier_datagram_counters.stepper_fallbacks, 1);
}

static const nicbarrier_stepper_t *row(const nicbarrier_net_t *net)
{
    return nicbarrier_net_page(net) != NULL ? net->stepper : &nicbarrier_stepper_host;
}

void nicbarrier_steps_enter(nicbarrier_net_t *net, uint64_t epoch)
{
    if (!row(net)->enter(net, epoch)) {
        fall_back(net);
        (void)nicbarrier_stepper_host.enter(net, epoch);
    }
}

void nicbarrier_steps_take(nicbarrier_net_t *net, uint32_t k, uint64_t word)
{
    if (!row(net)->take(net, k, word)) {
        fall_back(net);
        (void)nicbarrier_stepper_host.take(net, k, word);
    }
}
