/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The lock queues of targets on this node, in memory that its processes share. */

#include "osc_nicstride/queue/flow.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/queue/presence.h"
#include "osc_nicstride/sync/lock_queue.h"
#include "osc_nicstride/window/state.h"
#include "osc_nicstride/window/control.h"

#include "opal/runtime/opal_progress.h"

/** Changes the queue of this process's lock and, on rank 0, the window's. */
static void change_own_locked(nicstride_module_t *m, nicstride_change_t change, int origin)
{
    (void)nicstride_change_queue(m, m->node.me, change, (uint32_t)origin, true);
    if (m->rank == 0)
        (void)nicstride_change_queue(m, nicstride_ctl_of_window(m), change, (uint32_t)origin, true);
}

/** Asks for a lock for a process. If it is not free, but processes stay in it, they are asked to
 *  leave; with a look for them, MPI_Win_lock of a target would take twice as many instructions.
 *  `*granted_p`: it was free; otherwise the process will be told. */
static inline int request(nicstride_module_t *m, int local, int origin, unsigned what,
                          bool *granted_p, bool locked)
{
    onic_owned_lock_t *lock = &nicstride_ctl(m, local)->queue_lock;
    const uint32_t type = what & NICSTRIDE_LOCK_TYPE;
    const int rc = nicstride_ctl_lock(m, lock);

    if (rc != OMPI_SUCCESS)
        return rc;
    *granted_p = nicstride_lockq_request(nicstride_ctl_lockq(m, local), (uint32_t)origin, type,
                                         (what & NICSTRIDE_LOCK_HOLDS) != 0);
    onic_owned_release(lock);
    if (*granted_p || !nicstride_lock_is_of_window(type))
        return OMPI_SUCCESS;
    return nicstride_change_queue(m, local, NICSTRIDE_LOCK_UNCHANGED, 0, locked);
}

/** True if a process that asks for a lock by message is lost. Connects back to it, so that its loss
 *  is noticed while it waits: the request of a process that was lost before would never leave the
 *  queue. */
static bool asker_is_gone(nicstride_peer_t *p)
{
    nicstride_connect_locked(p);
    return onic_peer_is_lost(p->peer);
}

bool nicstride_lock_message_locked(nicstride_peer_t *p, const nicstride_msg_t *msg)
{
    nicstride_module_t *m = p->module;
    const uint32_t type = msg->op & NICSTRIDE_LOCK_TYPE;
    const bool of_window = nicstride_lock_is_of_window(type);
    const int local = of_window ? nicstride_ctl_of_window(m) : m->node.me;
    bool granted = false;

    /* Only the node of rank 0 has the window's queue. */
    if (asker_is_gone(p) || (of_window && m->rank != 0))
        return false;
    if (nicstride_is_broken(m) ||
        request(m, local, p->rank, msg->op, &granted, true) != OMPI_SUCCESS)
        nicstride_send_grant_locked(m, local, (uint32_t)p->rank, 0, ONIC_ERR_PROC_FAILED);
    else if (granted)
        nicstride_send_grant_locked(m, local, (uint32_t)p->rank,
                                    type | (msg->len > 0 ? NICSTRIDE_LOCK_DONE : 0), 0);
    return granted;
}

void nicstride_unlock_message_locked(nicstride_peer_t *p)
{
    nicstride_module_t *m = p->module;

    (void)nicstride_change_queue(m, m->node.me, NICSTRIDE_LOCK_RELEASED, (uint32_t)p->rank, true);
}

/** Takes dead processes of the node out of the queue of a target. */
static int remove_dead(nicstride_module_t *m, int local)
{
    int rc = OMPI_SUCCESS;

    for (int i = 0; i < m->node.n && rc == OMPI_SUCCESS && !nicstride_is_broken(m); i++) {
        if (onic_peer_has_died(m->near[i]))
            rc = nicstride_change_queue(m, local, NICSTRIDE_LOCK_LOST, (uint32_t)m->node.ranks[i],
                                        false);
    }
    return rc;
}

/** True if this process knows that it has the lock of that queue. */
static bool is_granted(const nicstride_module_t *m, int local)
{
    return local == nicstride_ctl_of_window(m)
               ? nicstride_stay_is_used(&nicstride_ctl(m, m->node.me)->stay)
               : atomic_load_explicit(&nicstride_pair(m, local, m->node.me)->granted,
                                      memory_order_acquire) != 0;
}

