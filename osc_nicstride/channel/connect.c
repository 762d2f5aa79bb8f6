/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Connections from the beginning; see connect.h. */
#include "osc_nicstride/channel/connect.h"

#include "common/mover/mover.h"

/** Processes before and behind this one on its node that it is connected with from the beginning.
 */
#define NEIGHBOURS 2

void nicstride_connect_neighbours(nicstride_module_t *m)
{
    const int n = m->node.n, most = n - 1 < 2 * NEIGHBOURS ? n - 1 : 2 * NEIGHBOURS;

    if (!m->by_message)
        return;
    onic_wire_lock();
    for (int i = 1; i <= most; i++) {
        const int away = i % 2 ? (i + 1) / 2 : n - i / 2;
        onic_peer_t *near = m->near[(m->node.me + away) % n];

        onic_peer_connect(near, ONIC_AM_OSC);
        (void)onic_mover_reaches_locked(near);
    }
    /* Over a network, those that every halo in one dimension needs. */
    for (int i = 0; i < 2; i++) {
        onic_peer_t *next =
            onic_peer_named(onic_rank_name(m->comm, (m->rank + (i ? m->size - 1 : 1)) % m->size));

        if (next != NULL)
            onic_peer_connect(next, ONIC_AM_OSC);
    }
    onic_wire_unlock();
}
