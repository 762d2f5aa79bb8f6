/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Connections from the beginning; see connect.h. */
#include <stddef.h>

#include "common/mover/mover.h"

#include "osc_nicstride/channel/connect.h"
#include "osc_nicstride/channel/lost.h"
#include "osc_nicstride/channel/wait.h"
#include "osc_nicstride/channel/send.h"

/** Processes before and behind this one on its node that it is connected with from the beginning.
 */
#define NEIGHBOURS 2

/** Messages that pass through all places of a process's queue in shared memory, as many as UCX
 * makes by default. */
#define QUEUE 256

static void greeted_cb(void *arg, int status)
{
    nicstride_peer_t *p = arg;

    (void)status;
    p->posting--;
}

/** Touches the pages of the queues between us, and what is made with the first long messages. */
static void greet_locked(nicstride_module_t *m, nicstride_peer_t *p, int times)
{
    static const unsigned char nothing[8192];
    const size_t frag = nicstride_frag_max_locked(p);
    onic_payload_t payload = {.base = nothing};
    nicstride_msg_t msg;

    nicstride_msg_init(&msg, NICSTRIDE_MSG_NOTHING, m->info[p->rank].win, (uint32_t)m->rank);
    msg.len = payload.len =
        frag < sizeof(nothing) ? frag - sizeof(msg) : sizeof(nothing) - sizeof(msg);
    for (; times > 0 && !p->failed; times--) {
        const int rc =
            onic_peer_send(p->wire, ONIC_AM_OSC, &msg, sizeof(msg), &payload, 0, greeted_cb, p);

        if (rc == 0)
            p->posting++;
        if (rc < 0)
            __atomic_store_n(&p->failed, true, __ATOMIC_RELAXED);
    }
}

/** True where there was no connection yet. */
static bool connect_locked(nicstride_module_t *m, int rank, int times)
{
    nicstride_peer_t *p = onic_peer_connect(m->wire[rank]) ? nicstride_peer_locked(m, rank) : NULL;

    if (p != NULL)
        greet_locked(m, p, times);
    return p != NULL;
}

static bool are_greeted(void *arg)
{
    const nicstride_module_t *m = arg;
    bool greeted = true;

    for (int i = 0; i < m->size && greeted; i++) {
        nicstride_peer_t *p = m->peer[i];

        greeted = p == NULL || p->posting == 0 || nicstride_peer_failed_locked(p);
    }
    return greeted;
}

void nicstride_connect_neighbours(nicstride_module_t *m)
{
    const int n = m->node.n, most = n - 1 < 2 * NEIGHBOURS ? n - 1 : 2 * NEIGHBOURS;
    bool greeted = false;

    if (!m->by_message)
        return;
    onic_wire_lock();
    for (int i = 1; i <= most; i++) {
        const int away = i % 2 ? (i + 1) / 2 : n - i / 2;
        const int rank = m->node.ranks[(m->node.me + away) % n];

        greeted |= connect_locked(m, rank, QUEUE / most);
        (void)onic_mover_reaches_locked(m->wire[rank]);
    }
    /* Over a network, those that every halo in one dimension needs. */
    greeted |= connect_locked(m, (m->rank + 1) % m->size, 1);
    greeted |= connect_locked(m, (m->rank + m->size - 1) % m->size, 1);
    onic_wire_unlock();
    if (greeted)
        nicstride_wait_polling(are_greeted, m);
}
