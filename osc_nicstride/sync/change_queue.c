/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Changes of lock queues; see lock_queue.h.
 *
 *  Messages that tell processes of other nodes are collected while the queue's lock is held, and
 *  sent after it is released: a thread with the transport lock may be trying to get the queue's
 *  lock, and a send may first have to make a connection. */
#include "osc_nicstride/sync/lock_queue.h"

#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/window/control.h"

/** Messages to be sent to ranks on other nodes. */
typedef struct told {
    struct {
        uint32_t rank;
        /** Of the lock that it has got; 0: it is asked to leave, or will get none. */
        uint32_t type;
        int status; /**< 0, or why it will not get the lock */
    } note[64];
    unsigned n;
} told_t;

#define TOLD_MAX (sizeof(((told_t *)0)->note) / sizeof(((told_t *)0)->note[0]))

static void note(told_t *told, uint32_t rank, uint32_t type, int status)
{
    told->note[told->n].rank = rank;
    told->note[told->n].type = type;
    told->note[told->n++].status = status;
}

static bool is_of_window(const nicstride_module_t *m, int local)
{
    return local == nicstride_ctl_of_window(m);
}

/** Tells the origin that it has the lock, by a store if it is on this node. The queue's lock is
 *  held. */
static void tell(nicstride_module_t *m, int local, uint32_t origin, told_t *remote)
{
    const int index = onic_node_index(&m->node, origin);
    const uint32_t type = nicstride_ctl_lockq(m, local)->type;

    if (index < 0)
        note(remote, origin, type, 0);
    else if (is_of_window(m, local))
        nicstride_stay_granted(&nicstride_ctl(m, index)->stay, type);
    else
        atomic_store_explicit(&nicstride_ctl_granted(m, local)[index], 1, memory_order_release);
}

/** Asks processes that stay in the window's lock to leave if somebody waits. True if one has left.
 *  The queue's lock is held. */
static bool clear(nicstride_module_t *m, int local, told_t *remote)
{
    nicstride_lockq_t *q = nicstride_ctl_lockq(m, local);
    bool left = false;
    uint32_t origin;

    while (remote->n < TOLD_MAX && nicstride_lockq_next_to_leave(q, &origin)) {
        const int index = onic_node_index(&m->node, origin);

        if (index < 0)
            note(remote, origin, 0, 0);
        else if (nicstride_stay_leave(&nicstride_ctl(m, index)->stay))
            left = nicstride_lockq_release(q, origin) || left;
    }
    return left;
}

/** Grants the lock to every waiter that can have it now. The queue's lock is held. */
static void hand_on(nicstride_module_t *m, int local, told_t *remote)
{
    nicstride_lockq_t *q = nicstride_ctl_lockq(m, local);
    uint32_t origin;

    do
        while (remote->n < TOLD_MAX && nicstride_lockq_next_grant(q, &origin))
            tell(m, local, origin, remote);
    while (clear(m, local, remote));
}

/** Takes all waiting processes of other nodes out of the queue of a window that has failed. */
static void refuse(nicstride_module_t *m, int local, told_t *remote)
{
    nicstride_lockq_t *q = nicstride_ctl_lockq(m, local);

    for (uint32_t origin = 0; origin < (uint32_t)m->size && remote->n < TOLD_MAX; origin++)
        if (onic_node_index(&m->node, origin) < 0 && !nicstride_lockq_holds(q, origin) &&
            nicstride_lockq_forget(q, origin))
            note(remote, origin, 0, ONIC_ERR_PROC_FAILED);
}

void nicstride_send_grant_locked(nicstride_module_t *m, int local, uint32_t origin, uint32_t type,
                                 int status)
{
    nicstride_peer_t *p = nicstride_peer_locked(m, (int)origin);
    const int rank = is_of_window(m, local) ? m->size : m->node.ranks[local];

    if (p == NULL)
        return;
    nicstride_msg_t msg = nicstride_note(p, NICSTRIDE_MSG_GRANT, type, (uint64_t)rank);
    msg.status = status;
    nicstride_send_header_locked(p, &msg);
}

