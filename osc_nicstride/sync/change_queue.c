/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Changes of lock queues; see lock_queue.h.
 *
 *  A process of another node is told by a message, which is sent after the queue's lock was
 *  released, as a connection may have to be made first. */
#include "osc_nicstride/sync/lock_queue.h"

#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/window/control.h"

/** A message that is due to a process of another node. */
typedef struct note {
    bool due;
    uint32_t rank;
    /** Of the lock that it has got; 0: it is asked to leave, or will get none. */
    uint32_t type;
    int status; /**< 0, or why it will not get the lock */
} note_t;

static bool is_of_window(const nicstride_module_t *m, int local)
{
    return local == nicstride_ctl_of_window(m);
}

/** True if the process of this node knew that it had the lock, so that it may have used it. For the
 *  window's lock only MPI_Win_lock_all counts: exclusive locks are in the queues of their targets,
 *  too. */
static bool has_used(nicstride_module_t *m, int local, int index)
{
    if (!is_of_window(m, local))
        return atomic_load_explicit(&nicstride_pair(m, local, index)->granted,
                                    memory_order_acquire) == 0;
    return nicstride_stay_is_used(&nicstride_ctl(m, index)->stay) &&
           nicstride_ctl_lockq(m, local)->type == NICSTRIDE_LOCK_OF_ALL;
}

/** Changes the queue, whose lock is held. */
static void apply_change(nicstride_module_t *m, int local, nicstride_change_t change,
                         uint32_t origin)
{
    nicstride_lockq_t *q = nicstride_ctl_lockq(m, local);
    int index;

    switch (change) {
    case NICSTRIDE_LOCK_RELEASED:
        (void)nicstride_lockq_release(q, origin);
        break;
    case NICSTRIDE_LOCK_LOST:
        index = onic_node_index(&m->node, (int)origin);
        if (index >= 0 && onic_peer_has_died(m->near[index]) && nicstride_lockq_holds(q, origin) &&
            has_used(m, local, index))
            nicstride_break(m, index);
        else
            (void)nicstride_lockq_forget(q, origin);
        break;
    case NICSTRIDE_LOCK_UNCHANGED:
        break;
    }
}

/** Tells the origin that it has the lock, by a store if it is on this node. The queue's lock is
 *  held. */
static void tell(nicstride_module_t *m, int local, uint32_t origin, note_t *far)
{
    const int index = onic_node_index(&m->node, (int)origin);
    const uint32_t type = nicstride_ctl_lockq(m, local)->type;

    if (index < 0)
        *far = (note_t){.due = true, .rank = origin, .type = type};
    else if (is_of_window(m, local))
        nicstride_stay_granted(&nicstride_ctl(m, index)->stay, type);
    else
        atomic_store_explicit(&nicstride_pair(m, local, index)->granted, 1, memory_order_release);
}

/** Asks a process that stays in the window's lock to leave. The queue's lock is held. */
static void ask_to_leave(nicstride_module_t *m, int local, uint32_t origin, note_t *far)
{
    const int index = onic_node_index(&m->node, (int)origin);

    if (index < 0)
        *far = (note_t){.due = true, .rank = origin};
    else if (nicstride_stay_leave(&nicstride_ctl(m, index)->stay))
        (void)nicstride_lockq_release(nicstride_ctl_lockq(m, local), origin);
}

/** Grants the lock to every waiter that can have it now, and asks those to leave for whom somebody
 *  waits, up to the first process that needs a message. The queue's lock is held. */
static void hand_on(nicstride_module_t *m, int local, note_t *far)
{
    nicstride_lockq_t *q = nicstride_ctl_lockq(m, local);
    uint32_t origin;

    while (!far->due)
        if (nicstride_lockq_next_grant(q, &origin))
            tell(m, local, origin, far);
        else if (nicstride_lockq_next_to_leave(q, &origin))
            ask_to_leave(m, local, origin, far);
        else
            return;
}

/** Takes the next waiting process of another node out of the queue of a window that has failed. */
static void refuse(nicstride_module_t *m, int local, note_t *far)
{
    nicstride_lockq_t *q = nicstride_ctl_lockq(m, local);

    for (uint32_t origin = 0; origin < (uint32_t)m->size && !far->due; origin++)
        if (onic_node_index(&m->node, (int)origin) < 0 && !nicstride_lockq_holds(q, origin) &&
            nicstride_lockq_forget(q, origin))
            *far = (note_t){.due = true, .rank = origin, .status = ONIC_ERR_PROC_FAILED};
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

static void send_locked(nicstride_module_t *m, int local, const note_t *far)
{
    nicstride_peer_t *p = nicstride_peer_locked(m, (int)far->rank);

    if (far->type != 0 || far->status != 0)
        nicstride_send_grant_locked(m, local, far->rank, far->type, far->status);
    else if (p != NULL)
        nicstride_send_note_locked(p, NICSTRIDE_MSG_LEAVE, 0, 0);
}

int nicstride_change_queue(nicstride_module_t *m, int local, nicstride_change_t change,
                           uint32_t origin, bool locked)
{
    onic_owned_lock_t *lock = &nicstride_ctl(m, local)->queue_lock;
    note_t far;

    do {
        const int rc = nicstride_ctl_lock(m, lock);

        if (rc != OMPI_SUCCESS)
            return rc;
        far = (note_t){.due = false};
        apply_change(m, local, change, origin);
        change = NICSTRIDE_LOCK_UNCHANGED;
        if (nicstride_is_broken(m))
            refuse(m, local, &far);
        else
            hand_on(m, local, &far);
        onic_owned_release(lock);
        if (!far.due)
            break;
        if (!locked)
            onic_transport_lock();
        send_locked(m, local, &far);
        if (!locked)
            onic_transport_unlock();
    } while (true);
    return OMPI_SUCCESS;
}
