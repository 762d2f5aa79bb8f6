/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Passive target: locks, flushes, sync.
 *
 * The lock of a target lies in memory shared by its node. A process of that node takes it and
 * gives it back there by itself; others ask by message. Whoever gives a lock back hands it to the
 * next in the queue: by a store to a process of the node, by a message to any other, so nobody
 * polls the network for a lock. Who must ask by message does so with the first operation (hold.h).
 */
#include <stddef.h>

#include "osc_nicstride/lock.h"
#include "osc_nicstride/calls.h"
#include "osc_nicstride/component.h"
#include "osc_nicstride/control.h"
#include "osc_nicstride/errors.h"
#include "osc_nicstride/flush.h"
#include "osc_nicstride/hold.h"
#include "osc_nicstride/lost.h"
#include "osc_nicstride/module.h"
#include "osc_nicstride/stream.h"
#include "osc_nicstride/target.h"
#include "osc_nicstride/wake.h"

/* ---- the queue of a target of this node --------------------------------------------------------
 */

/** Ranks on other nodes that are to be told of a lock. */
typedef struct grants {
    uint32_t rank[64];
    unsigned n;
} grants_t;

#define GRANTS_MAX (sizeof(((grants_t *)0)->rank) / sizeof(uint32_t))

/** Hands the lock to those who can have it now: to processes of the node at once, the others are
 *  collected. The queue is locked; messages must wait until it is not, because sending takes the
 *  wire lock, and who has that may be trying for the queue. */
static void collect_grants(nicstride_module_t *m, int local, grants_t *remote)
{
    nicstride_lockq_t *q = nicstride_ctl_lockq(m, local);
    uint32_t origin;

    remote->n = 0;
    while (remote->n < GRANTS_MAX && nicstride_lockq_next_grant(q, &origin)) {
        int index = m->node.index[origin];

        if (index >= 0)
            atomic_store_explicit(&nicstride_ctl_granted(m, local)[index], 1, memory_order_release);
        else
            remote->rank[remote->n++] = origin;
    }
}

static void send_grant_locked(nicstride_module_t *m, int local, uint32_t origin, int status)
{
    nicstride_peer_t *p = nicstride_peer_locked(m, (int)origin);
    nicstride_msg_t msg;

    if (p == NULL)
        return;
    nicstride_msg_init(&msg, NICSTRIDE_MSG_GRANT, m->info[origin].win, (uint32_t)m->rank);
    msg.count = (uint64_t)m->node.ranks[local];
    msg.status = status;
    nicstride_send_locked(m, p, &msg);
}

static void send_grants_locked(nicstride_module_t *m, int local, const grants_t *remote)
{
    for (unsigned i = 0; i < remote->n; i++)
        send_grant_locked(m, local, remote->rank[i], 0);
}

/** Hands my lock to all who can have it now. The queue and the wire are locked. */
static void hand_on_locked(nicstride_module_t *m)
{
    const int local = m->node.me;
    grants_t remote;

    do {
        collect_grants(m, local, &remote);
        send_grants_locked(m, local, &remote);
    } while (remote.n == GRANTS_MAX);
}

void nicstride_lock_forget_locked(nicstride_module_t *m, const nicstride_peer_t *p)
{
    nicstride_ctl_t *ctl = nicstride_ctl(m, m->node.me);

    /* Nobody waits for the wire who holds this one. */
    nicstride_spin_lock(&ctl->queue_lock);
    if (nicstride_lockq_forget(nicstride_ctl_lockq(m, m->node.me), (uint32_t)p->rank))
        hand_on_locked(m);
    nicstride_spin_unlock(&ctl->queue_lock);
}

/** With a connection back to who asks for a lock I shall know if it is lost while it waits. What
 *  came before a loss and is handled only now would never be forgotten. */
static bool is_gone_locked(nicstride_peer_t *p)
{
    (void)nicstride_frag_max_locked(p);
    return onic_peer_is_lost(p->wire);
}

