/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Which schedule the transfers of this process have. */
#include "common/mover/transfer_internal.h"

/** Under the wire lock. All zero: each carrier's best, by the default numbers. */
static struct {
    onic_policy_t policy;
    bool given; /**< the numbers below are in place of the default ones */
    onic_links_t links;
} chosen;

static bool is_wish(const onic_policy_t *p)
{
    return p != NULL && (p->kind != ONIC_POLICY_AUTO || p->c0 > 0 || p->q > 0);
}

void onic_mover_set_schedule(const onic_policy_t *policy, const onic_links_t *links)
{
    onic_wire_lock();
    if (is_wish(policy)) {
        chosen.policy = *policy;
    }
    if (links != NULL) {
        chosen.links = *links;
        chosen.given = true;
    }
    onic_wire_unlock();
}

void onic_mover_forget_schedule_locked(void)
{
    chosen.policy = (onic_policy_t){.kind = ONIC_POLICY_AUTO};
    chosen.given = false;
}

onic_schedule_t onic_transfer_schedule_locked(const onic_carrier_t *carrier, uint64_t len,
                                              uint32_t unit, uint32_t room)
{
    const onic_links_t *links = chosen.given ? &chosen.links : &onic_links_default;
    onic_schedule_t s;
    onic_policy_schedule(&chosen.policy, carrier->best,
                         carrier == &onic_carrier_node ? &links->node : &links->net, len, unit,
                         room, &s);
    return s;
}
