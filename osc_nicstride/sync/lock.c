/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Passive target: locks, flushes, sync.
 *
 *  The lock of a target lies in memory shared by its node. A process of that node takes it and
 *  gives it back by itself; others ask by message, together with the first operation. The process
 *  that gives a lock back hands it to the next one in the queue: by a store to a process of the
 *  node, by a message to any other, so nobody polls the network for a lock. Before an exclusive
 *  lock a process takes the window's lock; MPI_Win_lock_all takes only that (window_lock.h). */
#include "osc_nicstride/sync/lock_queue.h"
#include "osc_nicstride/window/control.h"
#include "osc_nicstride/check/check.h"
#include "osc_nicstride/sync/fence.h"

#include "osc_nicstride/window/module.h"
#include "osc_nicstride/queue/ask_lock.h"
#include "osc_nicstride/queue/send.h"

#include "opal/runtime/opal_progress.h"

/* ---- the lock of any target ------------------------------------------------------------------ */

/** Gives back what was taken for a lock of this type. */
static int give_back(nicstride_module_t *m, nicstride_peer_t *p, unsigned type)
{
    const int rc =
        p->local >= 0 ? nicstride_give_back_on_node(m, p->local) : nicstride_give_lock(p);

    if (type == NICSTRIDE_LOCK_EXCLUSIVE)
        nicstride_window_lock_give(m);
    return rc;
}

/** Takes a target's lock, and before an exclusive one the window's. Fails if the window has
 *  failed. `holds`: 0, or NICSTRIDE_LOCK_HOLDS. */
static int take(nicstride_module_t *m, nicstride_peer_t *p, unsigned type, unsigned holds)
{
    const bool exclusive = type == NICSTRIDE_LOCK_EXCLUSIVE;
    int rc =
        exclusive ? nicstride_window_lock_take(m, NICSTRIDE_LOCK_OF_SOME | holds) : OMPI_SUCCESS;

    if (rc != OMPI_SUCCESS)
        return rc;
    rc = p->local >= 0 ? nicstride_take_on_node(p, p->local, type | holds)
                       : nicstride_want_lock(p, type | holds);
    if (rc == OMPI_SUCCESS && nicstride_is_broken(m)) {
        (void)give_back(m, p, type);
        return ONIC_ERR_PROC_FAILED;
    }
    if (rc != OMPI_SUCCESS && exclusive)
        nicstride_window_lock_give(m);
    return rc;
}

/* ---- MPI_Win_lock and its kin ---------------------------------------------------------------- */

/** Reports a lock error. `target`: negative if not all of several targets can be reached. */
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
    const unsigned kind = (assert &MPI_MODE_NOCHECK) != 0 ? NICSTRIDE_TARGET_NOT_LOCKED
                          : type == MPI_LOCK_EXCLUSIVE    ? NICSTRIDE_LOCK_EXCLUSIVE
                                                          : NICSTRIDE_LOCK_SHARED;
    nicstride_peer_t *p;
    const char *wrong;
    unsigned holds;
    int rc;

    if (m->no_locks)
        return nicstride_sync_error(m, "MPI_Win_lock", NO_LOCKS_TEXT, target);
    p = nicstride_peer(m, target);
    if (p == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    OPAL_THREAD_LOCK(&m->lock);
    wrong = nicstride_epoch_lock(&m->epoch, (uint32_t)target, (uint8_t)kind);
    holds = m->epoch.locks > 1 ? NICSTRIDE_LOCK_HOLDS : 0;
    OPAL_THREAD_UNLOCK(&m->lock);
    if (wrong != NULL)
        return nicstride_sync_error(m, "MPI_Win_lock", wrong, target);
    if (kind == NICSTRIDE_TARGET_NOT_LOCKED)
        return OMPI_SUCCESS;
    nicstride_await_my_lock();
    rc = take(m, p, kind, holds);
    if (rc == OMPI_SUCCESS)
        return OMPI_SUCCESS;
    NICSTRIDE_LOCKED(m, nicstride_epoch_unlock(&m->epoch, (uint32_t)target));
    return lock_error(m, "MPI_Win_lock", rc, target);
}