static void send_locked(nicstride_module_t *m, int local, const told_t *remote)
{
    for (unsigned i = 0; i < remote->n; i++) {
        const uint32_t rank = remote->note[i].rank, type = remote->note[i].type;
        nicstride_peer_t *p = nicstride_peer_locked(m, (int)rank);

        if (type != 0 || remote->note[i].status != 0)
            nicstride_send_grant_locked(m, local, rank, type, remote->note[i].status);
        else if (p != NULL)
            nicstride_send_note_locked(p, NICSTRIDE_MSG_LEAVE, 0, 0);
    }
}

/** Takes the lock of a queue. A thread with the transport lock only tries, which returns
 *  NICSTRIDE_QUEUE_BUSY. It returns an error if trying again would be useless. */
static int take_queue(nicstride_module_t *m, onic_owned_lock_t *lock, bool wire_locked)
{
    if (!wire_locked)
        return nicstride_ctl_lock(m, lock);
    if (nicstride_ctl_try(m, lock))
        return OMPI_SUCCESS;
    return nicstride_ctl_is_orphaned(m, lock) ? ONIC_ERR_PROC_FAILED : NICSTRIDE_QUEUE_BUSY;
}

bool nicstride_queue_waits;

void nicstride_queue_is_busy_locked(void)
{
    nicstride_queue_waits = true;
    onic_transport_ask(ONIC_AM_OSC, ONIC_LOCKED);
}

/** The queue's bit in the module's `untold`. */
static unsigned bit_of(bool of_window)
{
    return of_window ? 2 : 1;
}

int nicstride_change_queue(nicstride_module_t *m, int local, nicstride_change_t change,
                           uint32_t origin, unsigned what, bool wire_locked)
{
    onic_owned_lock_t *lock = &nicstride_ctl(m, local)->queue_lock;
    bool changed = change == NULL;
    told_t remote;

    do {
        const bool broken = nicstride_is_broken(m);
        const int rc = take_queue(m, lock, wire_locked);

        /* The change is done and must not be repeated; only the telling is left. */
        if (rc == NICSTRIDE_QUEUE_BUSY && changed) {
            m->untold |= bit_of(is_of_window(m, local));
            nicstride_queue_is_busy_locked();
            return OMPI_SUCCESS;
        }
        if (rc != OMPI_SUCCESS)
            return rc;
        remote.n = 0;
        if (!changed && change(m, local, origin, what))
            tell(m, local, origin, &remote);
        changed = true;
        if (broken)
            refuse(m, local, &remote);
        else
            hand_on(m, local, &remote);
        nicstride_ctl_unlock(lock);
        if (remote.n > 0 && !wire_locked)
            onic_transport_lock();
        send_locked(m, local, &remote);
        if (remote.n > 0 && !wire_locked)
            onic_transport_unlock();
    } while (remote.n == TOLD_MAX);
    return OMPI_SUCCESS;
}

void nicstride_tell_rest_locked(nicstride_module_t *m)
{
    const unsigned untold = m->untold;

    m->untold = 0;
    if ((untold & bit_of(false)) != 0)
        (void)nicstride_change_mine_locked(m, NULL, 0);
    if ((untold & bit_of(true)) != 0)
        (void)nicstride_change_windows_locked(m, NULL, 0, 0);
}

bool nicstride_change_mine_locked(nicstride_module_t *m, nicstride_change_t change, uint32_t origin)
{
    return nicstride_change_queue(m, m->node.me, change, origin, 0, true) != NICSTRIDE_QUEUE_BUSY;
}

bool nicstride_change_windows_locked(nicstride_module_t *m, nicstride_change_t change,
                                     uint32_t origin, unsigned what)
{
    return m->rank != 0 || nicstride_change_queue(m, nicstride_ctl_of_window(m), change, origin,
                                                  what, true) != NICSTRIDE_QUEUE_BUSY;
}