bool nicstride_lock_at_once_locked(nicstride_module_t *m, nicstride_peer_t *p,
                                   const nicstride_msg_t *msg)
{
    const int local = m->node.me;
    nicstride_ctl_t *ctl = nicstride_ctl(m, local);
    bool had;

    if (is_gone_locked(p) || !nicstride_spin_try(&ctl->queue_lock))
        return false;
    had = nicstride_lockq_try(nicstride_ctl_lockq(m, local), msg->origin, msg->op);
    nicstride_spin_unlock(&ctl->queue_lock);
    return had;
}

bool nicstride_lock_message_locked(nicstride_module_t *m, nicstride_peer_t *p,
                                   const nicstride_msg_t *msg)
{
    const int local = m->node.me;
    nicstride_ctl_t *ctl = nicstride_ctl(m, local);
    nicstride_lockq_t *q = nicstride_ctl_lockq(m, local);
    nicstride_lockq_result_t r = NICSTRIDE_LOCKQ_QUEUED;

    if (msg->type == NICSTRIDE_MSG_LOCK && is_gone_locked(p))
        return true;
    if (!nicstride_spin_try(&ctl->queue_lock))
        return false;
    if (msg->type == NICSTRIDE_MSG_LOCK)
        r = nicstride_lockq_request(q, msg->origin, msg->op);
    else if (!nicstride_lockq_release(q, msg->origin))
        nicstride_add(&nicstride_counters.refused, 1);
    hand_on_locked(m);
    nicstride_spin_unlock(&ctl->queue_lock);
    if (r == NICSTRIDE_LOCKQ_GRANTED)
        send_grant_locked(m, local, (uint32_t)p->rank, 0);
    if (r == NICSTRIDE_LOCKQ_REFUSED) {
        nicstride_add(&nicstride_counters.refused, 1);
        send_grant_locked(m, local, (uint32_t)p->rank, MPI_ERR_RMA_SYNC);
    }
    return true;
}

/** Takes the lock in shared memory; waits for whoever holds it to hand it over. */
static int take_on_node(nicstride_module_t *m, nicstride_peer_t *p, unsigned type)
{
    const int local = p->local;
    nicstride_ctl_t *ctl = nicstride_ctl(m, local);
    _Atomic uint32_t *granted = &nicstride_ctl_granted(m, local)[m->node.me];
    nicstride_lockq_result_t r;
    nicstride_patience_t patience;

    nicstride_spin_lock(&ctl->queue_lock);
    r = nicstride_lockq_request(nicstride_ctl_lockq(m, local), (uint32_t)m->rank, type);
    nicstride_spin_unlock(&ctl->queue_lock);
    if (r == NICSTRIDE_LOCKQ_REFUSED)
        return OMPI_ERR_RMA_SYNC;
    if (r == NICSTRIDE_LOCKQ_GRANTED)
        return OMPI_SUCCESS;
    nicstride_patience_begin(&patience);
    while (atomic_load_explicit(granted, memory_order_acquire) == 0) {
        /* Who holds it may be of another node, and give it back by a message. */
        if (p->rank != m->rank && m->node.n < m->size)
            nicstride_wake_waited(&patience, p);
        nicstride_progress();
    }
    atomic_store_explicit(granted, 0, memory_order_relaxed);
    return OMPI_SUCCESS;
}

static void give_back_on_node(nicstride_module_t *m, int local)
{
    nicstride_ctl_t *ctl = nicstride_ctl(m, local);
    bool released = false;
    grants_t remote;

    do {
        nicstride_spin_lock(&ctl->queue_lock);
        if (!released)
            nicstride_lockq_release(nicstride_ctl_lockq(m, local), (uint32_t)m->rank);
        released = true;
        collect_grants(m, local, &remote);
        nicstride_spin_unlock(&ctl->queue_lock);
        if (remote.n > 0) {
            onic_wire_lock();
            send_grants_locked(m, local, &remote);
            onic_wire_unlock();
        }
    } while (remote.n == GRANTS_MAX);
}

