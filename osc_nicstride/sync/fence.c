/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdatomic.h>

#include "osc_nicstride/sync/fence.h"
#include "osc_nicstride/check/check.h"
#include "osc_nicstride/window/control.h"
#include "osc_nicstride/protocol/epoch.h"
#include "osc_nicstride/queue/flow.h"
#include "osc_nicstride/queue/wait.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/queue/send.h"

/* ---- origin ---------------------------------------------------------------------------------- */

/** Publishes the number of messages for which the peer must wait. True if there are more than when
 *  an epoch was last closed. */
static bool publish_count_locked(nicstride_peer_t *p)
{
    const nicstride_module_t *m = p->module;
    /* A failed peer must not wait for messages that will never arrive. */
    const uint64_t count = p->failed ? p->flow.tx.acked : p->flow.tx.sent;

    if (p->flow.closed == count)
        return false;
    p->flow.closed = count;
    if (p->local >= 0)
        atomic_store_explicit(&nicstride_pair(m, p->local, m->node.me)->count, p->flow.closed,
                              memory_order_release);
    return true;
}

int nicstride_close_epoch(nicstride_module_t *m, bool *sent_p)
{
    const int error = nicstride_flush_all_peers(m, NICSTRIDE_FLUSH_GIVEN);

    if (nicstride_peers(m) != NULL) {
        onic_transport_lock();
        for (nicstride_peer_t *p = nicstride_peers(m); p != NULL; p = p->next) {
            *sent_p = publish_count_locked(p) || *sent_p;
            if (p->failed)
                continue;
            nicstride_order_landed(&p->order);
            __atomic_store_n(&p->queue.clean, p->queue.enqueued, __ATOMIC_RELEASE);
        }
        onic_transport_unlock();
    }
    /* Stores of direct transfers must precede whatever shows the target that they are done. */
    atomic_thread_fence(memory_order_seq_cst);
    return error;
}

bool nicstride_complete_along(nicstride_peer_t *p)
{
    bool can;

    if (p->local >= 0)
        return false;
    onic_transport_lock();
    nicstride_pump_locked(p);
    can = STAILQ_EMPTY(&p->queue.waiting) && !p->failed && nicstride_rows_landed_locked(p);
    if (can) {
        (void)publish_count_locked(p);
        nicstride_send_note_locked(p, NICSTRIDE_MSG_COMPLETE, 0, p->flow.closed);
        can = !p->failed;
    }
    onic_transport_unlock();
    return can;
}

/* ---- target ---------------------------------------------------------------------------------- */

bool nicstride_is_applied_locked(const nicstride_peer_t *p)
{
    return p->flow.rx.applied >=
           atomic_load_explicit(&p->notices.from->count, memory_order_acquire);
}

int nicstride_take_applied_error(nicstride_module_t *m, const char *call)
{
    int error;

    onic_transport_lock();
    error = m->applied_error;
    m->applied_error = 0;
    onic_transport_unlock();
    if (error == 0 || call == NULL)
        return OMPI_SUCCESS;
    return nicstride_error(m, call, error, "an operation of another process failed here: %s",
                           nicstride_error_reason(error));
}

/* ---- fences ---------------------------------------------------------------------------------- */

/** A wait within a fence. */
typedef struct arrival {
    nicstride_module_t *m;
    int next; /**< the process of the node whose operations are checked next */
    int lost; /**< an error class if the wait cannot end */
} arrival_t;

/** Sends to the first process of another node. Also connects to the node that sends the next
 *  message, so that its loss is noticed during the wait. */
static void send_to_node_locked(nicstride_module_t *m)
{
    nicstride_fence_t *f = &m->fence;
    unsigned step;
    const int rank = m->firsts[nicstride_fence_to(f, &step)];
    nicstride_peer_t *p = nicstride_peer_locked(m, rank);
    nicstride_peer_t *from = nicstride_peer_locked(m, m->firsts[nicstride_fence_from(f)]);

    if (p == NULL || from == NULL) {
        nicstride_fence_lose(f, MPI_ERR_NO_MEM);
        return;
    }
    nicstride_connect_locked(from);
    nicstride_msg_t msg = nicstride_note(p, NICSTRIDE_MSG_FENCE, step, f->number);
    msg.dtype = f->marked;
    msg.status = nicstride_fence_lost(f);
    nicstride_send_header_locked(p, &msg);
}

/** True if a process of the node has died. */
static bool node_has_lost(const nicstride_module_t *m)
{
    bool lost = false;

    for (int i = 0; i < m->node.n && !lost && onic_transport_losses() > 0; i++)
        lost = onic_peer_has_died(m->near[i]);
    return lost;
}

/** The error class of a loss after which not all will enter, or 0. */
static int loss_locked(nicstride_module_t *m)
{
    const int from = nicstride_fence_from(&m->fence);
    nicstride_peer_t *p;

    if (from < 0)
        return node_has_lost(m) ? ONIC_ERR_PROC_FAILED : 0;
    p = m->peer[m->firsts[from]]; /* made when this process sent */
    return nicstride_peer_failed_locked(p) ? nicstride_lost_class(p->peer) : 0;
}

static bool have_entered(void *arg)
{
    arrival_t *a = arg;
    nicstride_fence_t *f = &a->m->fence;

    for (;;) {
        int loss;

        switch (nicstride_fence_next(f)) {
        case NICSTRIDE_FENCE_SEND:
            send_to_node_locked(a->m);
            break;
        case NICSTRIDE_FENCE_WAIT:
            loss = loss_locked(a->m);
            if (loss == 0)
                return false;
            nicstride_fence_lose(f, loss);
            break;
        case NICSTRIDE_FENCE_LOST:
            a->lost = nicstride_fence_lost(f);
            return true;
        case NICSTRIDE_FENCE_OVER:
            return true;
        }
    }
}

