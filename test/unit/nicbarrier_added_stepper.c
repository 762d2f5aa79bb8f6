/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A stepper that a test adds; see nicbarrier_added_stepper.h. */
#include "test/unit/nicbarrier_added_stepper.h"

#include <stdlib.h>

#include "coll_nicbarrier/engines/datagram/state.h"

added_stepper_t added_stepper;

struct nicbarrier_offload {
    nicbarrier_rule_t rule;
    nicbarrier_view_t view;
    unsigned asked;
};

static bool install(nicbarrier_net_t *net, nicbarrier_reason_t *why)
{
    nicbarrier_offload_t *s = added_stepper.absent ? NULL : calloc(1, sizeof(*s));
    if (s == NULL) {
        nicbarrier_reason(why, "there is no such stepper");
        return false;
    }
    s->rule = net->rule;
    net->offload = s;
    atomic_store(&net->view, &s->view);
    return true;
}

static bool ends(nicbarrier_offload_t *s)
{
    return added_stepper.ends_at != 0 && ++s->asked >= added_stepper.ends_at;
}

static bool advance(nicbarrier_net_t *net)
{
    nicbarrier_offload_t *s = net->offload;
    const uint64_t out = nicbarrier_rule_advance(&s->rule);
    for (uint32_t k = 0; out >> k != 0; k++)
        if (out >> k & 1)
            nicbarrier_datagram_send(net, NICBARRIER_PACKET_EPOCH, k,
                                     nicbarrier_rule_word(&s->rule, k));
    atomic_store(&s->view.word, s->rule.completed | (s->rule.failed ? NICBARRIER_WORD_FAILED : 0));
    return true;
}

static bool enter(nicbarrier_net_t *net, uint64_t epoch)
{
    if (ends(net->offload))
        return false;
    nicbarrier_rule_enter(&net->offload->rule, epoch);
    return advance(net);
}

static bool take(nicbarrier_net_t *net, uint32_t k, uint64_t word)
{
    if (ends(net->offload))
        return false;
    if (nicbarrier_rule_receive(&net->offload->rule, k, word) == NICBARRIER_WORD_NEW)
        atomic_fetch_add(&net->offload->view.taken, 1);
    return advance(net);
}

static void snapshot(nicbarrier_net_t *net)
{
    net->rule = net->offload->rule;
}

static void stop(nicbarrier_net_t *net)
{
    (void)net;
}

static void release(nicbarrier_net_t *net)
{
    free(net->offload);
}

static const nicbarrier_stepper_t added = {.name = "added",
                                           .install = install,
                                           .enter = enter,
                                           .take = take,
                                           .snapshot = snapshot,
                                           .stop = stop,
                                           .remove = release};

const nicbarrier_stepper_t *const nicbarrier_steppers[] = {&added, &nicbarrier_stepper_bpf,
                                                           &nicbarrier_stepper_host, NULL};