/* ---- the lock of any target --------------------------------------------------------------------
 */

/** MPI_ERR_OTHER where the peer cannot be told. */
static int send_plain(nicstride_module_t *m, nicstride_peer_t *p, nicstride_msg_type_t type,
                      unsigned op)
{
    nicstride_msg_t msg;
    bool failed;

    nicstride_msg_init(&msg, type, m->info[p->rank].win, (uint32_t)m->rank);
    msg.op = (uint16_t)op;
    onic_wire_lock();
    nicstride_send_locked(m, p, &msg);
    failed = nicstride_peer_failed_locked(p);
    onic_wire_unlock();
    return failed ? MPI_ERR_OTHER : OMPI_SUCCESS;
}

static bool answered(void *arg)
{
    nicstride_peer_t *p = arg;

    return p->granted || nicstride_peer_failed_locked(p);
}

static int take(nicstride_module_t *m, nicstride_peer_t *p, unsigned type)
{
    if (p->local >= 0)
        return take_on_node(m, p, type);
    (void)send_plain(m, p, NICSTRIDE_MSG_LOCK, type);
    nicstride_wait_until(p, answered, p);
    if (!p->granted)
        return MPI_ERR_OTHER;
    p->granted = false;
    return p->refused ? OMPI_ERR_RMA_SYNC : OMPI_SUCCESS;
}

static int give_back(nicstride_module_t *m, nicstride_peer_t *p)
{
    if (p->local < 0)
        return send_plain(m, p, NICSTRIDE_MSG_UNLOCK, 0);
    give_back_on_node(m, p->local);
    return OMPI_SUCCESS;
}

/* ---- MPI_Win_lock and its kin ------------------------------------------------------------------
 */

static int sync_error(const nicstride_module_t *m, const char *call, const char *wrong, int target)
{
    if (target >= 0)
        return nicstride_error(m, call, OMPI_ERR_RMA_SYNC, "%s (target rank %d)", wrong, target);
    return nicstride_error(m, call, OMPI_ERR_RMA_SYNC, "%s", wrong);
}

#define NO_LOCKS_TEXT "the window was made with the info key no_locks"