/** Ends the use of a lock: waits for everything done under it, and gives it back. */
static int end_lock(nicstride_module_t *m, nicstride_peer_t *p, unsigned kind)
{
    const bool taken = kind != NICSTRIDE_TARGET_NOT_LOCKED;
    int error;

    if (taken && p->local < 0)
        nicstride_release_along(p);
    error = nicstride_flush_peer(p, NICSTRIDE_FLUSH_REMOTE);

    nicstride_check_over(m, p->rank, false);
    /* The lock is given back first: another thread may lock the target as soon as the epoch is
     * over. */
    const int told = taken ? give_back(m, p, kind) : OMPI_SUCCESS;
    if (error == OMPI_SUCCESS && told != OMPI_SUCCESS)
        error = lock_error(m, "MPI_Win_unlock", told, -1);
    return nicstride_unless_broken(m, "MPI_Win_unlock", error);
}

static int mpi_unlock(int target, ompi_win_t *win)
{
    nicstride_module_t *m = nicstride_module(win);
    nicstride_peer_t *p = nicstride_peer(m, target);
    const char *wrong;
    unsigned kind = 0;
    int error;

    if (p == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    OPAL_THREAD_LOCK(&m->lock);
    wrong = nicstride_epoch_locked(&m->epoch, (uint32_t)target);
    if (wrong == NULL)
        kind = m->epoch.target[target];
    OPAL_THREAD_UNLOCK(&m->lock);
    if (wrong != NULL)
        return nicstride_sync_error(m, "MPI_Win_unlock", wrong, target);
    error = end_lock(m, p, kind);
    NICSTRIDE_LOCKED(m, nicstride_epoch_unlock(&m->epoch, (uint32_t)target));
    return error;
}

/* ---- MPI_Win_lock_all ------------------------------------------------------------------------ */

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
    rc = nicstride_window_lock_take(m, NICSTRIDE_LOCK_OF_ALL);
    if (rc == OMPI_SUCCESS)
        return OMPI_SUCCESS;
    NICSTRIDE_LOCKED(m, nicstride_epoch_unlock_all(&m->epoch));
    return lock_error(m, "MPI_Win_lock_all", rc, 0);
}

static int mpi_unlock_all(ompi_win_t *win)
{
    nicstride_module_t *m = nicstride_module(win);
    const char *wrong;
    int error;

    NICSTRIDE_LOCKED(m, wrong = nicstride_epoch_locked_all(&m->epoch));
    if (wrong != NULL)
        return nicstride_sync_error(m, "MPI_Win_unlock_all", wrong, -1);
    error = nicstride_flush_all_peers(m, NICSTRIDE_FLUSH_REMOTE);
    nicstride_check_over(m, -1, false);
    if (!m->nocheck_all)
        nicstride_window_lock_give(m);
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
    /* This also checks the rank, which Open MPI does not. */
    int rc = nicstride_check_passive(m, call, target);
    nicstride_peer_t *p;

    if (rc != OMPI_SUCCESS)
        return rc;
    p = __atomic_load_n(&m->peer[target], __ATOMIC_ACQUIRE);
    if (p != NULL)
        rc = nicstride_flush_peer(p, kind);
    else /* nothing went there by message */
        atomic_thread_fence(memory_order_seq_cst);
    nicstride_check_over(m, target, kind == NICSTRIDE_FLUSH_LOCAL);
    return nicstride_unless_broken(m, call, rc);
}

static int flush_every(ompi_win_t *win, const char *call, nicstride_flush_t kind)
{
    nicstride_module_t *m = nicstride_module(win);
    const char *wrong;
    int rc;

    NICSTRIDE_LOCKED(m, wrong = nicstride_epoch_any_passive(&m->epoch));
    if (wrong != NULL)
        return nicstride_sync_error(m, call, wrong, -1);
    rc = nicstride_flush_all_peers(m, kind);
    nicstride_check_over(m, -1, kind == NICSTRIDE_FLUSH_LOCAL);
    return nicstride_unless_broken(m, call, rc);
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