/** True if everything has been applied here, for a window on one node. */
static bool all_applied_locked(arrival_t *a)
{
    nicstride_module_t *m = a->m;

    for (; a->next < m->node.n; a->next++) {
        const uint64_t count = atomic_load_explicit(&nicstride_pair(m, m->node.me, a->next)->count,
                                                    memory_order_relaxed);
        nicstride_peer_t *p = count > 0 ? nicstride_peer_locked(m, m->node.ranks[a->next]) : NULL;

        if (count == 0 || (p != NULL && p->flow.rx.applied >= count))
            continue;
        if (p != NULL && !nicstride_peer_failed_locked(p))
            return false;
        a->lost = p != NULL ? nicstride_lost_class(p->peer) : MPI_ERR_NO_MEM;
    }
    return true;
}

static bool have_entered_and_applied(void *arg)
{
    arrival_t *a = arg;

    return have_entered(a) && (a->lost != 0 || !a->m->fence.marked || all_applied_locked(a));
}

/** True if process `next` of the node has applied what this one had counted for it, or never
 *  will. */
static bool is_done_locked(void *arg)
{
    const arrival_t *a = arg;
    nicstride_peer_t *p = a->m->peer[a->m->node.ranks[a->next]];

    if (!nicstride_fence_is_done(&a->m->fence, a->next, a->m->fenced) &&
        !onic_peer_has_died(a->m->near[a->next]))
        return false;
    if (p != NULL)
        nicstride_tx_known(&p->flow.tx, p->flow.closed);
    return true;
}

void nicstride_await_done(nicstride_module_t *m, int target)
{
    arrival_t a = {.m = m, .next = onic_node_index(&m->node, target)};

    nicstride_wait(NULL, NICSTRIDE_WAKE_NOT, is_done_locked, &a);
    __atomic_store_n(&m->done[(size_t)target * m->done_step], m->fenced, __ATOMIC_RELEASE);
}

/** Leaves a fence of a window on one node. */
static int leave_on_node(nicstride_module_t *m, bool counted)
{
    /* Others may have begun the next epoch already, to which an error belongs then. */
    if (!m->fence.marked)
        return OMPI_SUCCESS;
    const int error = counted ? nicstride_take_applied_error(m, "MPI_Win_fence") : OMPI_SUCCESS;

    nicstride_fence_set_done(&m->fence);
    m->fenced = m->fence.number;
    __atomic_store_n(&m->done[(size_t)m->rank * m->done_step], m->fenced, __ATOMIC_RELEASE);
    /* The memory of others may be read without a call. */
    for (int i = 0; i < m->size && m->flavor == MPI_WIN_FLAVOR_SHARED; i++)
        if (!nicstride_is_past_fence(m, i))
            nicstride_await_done(m, i);
    return error;
}

int nicstride_meet(nicstride_module_t *m)
{
    arrival_t a = {.m = m};

    nicstride_fence_begin(&m->fence, false);
    nicstride_wait(NULL, NICSTRIDE_WAKE_NOT, have_entered, &a);
    return a.lost;
}

int nicstride_fence_all(nicstride_module_t *m, bool counted)
{
    const bool one_node = m->fence.nodes == 1;
    arrival_t a = {.m = m};
    int error = OMPI_SUCCESS, applied = OMPI_SUCCESS;
    bool sent = false;

    if (counted)
        error = one_node ? nicstride_close_epoch(m, &sent)
                         : nicstride_flush_all_peers(m, NICSTRIDE_FLUSH_REMOTE);
    else /* Errors that come after others have left, but before this process has, belong to the next
            epoch. */
        (void)nicstride_take_applied_error(m, NULL);
    atomic_thread_fence(memory_order_seq_cst);
    nicstride_fence_begin(&m->fence, one_node ? sent : error != OMPI_SUCCESS);
    nicstride_wait(NULL, NICSTRIDE_WAKE_NOT,
                   counted && one_node ? have_entered_and_applied : have_entered, &a);
    atomic_thread_fence(memory_order_seq_cst);
    if (one_node)
        applied = leave_on_node(m, counted);
    else if (counted && m->fence.marked)
        applied = nicstride_take_applied_error(m, "MPI_Win_fence");
    if (error == OMPI_SUCCESS && a.lost != 0)
        error = nicstride_error(m, "MPI_Win_fence", a.lost, "a process of the window was lost");
    return nicstride_unless_broken(m, "MPI_Win_fence", error == OMPI_SUCCESS ? applied : error);
}

int nicstride_win_fence(int assert, ompi_win_t *win)
{
    nicstride_module_t *m = nicstride_module(win);
    const char *wrong;
    int rc;

    NICSTRIDE_LOCKED(m, wrong = nicstride_epoch_fence(&m->epoch, false));
    if (wrong != NULL)
        return nicstride_sync_error(m, "MPI_Win_fence", wrong, -1);
    rc = nicstride_fence_all(m, (assert &MPI_MODE_NOPRECEDE) == 0);
    nicstride_check_fence(m, (assert &MPI_MODE_NOPRECEDE) != 0);
    /* Errors that came until now belong to the epoch that ends here. */
    if (assert & MPI_MODE_NOSUCCEED)
        NICSTRIDE_LOCKED(m, (void)nicstride_epoch_fence(&m->epoch, true));
    return rc;
}

/* ---- access ---------------------------------------------------------------------------------- */

int nicstride_check_passive(nicstride_module_t *m, const char *call, int target)
{
    const char *wrong;

    NICSTRIDE_LOCKED(m, wrong = nicstride_epoch_passive(&m->epoch, (uint32_t)target));
    if (wrong != NULL)
        return nicstride_sync_error(m, call, wrong, target);
    return OMPI_SUCCESS;
}
