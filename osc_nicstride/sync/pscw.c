/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Post/start/complete/wait, and the calls of active target. Fences, and the closing of
 *  counted epochs, are in fence.c.
 *
 *  Notices of post and complete are counters: in shared memory between processes of a node, in
 *  messages between others. They only grow; each side remembers how many it has used. */
#include <stdlib.h>

#include "osc_nicstride/check/check.h"
#include "osc_nicstride/window/control.h"
#include "osc_nicstride/sync/fence.h"
#include "osc_nicstride/protocol/epoch.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/queue/wait.h"

#include "opal/runtime/opal_progress.h"

/* ---- groups ---------------------------------------------------------------------------------- */

/** Finds the ranks of a group of `n` processes in the window's communicator. */
static int group_ranks(const nicstride_module_t *m, ompi_group_t *group, int *ranks, int n)
{
    int *in = calloc((size_t)n + 1, sizeof(int)), rc;

    if (in == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    for (int i = 0; i < n; i++)
        in[i] = i;
    rc = ompi_group_translate_ranks(group, n, in, m->comm->c_local_group, ranks);
    free(in);
    for (int i = 0; i < n && rc == OMPI_SUCCESS; i++)
        if (ranks[i] < 0)
            rc = MPI_ERR_GROUP;
    return rc;
}

/** Begins the epoch of a group: an access epoch if its ranks go to `m->start_ranks`, else an
 *  exposure epoch. */
static int begin(nicstride_module_t *m, const char *call, ompi_group_t *group, int **to, int *n_p)
{
    const int n = ompi_group_size(group);
    int *ranks = malloc((size_t)n * sizeof(int) + 1), *old = NULL;
    const char *wrong = NULL;
    int rc = n <= m->size ? OMPI_SUCCESS : MPI_ERR_GROUP;

    if (ranks == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    if (rc == OMPI_SUCCESS)
        rc = group_ranks(m, group, ranks, n);
    if (rc == OMPI_SUCCESS) {
        OPAL_THREAD_LOCK(&m->lock);
        wrong = to == &m->start_ranks ? nicstride_epoch_start(&m->epoch, ranks, n)
                                      : nicstride_epoch_post(&m->epoch);
        if (wrong == NULL) {
            old = *to;
            *to = ranks;
            *n_p = n;
            ranks = NULL;
        }
        OPAL_THREAD_UNLOCK(&m->lock);
    }
    free(ranks);
    free(old);
    if (rc != OMPI_SUCCESS)
        return nicstride_error(m, call, rc, "the group is not part of the window");
    return wrong != NULL ? nicstride_sync_error(m, call, wrong, -1) : OMPI_SUCCESS;
}

/* ---- notices --------------------------------------------------------------------------------- */

static int notify(nicstride_module_t *m, nicstride_notice_of_t kind, int rank)
{
    nicstride_peer_t *p = nicstride_peer(m, rank);
    const bool post = kind == NICSTRIDE_POST;

    if (p == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    if (p->local >= 0) {
        atomic_fetch_add_explicit(&nicstride_pair(m, p->local, m->node.me)->notices[kind], 1,
                                  memory_order_release);
        return OMPI_SUCCESS;
    }
    if (nicstride_send_note(p, post ? NICSTRIDE_MSG_POST : NICSTRIDE_MSG_COMPLETE, 0,
                            post ? 0 : p->flow.closed))
        return OMPI_SUCCESS;
    return nicstride_error(m, post ? "MPI_Win_post" : "MPI_Win_complete", MPI_ERR_OTHER,
                           "rank %d cannot be reached", rank);
}

/** A wait for a notice. */
typedef struct awaited {
    nicstride_peer_t *p;
    nicstride_notice_of_t kind;
    bool lost; /**< it will never come, or not all of what it announces */
} awaited_t;

/** True if no more notices will come. */
static bool has_failed_locked(nicstride_peer_t *p)
{
    if (p->local >= 0)
        return onic_peer_has_died(p->peer);
    /* With a connection, a loss of the peer is noticed during the wait. */
    nicstride_connect_locked(p);
    return nicstride_peer_failed_locked(p);
}

/** True if there is a notice that is not used, and what was counted before it is applied. One that
 *  came before its sender was lost counts like any other. */
static bool has_come_locked(void *arg)
{
    awaited_t *a = arg;
    nicstride_peer_t *p = a->p;

    a->lost = has_failed_locked(p);
    /* Read after that, so that the last notice before a loss is not missed. */
    if (atomic_load_explicit(&p->notices.from->notices[a->kind], memory_order_acquire) ==
        p->notices.used[a->kind])
        return a->lost;
    /* A target that posts again has waited for the operations of the last epoch. */
    if (a->kind == NICSTRIDE_POST)
        nicstride_tx_known(&p->flow.tx, p->flow.closed);
    else if (!nicstride_is_applied_locked(p))
        return a->lost = nicstride_peer_failed_locked(p);
    a->lost = false;
    return true;
}

/** Waits for the notices of all processes that can give one, so that none is left for another
 *  epoch. */
static int await(nicstride_module_t *m, const char *call, nicstride_notice_of_t kind,
                 const int *ranks, int n)
{
    int rc = OMPI_SUCCESS;

    for (int i = 0; i < n; i++) {
        awaited_t a = {.p = nicstride_peer(m, ranks[i]), .kind = kind};

        if (a.p == NULL)
            return OMPI_ERR_OUT_OF_RESOURCE;
        nicstride_wait(NULL, NICSTRIDE_WAKE_NOT, has_come_locked, &a);
        if (atomic_load_explicit(&a.p->notices.from->notices[kind], memory_order_relaxed) !=
            a.p->notices.used[kind])
            a.p->notices.used[kind]++;
        if (a.lost && rc == OMPI_SUCCESS)
            rc = nicstride_error(m, call, nicstride_lost_class(a.p->peer),
                                 onic_peer_has_died(a.p->peer) ? "rank %d has died"
                                                               : "rank %d cannot be reached",
                                 a.p->rank);
    }
    return nicstride_unless_broken(m, call, rc);
}

/* ---- access epoch ---------------------------------------------------------------------------- */

static int mpi_start(ompi_group_t *group, int assert, ompi_win_t *win)
{
    nicstride_module_t *m = nicstride_module(win);
    const int rc = begin(m, "MPI_Win_start", group, &m->start_ranks, &m->start_n);

    if (rc != OMPI_SUCCESS || (assert &MPI_MODE_NOCHECK) != 0)
        return rc;
    return await(m, "MPI_Win_start", NICSTRIDE_POST, m->start_ranks, m->start_n);
}

static int mpi_complete(ompi_win_t *win)
{
    nicstride_module_t *m = nicstride_module(win);
    const char *wrong;
    int error, n, left = 0;
    bool sent = false;

    OPAL_THREAD_LOCK(&m->lock);
    wrong = nicstride_epoch_started(&m->epoch);
    n = m->start_n;
    OPAL_THREAD_UNLOCK(&m->lock);
    if (wrong != NULL)
        return nicstride_sync_error(m, "MPI_Win_complete", wrong, -1);
    for (int i = 0; i < n; i++) {
        const int rank = m->start_ranks[i];
        nicstride_peer_t *p = nicstride_peer(m, rank);

        if (p != NULL && nicstride_complete_along(p))
            continue;
        m->start_ranks[i] = m->start_ranks[left];
        m->start_ranks[left++] = rank;
    }
    error = nicstride_close_epoch(m, &sent);
    nicstride_check_over(m, -1, false);
    for (int i = 0; i < left; i++) {
        int rc = notify(m, NICSTRIDE_COMPLETE, m->start_ranks[i]);

        if (error == OMPI_SUCCESS)
            error = rc;
    }
    OPAL_THREAD_LOCK(&m->lock);
    nicstride_epoch_complete(&m->epoch, m->start_ranks, n);
    m->start_n = 0;
    OPAL_THREAD_UNLOCK(&m->lock);
    return nicstride_unless_broken(m, "MPI_Win_complete", error);
}

/* ---- exposure epoch -------------------------------------------------------------------------- */

static int mpi_post(ompi_group_t *group, int assert, ompi_win_t *win)
{
    nicstride_module_t *m = nicstride_module(win);
    int rc = begin(m, "MPI_Win_post", group, &m->post_ranks, &m->post_n);

    atomic_thread_fence(memory_order_seq_cst);
    if (rc != OMPI_SUCCESS || (assert &MPI_MODE_NOCHECK) != 0)
        return rc;
    /* All that can be reached are told, as they wait for it. */
    for (int i = 0; i < m->post_n; i++) {
        int told = notify(m, NICSTRIDE_POST, m->post_ranks[i]);

        if (rc == OMPI_SUCCESS)
            rc = told;
    }
    return rc;
}

static const char *not_exposed(nicstride_module_t *m)
{
    const char *wrong;

    NICSTRIDE_LOCKED(m, wrong = nicstride_epoch_exposed(&m->epoch));
    return wrong;
}

/** Waits for everything that is still missing. */
static int end_exposure(nicstride_module_t *m, const char *call)
{
    int rc = await(m, call, NICSTRIDE_COMPLETE, m->post_ranks, m->post_n);
    const int error = nicstride_take_applied_error(m, call);

    atomic_thread_fence(memory_order_seq_cst);
    nicstride_check_unexposed(m);
    OPAL_THREAD_LOCK(&m->lock);
    nicstride_epoch_unexpose(&m->epoch);
    m->post_n = 0;
    OPAL_THREAD_UNLOCK(&m->lock);
    return rc == OMPI_SUCCESS ? error : rc;
}

static int mpi_wait(ompi_win_t *win)
{
    nicstride_module_t *m = nicstride_module(win);
    const char *wrong = not_exposed(m);

    if (wrong != NULL)
        return nicstride_sync_error(m, "MPI_Win_wait", wrong, -1);
    return end_exposure(m, "MPI_Win_wait");
}

static int mpi_test(ompi_win_t *win, int *flag)
{
    nicstride_module_t *m = nicstride_module(win);
    const char *wrong = not_exposed(m);

    *flag = 0;
    if (wrong != NULL)
        return nicstride_sync_error(m, "MPI_Win_test", wrong, -1);
    opal_progress();
    for (int i = 0; i < m->post_n; i++) {
        awaited_t a = {.p = nicstride_peer(m, m->post_ranks[i]), .kind = NICSTRIDE_COMPLETE};
        bool come;

        if (a.p == NULL)
            return OMPI_ERR_OUT_OF_RESOURCE;
        onic_transport_lock();
        come = has_come_locked(&a);
        onic_transport_unlock();
        if (!come)
            return OMPI_SUCCESS;
    }
    *flag = 1;
    /* Nothing is missing that could still come. */
    return end_exposure(m, "MPI_Win_test");
}

void nicstride_active_calls(ompi_osc_base_module_t *calls)
{
    calls->osc_fence = nicstride_win_fence;
    calls->osc_start = mpi_start;
    calls->osc_complete = mpi_complete;
    calls->osc_post = mpi_post;
    calls->osc_wait = mpi_wait;
    calls->osc_test = mpi_test;
}
