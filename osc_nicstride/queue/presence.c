/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/queue/presence.h"

#include "common/support/clock.h"
#include "common/transport/put.h"
#include "common/transport/shm/node.h"
#include "osc_nicstride/window/module.h"
#include "osc_nicstride/window/state.h"

bool nicstride_can_wake(nicstride_peer_t *p)
{
    (void)nicstride_kind(p);
    return onic_peer_can_wake(p->peer);
}

bool nicstride_can_wake_all(nicstride_module_t *m)
{
    /* A parameter may make a process a node of its own. */
    bool can = m->node.n == m->size || !nicstride_component.params.node;

    onic_transport_lock();
    for (int i = 0; i < m->size && can; i++) {
        onic_peer_t *peer = nicstride_onic_peer_locked(m, i);

        can = i == m->rank || (peer != NULL && onic_peer_can_wake(peer));
    }
    onic_transport_unlock();
    return can;
}

/** True if no MPI thread of the peer answers now. If its sign `away` is set, its helper thread
 *  answers. */
static bool is_away(const nicstride_peer_t *p, uint64_t now)
{
    const onic_presence_t *presence = onic_peer_presence(p->peer);

    return onic_presence_unseen(presence, now) >= NICSTRIDE_WAKE_AWAY &&
           !onic_presence_is_away(presence);
}

void nicstride_wake(uint64_t *woken, nicstride_peer_t *p, uint64_t now)
{
    if ((*woken != 0 && now - *woken < NICSTRIDE_WAKE_PAUSE) || !is_away(p, now))
        return;
    *woken = now;
    onic_count(&nicstride_counters.wakeups, 1);
    onic_peer_wake(p->peer);
}

void nicstride_wake_waited(uint64_t *woken, nicstride_peer_t *p)
{
    if (p != NULL && nicstride_can_wake(p))
        nicstride_wake(woken, p, onic_now_nsec());
}

/* ---- presence of the target ------------------------------------------------------------------ */

void nicstride_look_up(nicstride_peer_t *p)
{
    onic_kind_t kind = ONIC_NET;

    if (p->local >= 0)
        kind = onic_distance(onic_peer_name(p->peer));
    onic_transport_lock();
    if (!__atomic_load_n(&p->observed.looked_up, __ATOMIC_RELAXED)) {
        (void)onic_peer_can_wake(p->peer);
        if (p->local < 0 && onic_peer_puts_by_rdma(p->peer))
            kind = ONIC_ADAPTER;
        p->observed.kind = kind;
        __atomic_store_n(&p->observed.looked_up, true, __ATOMIC_RELEASE);
    }
    onic_transport_unlock();
}

nicstride_presence_t nicstride_presence(nicstride_peer_t *p)
{
    const onic_presence_t *presence;
    uint64_t now;

    (void)nicstride_kind(p);
    presence = onic_peer_presence(p->peer);
    if (presence == NULL)
        return NICSTRIDE_PRESENT;
    if (onic_presence_is_away(presence))
        return NICSTRIDE_SERVED;
    now = onic_now_nsec();
    /* The clock is read once for an operation and its flush, as reading it takes as long as
     * everything else here. */
    __atomic_store_n(&p->observed.looked, now, __ATOMIC_RELAXED);
    /* A peer that has just answered is not looked at, which would cost both sides a cache miss. */
    if (now - __atomic_load_n(&p->observed.answered, __ATOMIC_RELAXED) < ONIC_PRESENCE_NSEC ||
        onic_presence_unseen(presence, now) < ONIC_PRESENCE_NSEC)
        return NICSTRIDE_PRESENT;
    return nicstride_can_wake(p) ? NICSTRIDE_SERVED : NICSTRIDE_ABSENT;
}

void nicstride_answered_locked(nicstride_peer_t *p)
{
    __atomic_store_n(&p->observed.answered, __atomic_load_n(&p->observed.looked, __ATOMIC_RELAXED),
                     __ATOMIC_RELAXED);
}
