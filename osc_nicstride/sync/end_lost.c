/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Ends what waits for lost peers; see end_lost.h. */
#include "osc_nicstride/queue/flow.h"

#include "osc_nicstride/window/component.h"
#include "osc_nicstride/window/control.h"
#include "osc_nicstride/sync/lock_queue.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/sync/end_lost.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/queue/reply.h"

/** Peers to whom nothing is under way are left alone: they may have left in good order. */
static bool is_awaited(nicstride_peer_t *p)
{
    nicstride_look_locked(p);
    return p->queue.live != NULL || !nicstride_tx_idle(&p->flow.tx);
}

/** Takes a lost process out of the queue of my lock. Who has died may have had locks of any process
 *  of the node. False where that must be tried again. */
static bool end_locks_of(nicstride_module_t *m, int rank)
{
    const int index = onic_node_index(&m->node, rank);

    if (index < 0)
        return nicstride_lock_forget_locked(m, rank);
    for (int i = 0; i < m->node.n; i++) {
        nicstride_ctl_t *ctl = nicstride_ctl(m, i);

        if (nicstride_ctl_is_orphaned(m, &ctl->acc_lock) ||
            nicstride_ctl_is_orphaned(m, &ctl->queue_lock))
            nicstride_break(m, NICSTRIDE_BROKEN_UPDATE, index);
    }
    return nicstride_lock_forget_locked(m, rank);
}

/** How many peers something was waited for from; negative where all must be done again: also for a
 *  window that is being made, whose tables are not all there. */
static int end_lost_of(nicstride_module_t *m)
{
    bool again = false;
    int n = 0;

    if (!m->refers)
        return -1;
    for (int i = 0; i < m->size; i++) {
        nicstride_peer_t *p = m->peer[i];
        const int local = onic_node_index(&m->node, i);
        const bool died = local >= 0 && onic_peer_has_died(m->near[local]);

        if (died || (p != NULL && p->local < 0 && onic_peer_is_lost(p->wire)))
            again = !end_locks_of(m, i) || again;
        if (p == NULL || !is_awaited(p) || !onic_peer_lost(p->wire))
            continue;
        nicstride_peer_end_locked(p);
        n++;
    }
    if (nicstride_is_broken(m))
        again = !nicstride_lock_refuse_locked(m) || again;
    return again ? -1 : n;
}

int nicstride_end_lost_locked(void)
{
    static unsigned known;
    const unsigned losses = onic_wire_losses();
    opal_hash_table_t *windows = &nicstride_component.windows;
    bool again = false;
    void *m, *node;
    uint32_t name;
    int n = 0;

    if (losses == known)
        return 0;
    for (int rc = opal_hash_table_get_first_key_uint32(windows, &name, &m, &node);
         rc == OPAL_SUCCESS;
         rc = opal_hash_table_get_next_key_uint32(windows, &name, &m, node, &node)) {
        const int ended = end_lost_of(m);

        again = again || ended < 0;
        n += ended > 0 ? ended : 0;
    }
    if (!again) {
        known = losses;
        return n;
    }
    onic_wire_defer(ONIC_AM_OSC);
    return -1;
}
