/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The lock of the window (protocol/window_lock.h): its use by this process's epochs, and its
 *  queue, in the memory of rank 0's node. Processes of that node use the queue themselves; others
 *  ask rank 0 by message, and are asked by message to leave. */
#include <sched.h>

#include "osc_nicstride/protocol/window_lock.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/queue/wait.h"
#include "osc_nicstride/sync/lock_queue.h"
#include "osc_nicstride/window/control.h"
#include "osc_nicstride/window/state.h"

#include "opal/runtime/opal_progress.h"

/** True if this process shares memory with rank 0, where the queue is. */
static bool is_near(const nicstride_module_t *m)
{
    return m->node.ranks[0] == 0;
}

/** True if this process may keep the lock after its epoch, because a request to leave always
 *  reaches it. On rank 0's node, others can take this process out. Elsewhere it needs a server
 *  thread that polls for messages by itself; one that must be woken does not. */
static bool may_stay(const nicstride_module_t *m)
{
    return is_near(m) || (m->wants_server && nicstride_component.params.server);
}

/** The process's word in the window's lock. */
static nicstride_stay_t *stay(const nicstride_module_t *m)
{
    return &nicstride_ctl(m, m->node.me)->stay;
}

void nicstride_window_lock_answered_locked(nicstride_module_t *m, unsigned type, int error)
{
    if (error == 0)
        nicstride_stay_granted(stay(m), type);
    else
        m->window_refused = error;
}

void nicstride_window_lock_leave_locked(nicstride_peer_t *p)
{
    nicstride_module_t *m = p->module;
    nicstride_peer_t *first;

    if (m->rank == 0) {
        (void)nicstride_change_queue(m, nicstride_ctl_of_window(m), NICSTRIDE_LOCK_RELEASED,
                                     (uint32_t)p->rank, true);
        return;
    }
    /* Any process of rank 0's node may have asked; the lock is given back to rank 0. */
    if (!nicstride_stay_leave(stay(m)))
        return;
    first = nicstride_peer_locked(m, 0);
    if (first != NULL)
        nicstride_send_note_locked(first, NICSTRIDE_MSG_LEAVE, 0, 0);
}

static bool answered(void *arg)
{
    nicstride_peer_t *p = arg;

    return nicstride_stay_is_used(stay(p->module)) || p->module->window_refused != 0 ||
           nicstride_peer_failed_locked(p);
}

static int ask_far(nicstride_peer_t *p, unsigned what)
{
    nicstride_module_t *m = p->module;

    onic_transport_lock();
    m->window_refused = 0;
    nicstride_send_note_locked(p, NICSTRIDE_MSG_LOCK, what, 0);
    onic_transport_unlock();
    nicstride_wait(p, NICSTRIDE_WAKE, answered, p);
    if (nicstride_stay_is_used(stay(m)))
        return OMPI_SUCCESS;
    return m->window_refused != 0 ? m->window_refused : MPI_ERR_OTHER;
}

static int ask(nicstride_module_t *m, unsigned what)
{
    nicstride_peer_t *p = nicstride_peer(m, 0);
    int rc;

    if (p == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    onic_count(&nicstride_counters.window_locks, 1);
    rc =
        is_near(m) ? nicstride_take_on_node(p, nicstride_ctl_of_window(m), what) : ask_far(p, what);
    /* The lock may just have been granted; it was then withdrawn. */
    if (rc != OMPI_SUCCESS)
        atomic_store(stay(m), 0);
    return rc;
}

static void give_back(nicstride_module_t *m)
{
    if (is_near(m))
        (void)nicstride_give_back_on_node(m, nicstride_ctl_of_window(m));
    else /* to rank 0, which granted it */
        (void)nicstride_send_note(nicstride_peer(m, 0), NICSTRIDE_MSG_LEAVE, 0, 0);
}

/** Uses the lock if it is in use already, or if the process has stayed in it. Otherwise false, and
 *  `*asks` says whether this thread must ask for it; if not, another thread is asking. */
static bool use(nicstride_module_t *m, unsigned type, bool *asks)
{
    bool used;

    OPAL_THREAD_LOCK(&m->lock);
    used = m->stays > 0 || (!m->stay_busy && nicstride_stay_use(stay(m), type));
    m->stays += used;
    *asks = !used && !m->stay_busy;
    m->stay_busy = m->stay_busy || *asks;
    OPAL_THREAD_UNLOCK(&m->lock);
    return used;
}

int nicstride_window_lock_take(nicstride_module_t *m, unsigned what)
{
    bool asks;
    int rc;

    if (nicstride_is_broken(m))
        return ONIC_ERR_PROC_FAILED;
    while (!use(m, what & NICSTRIDE_LOCK_TYPE, &asks) && !asks) {
        opal_progress();
        sched_yield();
    }
    if (!asks)
        return OMPI_SUCCESS;
    /* The process may have stayed for the other purpose. */
    if (nicstride_stay_leave_idle(stay(m)))
        give_back(m);
    rc = ask(m, what);
    OPAL_THREAD_LOCK(&m->lock);
    m->stay_busy = false;
    m->stays += rc == OMPI_SUCCESS;
    OPAL_THREAD_UNLOCK(&m->lock);
    return rc;
}

void nicstride_window_lock_give(nicstride_module_t *m)
{
    bool leaves;

    OPAL_THREAD_LOCK(&m->lock);
    leaves = --m->stays == 0 &&
             (!nicstride_stay_end(stay(m)) || (!may_stay(m) && nicstride_stay_leave_idle(stay(m))));
    m->stay_busy = m->stay_busy || leaves;
    OPAL_THREAD_UNLOCK(&m->lock);
    if (!leaves)
        return;
    give_back(m);
    NICSTRIDE_LOCKED(m, m->stay_busy = false);
}
