/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine datagram: who takes the steps of a group, a stepper or this process; see
 * datagram.h.
 */
#include <string.h>

#include "coll_nicbarrier/engines/datagram/datagram.h"

/* ---- what is installed ----------------------------------------------------------------------- */

static void encode(const nicbarrier_net_t *net, int k, bool mine, unsigned char *bytes)
{
    const nicbarrier_step_t *s = &net->step[k];
    nicbarrier_packet_t p = {.kind = NICBARRIER_PACKET_EPOCH, .key = net->group.key};
    if (mine) {
        p.at = s->send_at;
        p.from_at = (uint8_t)k;
        p.sender = (uint32_t)net->group.me;
        p.cookie = net->to[k]->cookie;
    } else {
        p.at = (uint8_t)k;
        p.from_at = s->wait_at;
        p.sender = (uint32_t)s->wait_for;
        p.cookie = nicbarrier_datagram.cookie;
    }
    nicbarrier_packet_encode(&p, bytes);
}

static void describe(const nicbarrier_net_t *net, nicbarrier_stepping_t *what)
{
    memset(what, 0, sizeof(*what));
    what->key = net->group.key;
    what->cookie = nicbarrier_datagram.cookie;
    what->drop = (uint32_t)nicbarrier_datagram_config.drop;
    what->start = &net->rule;
    for (int k = 0; k < net->nsteps; k++) {
        if (net->to[k] != NULL) {
            what->to[k] = &net->to[k]->at;
            encode(net, k, true, what->packet[k]);
        }
        if (net->from[k] != NULL) {
            what->from[k] = &net->from[k]->at;
            encode(net, k, false, what->expected[k]);
        }
    }
}

static bool is_wanted(const char *stepper)
{
    const char *name = nicbarrier_datagram_config.stepper;
    return name == NULL || strcmp(name, "auto") == 0 || strcmp(name, stepper) == 0;
}

bool nicbarrier_stepping_install(nicbarrier_net_t *net, nicbarrier_reason_t *why)
{
    nicbarrier_stepping_t what;
    nicbarrier_view_t *view = NULL;
    uint64_t sends, waits;
    nicbarrier_schedule_bits(net->step, net->nsteps, &sends, &waits);
    nicbarrier_rule_init(&net->rule, (uint32_t)net->nsteps, sends, waits);
    nicbarrier_reason(why, "this build has no stepper of that name");
    describe(net, &what);
    for (int i = 0; nicbarrier_steppers[i] != NULL && net->stepped == NULL; i++) {
        net->stepper = nicbarrier_steppers[i];
        if (is_wanted(net->stepper->name))
            net->stepped = net->stepper->install(&what, &view, why);
    }
    atomic_store_explicit(&net->view, view, memory_order_release);
    return net->stepped != NULL || is_wanted("host");
}

void nicbarrier_stepping_remove(nicbarrier_net_t *net)
{
    if (net->stepped != NULL)
        net->stepper->remove(net->stepped);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/** Of this process: goes as far as it gets, and sends what becomes due. */
static void advance(nicbarrier_net_t *net)
{
    const uint64_t out = nicbarrier_rule_advance(&net->rule);
    for (uint32_t k = 0; out >> k != 0; k++)
        if (out >> k & 1)
            nicbarrier_datagram_send(net, NICBARRIER_PACKET_EPOCH, k, &net->to[k]->at,
                                     nicbarrier_rule_word(&net->rule, k));
}

void nicbarrier_stepping_fall_back(nicbarrier_net_t *net)
{
    net->stepper->stop(net->stepped);
    (void)nicbarrier_net_state(net);
    atomic_store_explicit(&net->view, NULL, memory_order_release);
    nicbarrier_count(&nicbarrier_datagram_counters.stepper_fallbacks);
    advance(net);
}

void nicbarrier_stepping_enter(nicbarrier_net_t *net, uint64_t epoch)
{
    if (nicbarrier_net_view(net) != NULL) {
        if (net->stepper->enter(net->stepped, epoch))
            return;
        nicbarrier_stepping_fall_back(net);
    }
    nicbarrier_rule_enter(&net->rule, epoch);
    advance(net);
}

void nicbarrier_stepping_take(nicbarrier_net_t *net, uint32_t k, uint64_t word)
{
    if (nicbarrier_net_view(net) != NULL) {
        if (net->stepper->take(net->stepped, k, word))
            return;
        nicbarrier_stepping_fall_back(net);
    }
    (void)nicbarrier_rule_receive(&net->rule, k, word);
    advance(net);
}

void nicbarrier_stepping_readdress(nicbarrier_net_t *net, uint32_t k)
{
    const nicbarrier_address_t *to = net->to[k] != NULL ? &net->to[k]->at : NULL;
    const nicbarrier_address_t *from = net->from[k] != NULL ? &net->from[k]->at : NULL;
    if (nicbarrier_net_view(net) != NULL && !net->stepper->readdress(net->stepped, k, to, from))
        nicbarrier_stepping_fall_back(net);
}