int nicstride_lock(int type, int target, int assert, ompi_win_t *win)
{
    nicstride_module_t *m = nicstride_module(win);
    const unsigned kind =
        type == MPI_LOCK_EXCLUSIVE ? NICSTRIDE_LOCK_EXCLUSIVE : NICSTRIDE_LOCK_SHARED;
    nicstride_peer_t *p;
    const char *wrong;
    int rc;

    if (m->no_locks)
        return sync_error(m, "MPI_Win_lock", NO_LOCKS_TEXT, target);
    p = nicstride_peer(m, target);
    if (p == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    OPAL_THREAD_LOCK(&m->lock);
    wrong = nicstride_epoch_lock(&m->epoch, (uint32_t)target, (uint8_t)kind);
    if (wrong == NULL)
        p->nocheck = (assert &MPI_MODE_NOCHECK) != 0;
    OPAL_THREAD_UNLOCK(&m->lock);
    if (wrong != NULL)
        return sync_error(m, "MPI_Win_lock", wrong, target);
    if (p->nocheck)
        return OMPI_SUCCESS;
    nicstride_hold_settle_mine();
    rc = nicstride_hold_lock(m, p, kind) ? OMPI_SUCCESS : take(m, p, kind);
    if (rc == OMPI_SUCCESS)
        return OMPI_SUCCESS;
    OPAL_THREAD_LOCK(&m->lock);
    nicstride_epoch_unlock(&m->epoch, (uint32_t)target);
    OPAL_THREAD_UNLOCK(&m->lock);
    return nicstride_error(m, "MPI_Win_lock", rc, "the lock of rank %d cannot be had", target);
}

static int unlock_error(const nicstride_module_t *m, const char *call, int error)
{
    return nicstride_error(m, call, error, "a target cannot be told");
}

/** Ends the use of a lock: waits for what was done under it, and gives it back. */
static int end_lock(nicstride_module_t *m, nicstride_peer_t *p)
{
    const bool together = nicstride_hold_release(p);
    int error = nicstride_flush_peer(m, p, true), told;

    /* Nothing was done under it. */
    told = together ? OMPI_SUCCESS : nicstride_hold_settle(p);
    nicstride_hold_end(p);
    if (error == OMPI_SUCCESS && told != OMPI_SUCCESS)
        error = nicstride_error(m, "MPI_Win_unlock", told, "the lock of rank %d cannot be had",
                                p->rank);
    /* The lock before the epoch: another thread may lock the target as soon as the epoch is over.
     */
    told = together || p->nocheck ? OMPI_SUCCESS : give_back(m, p);
    if (error == OMPI_SUCCESS && told != OMPI_SUCCESS)
        error = unlock_error(m, "MPI_Win_unlock", told);
    return error;
}

int nicstride_unlock(int target, ompi_win_t *win)
{
    nicstride_module_t *m = nicstride_module(win);
    nicstride_peer_t *p = nicstride_peer(m, target);
    const char *wrong;
    int error;

    if (p == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    OPAL_THREAD_LOCK(&m->lock);
    wrong = nicstride_epoch_locked(&m->epoch, (uint32_t)target);
    OPAL_THREAD_UNLOCK(&m->lock);
    if (wrong != NULL)
        return sync_error(m, "MPI_Win_unlock", wrong, target);
    error = end_lock(m, p);
    OPAL_THREAD_LOCK(&m->lock);
    p->nocheck = false;
    nicstride_epoch_unlock(&m->epoch, (uint32_t)target);
    OPAL_THREAD_UNLOCK(&m->lock);
    return error;
}

/** Returns the first error. */
static int give_back_below(nicstride_module_t *m, int end)
{
    int error = OMPI_SUCCESS;

    for (int i = 0; i < end; i++) {
        int rc = give_back(m, m->peer[i]);

        if (error == OMPI_SUCCESS)
            error = rc;
    }
    return error;
}

/**
 * Takes the shared lock of every target, in the order of the ranks, each in its turn. All at once
 * and in one order, because who takes them one by one as he goes along holds some while he waits
 * for others: behind waiting exclusive ones that can end in a circle, and before them nobody would
 * ever get an exclusive lock.
 */
static int take_all(nicstride_module_t *m)
{
    for (int i = 0; i < m->size; i++) {
        nicstride_peer_t *p = nicstride_peer(m, i);
        int rc = p != NULL ? take(m, p, NICSTRIDE_LOCK_SHARED) : OMPI_ERR_OUT_OF_RESOURCE;

        if (rc != OMPI_SUCCESS) {
            (void)give_back_below(m, i);
            return nicstride_error(m, "MPI_Win_lock_all", rc, "the lock of rank %d cannot be had",
                                   i);
        }
    }
    return OMPI_SUCCESS;
}

int nicstride_lock_all(int assert, ompi_win_t *win)
{
    nicstride_module_t *m = nicstride_module(win);
    const char *wrong;
    int rc;

    if (m->no_locks)
        return sync_error(m, "MPI_Win_lock_all", NO_LOCKS_TEXT, -1);
    OPAL_THREAD_LOCK(&m->lock);
    wrong = nicstride_epoch_lock_all(&m->epoch);
    if (wrong == NULL)
        m->nocheck_all = (assert &MPI_MODE_NOCHECK) != 0;
    OPAL_THREAD_UNLOCK(&m->lock);
    if (wrong != NULL)
        return sync_error(m, "MPI_Win_lock_all", wrong, -1);
    nicstride_hold_settle_mine();
    rc = m->nocheck_all ? OMPI_SUCCESS : take_all(m);
    if (rc != OMPI_SUCCESS) {
        OPAL_THREAD_LOCK(&m->lock);
        nicstride_epoch_unlock_all(&m->epoch);
        OPAL_THREAD_UNLOCK(&m->lock);
    }
    return rc;
}

int nicstride_unlock_all(ompi_win_t *win)
{
    nicstride_module_t *m = nicstride_module(win);
    const char *wrong;
    int error, told;

    OPAL_THREAD_LOCK(&m->lock);
    wrong = nicstride_epoch_locked_all(&m->epoch);
    OPAL_THREAD_UNLOCK(&m->lock);
    if (wrong != NULL)
        return sync_error(m, "MPI_Win_unlock_all", wrong, -1);
    error = nicstride_flush_all_peers(m, true);
    told = m->nocheck_all ? OMPI_SUCCESS : give_back_below(m, m->size);
    if (error == OMPI_SUCCESS && told != OMPI_SUCCESS)
        error = unlock_error(m, "MPI_Win_unlock_all", told);
    OPAL_THREAD_LOCK(&m->lock);
    nicstride_epoch_unlock_all(&m->epoch);
    m->nocheck_all = false;
    OPAL_THREAD_UNLOCK(&m->lock);
    return error;
}

/* ---- flush and sync ----------------------------------------------------------------------------
 */

/** The peer to flush, where the epoch plainly allows it; else NULL. */
static inline nicstride_peer_t *plain_peer(nicstride_module_t *m, int target)
{
    bool allowed;

    /* Open MPI does not look at the rank of a flush. */
    if ((unsigned)target >= (unsigned)m->size)
        return NULL;
    OPAL_THREAD_LOCK(&m->lock);
    allowed = nicstride_epoch_plain_passive(&m->epoch, (uint32_t)target);
    OPAL_THREAD_UNLOCK(&m->lock);
    return allowed ? __atomic_load_n(&m->peer[target], __ATOMIC_ACQUIRE) : NULL;
}

static int flush_checked(nicstride_module_t *m, const char *call, int target, bool remote)
{
    int rc = nicstride_check_passive(m, call, target);
    nicstride_peer_t *p;

    if (rc != OMPI_SUCCESS)
        return rc;
    p = nicstride_peer(m, target);
    return p != NULL ? nicstride_flush_peer(m, p, remote) : OMPI_ERR_OUT_OF_RESOURCE;
}

static inline int flush_one(nicstride_module_t *m, const char *call, int target, bool remote)
{
    nicstride_peer_t *p = plain_peer(m, target);

    if (p == NULL)
        return flush_checked(m, call, target, remote);
    if (!nicstride_is_clean(p))
        return nicstride_flush_peer(m, p, remote);
    /* On mapped windows there is most often nothing to wait for: the stores of direct transfers
     * come before whatever tells the target about them, and that is all. */
    nicstride_habit_flush(&m->habit);
    atomic_thread_fence(memory_order_seq_cst);
    return OMPI_SUCCESS;
}

static int flush_every(ompi_win_t *win, const char *call, bool remote)
{
    nicstride_module_t *m = nicstride_module(win);
    const char *wrong;

    OPAL_THREAD_LOCK(&m->lock);
    wrong = nicstride_epoch_any_passive(&m->epoch);
    OPAL_THREAD_UNLOCK(&m->lock);
    if (wrong != NULL)
        return sync_error(m, call, wrong, -1);
    return nicstride_flush_all_peers(m, remote);
}

int nicstride_flush(int target, ompi_win_t *win)
{
    return flush_one(nicstride_module(win), "MPI_Win_flush", target, true);
}

int nicstride_flush_local(int target, ompi_win_t *win)
{
    return flush_one(nicstride_module(win), "MPI_Win_flush_local", target, false);
}

int nicstride_flush_all(ompi_win_t *win)
{
    return flush_every(win, "MPI_Win_flush_all", true);
}

int nicstride_flush_local_all(ompi_win_t *win)
{
    return flush_every(win, "MPI_Win_flush_local_all", false);
}

int nicstride_sync(ompi_win_t *win)
{
    (void)win;
    atomic_thread_fence(memory_order_seq_cst);
    nicstride_progress();
    atomic_thread_fence(memory_order_seq_cst);
    return OMPI_SUCCESS;
}
