/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Changes of lock queues; see lock_queue.h.
 *
 *  Grants to processes of other nodes are messages. They are collected under the queue's lock and
 *  sent when that is given back: a thread with the wire lock may be trying for the queue, and a
 *  send may have to make a connection first. */
#include "osc_nicstride/sync/lock_queue.h"

#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/window/control.h"

/** Ranks on other nodes that are to be sent a grant. */
typedef struct grants {
    uint32_t rank[64];
    unsigned n;
} grants_t;

#define GRANTS_MAX (sizeof(((grants_t *)0)->rank) / sizeof(uint32_t))

/** Hands the lock to all that can have it now: to processes of the node at once, the others are
 *  collected. The queue is locked. */
static void collect_grants(nicstride_module_t *m, int local, grants_t *remote)
{
    nicstride_lockq_t *q = nicstride_ctl_lockq(m, local);
    uint32_t origin;

    remote->n = 0;
    while (remote->n < GRANTS_MAX && nicstride_lockq_next_grant(q, &origin)) {
        int index = onic_node_index(&m->node, origin);

        if (index >= 0)
            atomic_store_explicit(&nicstride_ctl_granted(m, local)[index], 1, memory_order_release);
        else
            remote->rank[remote->n++] = origin;
    }
}

void nicstride_send_grant_locked(nicstride_module_t *m, int local, uint32_t origin, int status)
{
    nicstride_peer_t *p = nicstride_peer_locked(m, (int)origin);

    if (p == NULL)
        return;
    nicstride_msg_t msg = nicstride_note(p, NICSTRIDE_MSG_GRANT, 0, (uint64_t)m->node.ranks[local]);
    msg.status = status;
    nicstride_send_header_locked(p, &msg);
}

/** Takes all processes of other nodes out of the line of a window that has failed. */
static void collect_refused(nicstride_module_t *m, int local, grants_t *remote)
{
    nicstride_lockq_t *q = nicstride_ctl_lockq(m, local);

    remote->n = 0;
    for (uint32_t origin = 0; origin < (uint32_t)m->size && remote->n < GRANTS_MAX; origin++)
        if (onic_node_index(&m->node, origin) < 0 && !nicstride_lockq_holds(q, origin) &&
            nicstride_lockq_forget(q, origin))
            remote->rank[remote->n++] = origin;
}

/** Takes the lock of a queue. A thread with the wire lock only tries: where that is
 * NICSTRIDE_QUEUE_BUSY for ever there is no use in trying again. */
static int take_queue(nicstride_module_t *m, onic_owned_lock_t *lock, bool wire_locked)
{
    if (!wire_locked)
        return nicstride_ctl_lock(m, lock);
    if (nicstride_ctl_try(m, lock))
        return OMPI_SUCCESS;
    return nicstride_ctl_is_orphaned(m, lock) ? ONIC_ERR_PROC_FAILED : NICSTRIDE_QUEUE_BUSY;
}

int nicstride_change_queue(nicstride_module_t *m, int local, nicstride_change_t change,
                           uint32_t origin, bool wire_locked)
{
    onic_owned_lock_t *lock = &nicstride_ctl(m, local)->queue_lock;
    bool changed = change == NULL;
    grants_t remote;

    do {
        const bool broken = nicstride_is_broken(m);
        const int rc = take_queue(m, lock, wire_locked);

        if (rc != OMPI_SUCCESS)
            return rc;
        if (!changed)
            (void)change(m, local, origin);
        changed = true;
        if (broken)
            collect_refused(m, local, &remote);
        else
            collect_grants(m, local, &remote);
        nicstride_ctl_unlock(lock);
        if (remote.n > 0 && !wire_locked)
            onic_wire_lock();
        for (unsigned i = 0; i < remote.n; i++)
            nicstride_send_grant_locked(m, local, remote.rank[i],
                                        broken ? ONIC_ERR_PROC_FAILED : 0);
        if (remote.n > 0 && !wire_locked)
            onic_wire_unlock();
    } while (remote.n == GRANTS_MAX);
    return OMPI_SUCCESS;
}

bool nicstride_change_mine_locked(nicstride_module_t *m, nicstride_change_t change, uint32_t origin)
{
    return nicstride_change_queue(m, m->node.me, change, origin, true) != NICSTRIDE_QUEUE_BUSY;
}