/** Waits until this process has the lock. An error if it will never get it; its request was then
 *  withdrawn. */
static int await_grant(nicstride_peer_t *p, int local)
{
    nicstride_module_t *m = p->module;
    unsigned losses = 0;
    uint64_t woken = 0;
    int rc = OMPI_SUCCESS;

    while (rc == OMPI_SUCCESS && !is_granted(m, local)) {
        if (losses != onic_transport_losses()) {
            losses = onic_transport_losses();
            rc = remove_dead(m, local);
        }
        if (nicstride_is_broken(m) || onic_peer_has_died(p->peer))
            rc = ONIC_ERR_PROC_FAILED;
        /* The holder may be on another node, and give the lock back by a message. */
        if (p->rank != m->rank && m->node.n < m->size)
            nicstride_wake_waited(&woken, p);
        opal_progress();
    }
    /* The lock is not wanted any more; it may just have been granted. */
    if (rc != OMPI_SUCCESS)
        (void)nicstride_change_queue(m, local, NICSTRIDE_LOCK_LOST, (uint32_t)m->rank, false);
    return rc;
}

int nicstride_take_on_node(nicstride_peer_t *p, int local, unsigned what)
{
    nicstride_module_t *m = p->module;
    const bool of_window = local == nicstride_ctl_of_window(m);
    bool granted = false;
    int rc;

    if (nicstride_is_broken(m) || onic_peer_has_died(p->peer))
        return ONIC_ERR_PROC_FAILED;
    rc = request(m, local, m->rank, what, &granted, false);
    if (rc != OMPI_SUCCESS)
        return rc;
    if (granted && of_window)
        nicstride_stay_granted(&nicstride_ctl(m, m->node.me)->stay, what & NICSTRIDE_LOCK_TYPE);
    if (granted)
        return OMPI_SUCCESS;
    rc = await_grant(p, local);
    if (!of_window)
        atomic_store_explicit(&nicstride_pair(m, local, m->node.me)->granted, 0,
                              memory_order_relaxed);
    return rc;
}

int nicstride_give_back_on_node(nicstride_module_t *m, int local)
{
    return nicstride_change_queue(m, local, NICSTRIDE_LOCK_RELEASED, (uint32_t)m->rank, false);
}

/* ---- lost peers ------------------------------------------------------------------------------ */

/** True if something is under way to the peer. Other peers are left alone: they may have left in
 *  good order. */
static bool is_awaited(nicstride_peer_t *p)
{
    nicstride_look_locked(p);
    return !TAILQ_EMPTY(&p->queue.live) || !nicstride_tx_idle(&p->flow.tx);
}

/** Takes a lost process out of the queues of this process's lock and, on rank 0, of the window's. A
 *  process of this node that died may have held locks of any other one: then the window has
 *  failed. */
static void end_locks_of(nicstride_module_t *m, int rank)
{
    const int index = onic_node_index(&m->node, rank);

    for (int i = 0; i < m->node.n && index >= 0; i++)
        if (nicstride_ctl_has_orphan(m, i))
            nicstride_break(m, index);
    change_own_locked(m, NICSTRIDE_LOCK_LOST, rank);
}

/** Ends what was awaited from lost peers. Returns the number of these peers. */
static int end_lost_of(nicstride_module_t *m)
{
    int n = 0;

    for (int i = 0; i < m->size; i++) {
        nicstride_peer_t *p = m->peer[i];
        const int local = onic_node_index(&m->node, i);
        const bool died = local >= 0 && onic_peer_has_died(m->near[local]);

        if (died || (p != NULL && p->local < 0 && onic_peer_is_lost(p->peer)))
            end_locks_of(m, i);
        /* Rank 0 passes this process's part in the window's lock on to others. */
        if (i == 0 && local < 0 && p != NULL && onic_peer_is_lost(p->peer))
            (void)nicstride_stay_leave(&nicstride_ctl(m, m->node.me)->stay);
        if (p == NULL || !is_awaited(p) || !onic_peer_lost(p->peer))
            continue;
        nicstride_peer_end_locked(p);
        n++;
    }
    /* Processes of other nodes that wait for this process's lock get an error. */
    if (nicstride_is_broken(m))
        change_own_locked(m, NICSTRIDE_LOCK_UNCHANGED, 0);
    return n;
}

int nicstride_end_lost_locked(void)
{
    static unsigned known;
    const unsigned losses = onic_transport_losses();
    opal_hash_table_t *windows = &nicstride_component.windows;
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
