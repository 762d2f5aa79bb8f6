/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Engine datagram: which stepper a group has, and what it is told; see datagram.h. */
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

static void describe(const nicbarrier_net_t *net, const nicbarrier_rule_t *start,
                     nicbarrier_stepping_t *what)
{
    memset(what, 0, sizeof(*what));
    what->key = net->group.key;
    what->cookie = nicbarrier_datagram.cookie;
    what->drop = (uint32_t)nicbarrier_datagram_config.drop;
    what->start = start;
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

static bool install(nicbarrier_net_t *net, const nicbarrier_stepper_t *stepper,
                    const nicbarrier_stepping_t *what, nicbarrier_reason_t *why)
{
    nicbarrier_view_t *view = NULL;
    nicbarrier_stepped_t *stepped = stepper->install(what, &view, why);
    if (stepped == NULL)
        return false;
    net->stepper = stepper;
    net->stepped = stepped;
    atomic_store_explicit(&net->view, view, memory_order_release);
    return true;
}

/* ---- the host's in its place ----------------------------------------------------------------- */

void nicbarrier_stepping_fall_back(nicbarrier_net_t *net)
{
    nicbarrier_stepping_t what;
    nicbarrier_rule_t room;
    nicbarrier_reason_t why;
    const nicbarrier_stepper_t *stepper = net->stepper;
    nicbarrier_stepped_t *stepped = net->stepped;
    stepper->stop(stepped);
    describe(net, stepper->snapshot(stepped, &room), &what);
    if (!install(net, &nicbarrier_stepper_host, &what, &why)) {
        /* Memory is exhausted. Partners get answers from the snapshot, but no more barriers. */
        atomic_store_explicit(&net->failed, true, memory_order_release);
        return;
    }
    net->stopped_stepper = stepper;
    net->stopped = stepped;
    nicbarrier_count(&nicbarrier_datagram_counters.stepper_fallbacks);
}

/* ---- calls ----------------------------------------------------------------------------------- */

void nicbarrier_stepping_enter(nicbarrier_net_t *net, uint64_t epoch)
{
    if (!net->stepper->enter(net->stepped, epoch)) {
        nicbarrier_stepping_fall_back(net);
        (void)net->stepper->enter(net->stepped, epoch);
    }
}

void nicbarrier_stepping_take(nicbarrier_net_t *net, uint32_t k, uint64_t word)
{
    if (!net->stepper->take(net->stepped, k, word)) {
        nicbarrier_stepping_fall_back(net);
        (void)net->stepper->take(net->stepped, k, word);
    }
}

void nicbarrier_stepping_readdress(nicbarrier_net_t *net, uint32_t k)
{
    const nicbarrier_address_t *to = net->to[k] != NULL ? &net->to[k]->at : NULL;
    const nicbarrier_address_t *from = net->from[k] != NULL ? &net->from[k]->at : NULL;
    if (!net->stepper->readdress(net->stepped, k, to, from))
        nicbarrier_stepping_fall_back(net);
}

/* ---- the first and the last ------------------------------------------------------------------ */

static bool is_wanted(const nicbarrier_stepper_t *stepper)
{
    const char *name = nicbarrier_datagram_config.stepper;
    return name == NULL || strcmp(name, "auto") == 0 || strcmp(name, stepper->name) == 0;
}

bool nicbarrier_stepping_install(nicbarrier_net_t *net, nicbarrier_reason_t *why)
{
    nicbarrier_stepping_t what;
    nicbarrier_rule_t start;
    uint64_t sends, waits;
    nicbarrier_schedule_bits(net->step, net->nsteps, &sends, &waits);
    nicbarrier_rule_init(&start, (uint32_t)net->nsteps, sends, waits);
    nicbarrier_reason(why, "this build has no stepper of that name");
    describe(net, &start, &what);
    for (int i = 0; nicbarrier_steppers[i] != NULL; i++)
        if (is_wanted(nicbarrier_steppers[i]) && install(net, nicbarrier_steppers[i], &what, why))
            return true;
    return false;
}

void nicbarrier_stepping_remove(nicbarrier_net_t *net)
{
    if (net->stopped != NULL)
        net->stopped_stepper->remove(net->stopped);
    if (net->stepped != NULL)
        net->stepper->remove(net->stepped);
}
