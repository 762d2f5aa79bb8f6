/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Passive target: locks, flushes, sync.
 *
 *  The lock of a target lies in memory shared by its node. A process of that node takes it and
 *  gives it back there by itself; others ask by message. The process that gives a lock back hands
 *  it to the next in the queue: by a store to a process of the node, by a message to any other, so
 *  nobody polls the network for a lock. A process that must ask by message does so with the first
 *  operation (lazy_lock.h), or, where an adapter does atomics, takes it by the target's gate
 *  (lockq.h). */
#include <time.h>

#include "osc_nicstride/sync/lock_queue.h"
#include "osc_nicstride/window/control.h"
#include "osc_nicstride/sync/counted.h"
#include "osc_nicstride/queue/lazy_lock.h"
#include "osc_nicstride/window/module.h"
#include "osc_nicstride/queue/wait.h"
#include "osc_nicstride/queue/send.h"

#include "opal/runtime/opal_progress.h"

/* ---- the lock of any target ------------------------------------------------------------------ */

static bool answered(void *arg)
{
    nicstride_peer_t *p = arg;

    return p->lock.granted || nicstride_peer_failed_locked(p);
}

static int take_by_message(nicstride_peer_t *p, unsigned type)
{
    (void)nicstride_send_note(p, NICSTRIDE_MSG_LOCK, type, 0);
    nicstride_wait(p, NICSTRIDE_WAKE, answered, p);
    if (!p->lock.granted)
        return MPI_ERR_OTHER;
    p->lock.granted = false;
    return p->lock.refused != 0 ? p->lock.refused : OMPI_SUCCESS;
}

static int give_back(nicstride_module_t *m, nicstride_peer_t *p)
{
    if (p->local >= 0)
        return nicstride_give_back_on_node(m, p->local);
    if (nicstride_gate_holds(p))
        return nicstride_gate_leave(p);
    return nicstride_send_note(p, NICSTRIDE_MSG_UNLOCK, 0, 0) ? OMPI_SUCCESS : MPI_ERR_OTHER;
}

/** No lock of a window that has failed. `since`: as in lockq.h, of a process of the node. */
static int take(nicstride_module_t *m, nicstride_peer_t *p, unsigned type, uint64_t since)
{
    const int rc =
        p->local >= 0 ? nicstride_take_on_node(p, type, since) : take_by_message(p, type);

    if (rc != OMPI_SUCCESS || !nicstride_is_broken(m))
        return rc;
    (void)give_back(m, p);
    return ONIC_ERR_PROC_FAILED;
}

/* ---- since when this process has been in MPI_Win_lock_all: lockq.h --------------------------- */

/* Its epochs of that kind, in all windows, and since when there has been one, in microseconds; wire
 * lock. */
static struct {
    unsigned n;
    uint64_t since;
} all;

static uint64_t begin_all(void)
{
    uint64_t since;

    onic_wire_lock();
    if (all.n++ == 0) {
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        all.since = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
    }
    since = all.since;
    onic_wire_unlock();
    return since;
}

static void end_all(void)
{
    onic_wire_lock();
    __atomic_store_n(&all.n, all.n - 1, __ATOMIC_RELAXED);
    onic_wire_unlock();
}

/** A thread that is in MPI_Win_lock_all asks for a lock beside it. What it then waits for with that
 *  one it must not wait for behind others, since it would have had it when it asked. */
static void pass_all(void)
{
    if (__atomic_load_n(&all.n, __ATOMIC_RELAXED) == 0)
        return;
    onic_wire_lock();
    all.since = 1;
    onic_wire_unlock();
}

/* ---- MPI_Win_lock and its kin ---------------------------------------------------------------- */

/** `target`: negative where not all of several can be reached. */
static int lock_error(const nicstride_module_t *m, const char *call, int error, int target)
{
    if (nicstride_is_broken(m))
        return nicstride_broken_error(m, call);
    if (target < 0)
        return nicstride_error(m, call, error, "a target cannot be reached");
    return nicstride_error(m, call, error, "the lock of rank %d cannot be had", target);
}

