/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Lost connections; see lost.h. */
#include "osc_nicstride/lost.h"

#include "osc_nicstride/component.h"
#include "osc_nicstride/lock.h"
#include "osc_nicstride/outbox.h"
#include "osc_nicstride/stream.h"

bool nicstride_peer_failed_locked(nicstride_peer_t *p)
{
    if (!p->failed && onic_peer_lost(p->wire))
        __atomic_store_n(&p->failed, true, __ATOMIC_RELAXED);
    return p->failed;
}

/** Peers to whom nothing is under way are left alone: they may have left in good order. */
static bool is_awaited(nicstride_peer_t *p)
{
    nicstride_look_locked(p);
    return p->live != NULL || !nicstride_tx_idle(&p->tx);
}

static int end_lost_of(nicstride_module_t *m)
{
    int n = 0;

    for (int i = 0; i < m->size; i++) {
        nicstride_peer_t *p = m->peer[i];

        if (p != NULL && p->local < 0 && onic_peer_is_lost(p->wire))
            nicstride_lock_forget_locked(m, p);
        if (p == NULL || !is_awaited(p) || !onic_peer_lost(p->wire))
            continue;
        __atomic_store_n(&p->failed, true, __ATOMIC_RELAXED);
        nicstride_outbox_drop_locked(p);
        nicstride_ops_fail_locked(p);
        n++;
    }
    return n;
}

int nicstride_end_lost_locked(void)
{
    static unsigned known;
    const unsigned losses = onic_wire_losses();
    opal_hash_table_t *windows = &mca_osc_nicstride_component.windows;
    void *m, *node;
    uint32_t name;
    int n = 0;

    if (losses == known)
        return 0;
    known = losses;
    for (int rc = opal_hash_table_get_first_key_uint32(windows, &name, &m, &node);
         rc == OPAL_SUCCESS;
         rc = opal_hash_table_get_next_key_uint32(windows, &name, &m, node, &node))
        n += end_lost_of(m);
    return n;
}
