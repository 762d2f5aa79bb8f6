/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A stepper that a test adds; see fake_kernel.h. */
#include "test/unit/fake_kernel.h"

#include <stdlib.h>

#include "coll_nicbarrier/engines/datagram/state.h"

fake_kernel_t fake_kernel;

typedef struct group {
    nicbarrier_bpf_page_t page;
    unsigned asked;
} group_t;

static bool fake_install(nicbarrier_net_t *net, nicbarrier_reason_t *why)
{
    group_t *g = fake_kernel.absent ? NULL : calloc(1, sizeof(*g));
    if (g == NULL) {
        nicbarrier_reason(why, "there is no such kernel");
        return false;
    }
    g->page.rule = net->rule;
    net->offload = g;
    atomic_store(&net->page, &g->page);
    return true;
}

static bool ends(group_t *g)
{
    return fake_kernel.ends_at != 0 && ++g->asked >= fake_kernel.ends_at;
}

static bool advance(nicbarrier_net_t *net)
{
    group_t *g = net->offload;
    nicbarrier_rule_t *r = &g->page.rule;
    const uint64_t out = nicbarrier_rule_advance(r);
    for (uint32_t k = 0; out >> k != 0; k++)
        if (out >> k & 1)
            nicbarrier_datagram_send(net, NICBARRIER_PACKET_EPOCH, k, nicbarrier_rule_word(r, k));
    __atomic_store_n(&g->page.word, r->completed | (r->failed ? NICBARRIER_WORD_FAILED : 0),
                     __ATOMIC_SEQ_CST);
    return true;
}

static bool fake_enter(nicbarrier_net_t *net, uint64_t epoch)
{
    group_t *g = net->offload;
    if (ends(g))
        return false;
    nicbarrier_rule_enter(&g->page.rule, epoch);
    return advance(net);
}

static bool fake_take(nicbarrier_net_t *net, uint32_t k, uint64_t word)
{
    group_t *g = net->offload;
    if (ends(g))
        return false;
    if (nicbarrier_rule_receive(&g->page.rule, k, word) == NICBARRIER_WORD_NEW)
        g->page.taken++;
    return advance(net);
}

static void fake_snapshot(nicbarrier_net_t *net)
{
    net->rule = ((group_t *)net->offload)->page.rule;
}

static void fake_stop(nicbarrier_net_t *net)
{
    (void)net;
}

static void fake_remove(nicbarrier_net_t *net)
{
    free(net->offload);
}

static const nicbarrier_stepper_t fake = {.name = "fake",
                                          .install = fake_install,
                                          .enter = fake_enter,
                                          .take = fake_take,
                                          .snapshot = fake_snapshot,
                                          .stop = fake_stop,
                                          .remove = fake_remove};

const nicbarrier_stepper_t *const nicbarrier_steppers[] = {&fake, &nicbarrier_stepper_bpf,
                                                           &nicbarrier_stepper_host, NULL};