#define NO_LOCKS_TEXT "the window was made with the info key no_locks"

static int mpi_lock(int type, int target, int assert, ompi_win_t *win)
{
    nicstride_module_t *m = nicstride_module(win);
    const unsigned kind =
        type == MPI_LOCK_EXCLUSIVE ? NICSTRIDE_LOCK_EXCLUSIVE : NICSTRIDE_LOCK_SHARED;
    nicstride_peer_t *p;
    const char *wrong;
    int rc;

    if (m->no_locks)
        return nicstride_sync_error(m, "MPI_Win_lock", NO_LOCKS_TEXT, target);
    p = nicstride_peer(m, target);
    if (p == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    OPAL_THREAD_LOCK(&m->lock);
    wrong = nicstride_epoch_lock(&m->epoch, (uint32_t)target, (uint8_t)kind);
    if (wrong == NULL)
        p->lock.nocheck = (assert &MPI_MODE_NOCHECK) != 0;
    OPAL_THREAD_UNLOCK(&m->lock);
    if (wrong != NULL)
        return nicstride_sync_error(m, "MPI_Win_lock", wrong, target);
    if (p->lock.nocheck)
        return OMPI_SUCCESS;
    nicstride_await_my_lock();
    pass_all();
    rc = nicstride_gate_enter(p, kind) || nicstride_lazy_lock_begin(p, kind) ? OMPI_SUCCESS
                                                                             : take(m, p, kind, 0);
    if (rc == OMPI_SUCCESS)
        return OMPI_SUCCESS;
    NICSTRIDE_LOCKED(m, nicstride_epoch_unlock(&m->epoch, (uint32_t)target));
    return lock_error(m, "MPI_Win_lock", rc, target);
}

/** Ends the use of a lock: waits for what was done under it, and gives it back. */
static int end_lock(nicstride_module_t *m, nicstride_peer_t *p)
{
    const bool together = nicstride_lazy_lock_release(p);
    int error = nicstride_flush_peer(p, NICSTRIDE_FLUSH_REMOTE), told;

    /* Nothing was done under it. */
    told = together ? OMPI_SUCCESS : nicstride_await_lock(p);
    nicstride_lazy_lock_end(p);
    if (error == OMPI_SUCCESS && told != OMPI_SUCCESS)
        error = lock_error(m, "MPI_Win_unlock", told, p->rank);
    /* The lock first: another thread may lock the target as soon as the epoch is over. */
    told = together || p->lock.nocheck ? OMPI_SUCCESS : give_back(m, p);
    if (error == OMPI_SUCCESS && told != OMPI_SUCCESS)
        error = lock_error(m, "MPI_Win_unlock", told, -1);
    return nicstride_unless_broken(m, "MPI_Win_unlock", error);
}

static int mpi_unlock(int target, ompi_win_t *win)
{
    nicstride_module_t *m = nicstride_module(win);
    nicstride_peer_t *p = nicstride_peer(m, target);
    const char *wrong;
    int error;

    if (p == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    NICSTRIDE_LOCKED(m, wrong = nicstride_epoch_locked(&m->epoch, (uint32_t)target));
    if (wrong != NULL)
        return nicstride_sync_error(m, "MPI_Win_unlock", wrong, target);
    error = end_lock(m, p);
    OPAL_THREAD_LOCK(&m->lock);
    p->lock.nocheck = false;
    nicstride_epoch_unlock(&m->epoch, (uint32_t)target);
    OPAL_THREAD_UNLOCK(&m->lock);
    return error;
}

/* ---- MPI_Win_lock_all ------------------------------------------------------------------------
 *
 * The locks of targets of this node are taken at once: a process that has mapped them may load and
 * store without a call, and it takes no message. Those of others are held back, each from the first
 * operation to its target on, so that nothing is sent to a target that the program does not use.
 */

/** Gives back the locks of the first `end` processes of this node; returns the first error. */
static int give_back_node(nicstride_module_t *m, int end)
{
    int error = OMPI_SUCCESS;

    for (int i = 0; i < end; i++) {
        const int rc = nicstride_give_back_on_node(m, i);

        if (error == OMPI_SUCCESS)
            error = rc;
    }
    return error;
}

static int take_node(nicstride_module_t *m, uint64_t since)
{
    for (int i = 0; i < m->node.n; i++) {
        nicstride_peer_t *p = nicstride_peer(m, m->node.ranks[i]);
        int rc = p != NULL ? take(m, p, NICSTRIDE_LOCK_SHARED, since) : OMPI_ERR_OUT_OF_RESOURCE;

        if (rc != OMPI_SUCCESS) {
            (void)give_back_node(m, i);
            return lock_error(m, "MPI_Win_lock_all", rc, m->node.ranks[i]);
        }
    }
    return OMPI_SUCCESS;
}

static int mpi_lock_all(int assert, ompi_win_t *win)
{
    nicstride_module_t *m = nicstride_module(win);
    const char *wrong;
    int rc;

    if (m->no_locks)
        return nicstride_sync_error(m, "MPI_Win_lock_all", NO_LOCKS_TEXT, -1);
    OPAL_THREAD_LOCK(&m->lock);
    wrong = nicstride_epoch_lock_all(&m->epoch);
    if (wrong == NULL)
        m->nocheck_all = (assert &MPI_MODE_NOCHECK) != 0;
    OPAL_THREAD_UNLOCK(&m->lock);
    if (wrong != NULL)
        return nicstride_sync_error(m, "MPI_Win_lock_all", wrong, -1);
    if (m->nocheck_all)
        return OMPI_SUCCESS;
    nicstride_await_my_lock();
    rc = take_node(m, begin_all());
    if (rc != OMPI_SUCCESS) {
        end_all();
        NICSTRIDE_LOCKED(m, nicstride_epoch_unlock_all(&m->epoch));
    }
    return rc;
}

int nicstride_lock_one_of_all(nicstride_peer_t *p)
{
    bool locked;

    if (p->module->nocheck_all)
        return OMPI_SUCCESS;
    nicstride_await_my_lock();
    onic_wire_lock();
    locked = p->lock.of_all || nicstride_lazy_lock_one_of_all_locked(p, all.since);
    __atomic_store_n(&p->lock.of_all, locked, __ATOMIC_RELAXED);
    nicstride_use_locked(p);
    onic_wire_unlock();
    return locked ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
}

/** Ends the use of those locks. Returns the first error. */
static int end_locks_of_all(nicstride_module_t *m)
{
    int error, told = OMPI_SUCCESS;

    for (nicstride_peer_t *p = nicstride_used_begin(m); p != NULL; p = nicstride_used_next(p))
        p->lock.released = p->lock.of_all && nicstride_lazy_lock_release(p);
    error = nicstride_flush_all_peers(m, NICSTRIDE_FLUSH_REMOTE);
    for (nicstride_peer_t *p = nicstride_used_first(m); p != NULL; p = nicstride_used_next(p)) {
        int rc;

        if (!p->lock.of_all)
            continue;
        rc = p->lock.released ? OMPI_SUCCESS : nicstride_await_lock(p);
        nicstride_lazy_lock_end(p);
        told = told == OMPI_SUCCESS ? rc : told;
        rc = p->lock.released ? OMPI_SUCCESS : give_back(m, p);
        told = told == OMPI_SUCCESS ? rc : told;
        __atomic_store_n(&p->lock.of_all, false, __ATOMIC_RELAXED);
    }
    nicstride_used_end(m);
    return error == OMPI_SUCCESS && told != OMPI_SUCCESS
               ? lock_error(m, "MPI_Win_unlock_all", told, -1)
               : error;
}

static int mpi_unlock_all(ompi_win_t *win)
{
    nicstride_module_t *m = nicstride_module(win);
    const char *wrong;
    int error;

    NICSTRIDE_LOCKED(m, wrong = nicstride_epoch_locked_all(&m->epoch));
    if (wrong != NULL)
        return nicstride_sync_error(m, "MPI_Win_unlock_all", wrong, -1);
    if (m->nocheck_all) {
        error = nicstride_flush_all_peers(m, NICSTRIDE_FLUSH_REMOTE);
    } else {
        int told;

        error = nicstride_any_used(m) ? end_locks_of_all(m) : OMPI_SUCCESS;
        atomic_thread_fence(memory_order_seq_cst);
        told = give_back_node(m, m->node.n);
        if (error == OMPI_SUCCESS && told != OMPI_SUCCESS)
            error = lock_error(m, "MPI_Win_unlock_all", told, -1);
        end_all();
    }
    error = nicstride_unless_broken(m, "MPI_Win_unlock_all", error);
    OPAL_THREAD_LOCK(&m->lock);
    nicstride_epoch_unlock_all(&m->epoch);
    m->nocheck_all = false;
    OPAL_THREAD_UNLOCK(&m->lock);
    return error;
}

/* ---- flush and sync -------------------------------------------------------------------------- */

static int flush_one(nicstride_module_t *m, const char *call, int target, nicstride_flush_t kind)
{
    /* Which looks at the rank, too: Open MPI does not. */
    int rc = nicstride_check_passive(m, call, target);
    nicstride_peer_t *p;

    if (rc != OMPI_SUCCESS)
        return rc;
    p = __atomic_load_n(&m->peer[target], __ATOMIC_ACQUIRE);
    if (p != NULL)
        rc = nicstride_flush_peer(p, kind);
    else /* nothing went there by message */
        atomic_thread_fence(memory_order_seq_cst);
    return nicstride_unless_broken(m, call, rc);
}

static int flush_every(ompi_win_t *win, const char *call, nicstride_flush_t kind)
{
    nicstride_module_t *m = nicstride_module(win);
    const char *wrong;

    NICSTRIDE_LOCKED(m, wrong = nicstride_epoch_any_passive(&m->epoch));
    if (wrong != NULL)
        return nicstride_sync_error(m, call, wrong, -1);
    return nicstride_unless_broken(m, call, nicstride_flush_all_peers(m, kind));
}

static int mpi_flush(int target, ompi_win_t *win)
{
    return flush_one(nicstride_module(win), "MPI_Win_flush", target, NICSTRIDE_FLUSH_REMOTE);
}

static int mpi_flush_local(int target, ompi_win_t *win)
{
    return flush_one(nicstride_module(win), "MPI_Win_flush_local", target, NICSTRIDE_FLUSH_LOCAL);
}

static int mpi_flush_all(ompi_win_t *win)
{
    return flush_every(win, "MPI_Win_flush_all", NICSTRIDE_FLUSH_REMOTE);
}

static int mpi_flush_local_all(ompi_win_t *win)
{
    return flush_every(win, "MPI_Win_flush_local_all", NICSTRIDE_FLUSH_LOCAL);
}

static int mpi_sync(ompi_win_t *win)
{
    (void)win;
    atomic_thread_fence(memory_order_seq_cst);
    opal_progress();
    atomic_thread_fence(memory_order_seq_cst);
    return OMPI_SUCCESS;
}

void nicstride_passive_calls(ompi_osc_base_module_t *calls)
{
    calls->osc_lock = mpi_lock;
    calls->osc_unlock = mpi_unlock;
    calls->osc_lock_all = mpi_lock_all;
    calls->osc_unlock_all = mpi_unlock_all;
    calls->osc_sync = mpi_sync;
    calls->osc_flush = mpi_flush;
    calls->osc_flush_all = mpi_flush_all;
    calls->osc_flush_local = mpi_flush_local;
    calls->osc_flush_local_all = mpi_flush_local_all;
}
