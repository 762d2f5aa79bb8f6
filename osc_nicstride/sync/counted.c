/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stddef.h>
#include <stdatomic.h>

#include "osc_nicstride/sync/counted.h"
#include "osc_nicstride/window/control.h"
#include "osc_nicstride/window/errors.h"
#include "osc_nicstride/sync/flush.h"
#include "osc_nicstride/channel/lost.h"
#include "osc_nicstride/channel/start.h"
#include "osc_nicstride/channel/wait.h"
#include "osc_nicstride/channel/send.h"

/* ---- origin ---------------------------------------------------------------------------------- */

/** How many credits the peer is to wait for. */
static void tell_locked(nicstride_module_t *m, nicstride_peer_t *p)
{
    /* What can not get there is not to be waited for there. */
    const uint64_t count = p->failed ? p->tx.acked : p->tx.sent;

    if (p->told == count)
        return;
    p->told = count;
    if (p->local >= 0)
        atomic_store_explicit(&nicstride_ctl_counts(m, p->local)[m->node.me], p->told,
                              memory_order_release);
}

int nicstride_close_epoch(nicstride_module_t *m)
{
    const int error = nicstride_hand_over_all(m);

    onic_wire_lock();
    for (int i = 0; i < m->size; i++) {
        nicstride_peer_t *p = m->peer[i];

        if (p == NULL)
            continue;
        tell_locked(m, p);
        p->trial.cell = NULL;
        if (!p->failed)
            __atomic_store_n(&p->clean, p->enqueued, __ATOMIC_RELEASE);
    }
    onic_wire_unlock();
    /* Stores of direct transfers come before whatever tells the target about them. */
    atomic_thread_fence(memory_order_seq_cst);
    return error;
}

bool nicstride_complete_along(nicstride_module_t *m, nicstride_peer_t *p)
{
    nicstride_msg_t msg;
    bool can;

    if (p->local >= 0)
        return false;
    nicstride_msg_init(&msg, NICSTRIDE_MSG_COMPLETE, m->info[p->rank].win, (uint32_t)m->rank);
    onic_wire_lock();
    nicstride_pump_locked(p);
    can = p->head == NULL && !p->failed;
    if (can) {
        tell_locked(m, p);
        msg.count = p->told;
        nicstride_tell_locked(p, &msg);
        can = !p->failed;
    }
    onic_wire_unlock();
    return can;
}

void nicstride_settle(nicstride_peer_t *p)
{
    onic_wire_lock();
    nicstride_tx_settle(&p->tx, p->quota, p->told);
    nicstride_pump_all_locked(p->process);
    onic_wire_unlock();
}

static bool has_heard(void *arg)
{
    nicstride_peer_t *p = arg;

    return p->tx.heard == p->tx.sent || nicstride_peer_failed_locked(p);
}

static void ask_again(nicstride_module_t *m, nicstride_peer_t *p)
{
    nicstride_msg_t msg;

    nicstride_msg_init(&msg, NICSTRIDE_MSG_FLUSH, m->info[p->rank].win, (uint32_t)m->rank);
    onic_wire_lock();
    if (!p->failed && nicstride_tx_ask_again(&p->tx, &msg.count))
        nicstride_tell_locked(p, &msg);
    onic_wire_unlock();
}

void nicstride_hear_all(nicstride_module_t *m)
{
    /* Every target is asked before any is waited for. */
    for (int i = 0; i < m->size; i++) {
        if (m->peer[i] != NULL)
            ask_again(m, m->peer[i]);
    }
    for (int i = 0; i < m->size; i++) {
        nicstride_peer_t *p = m->peer[i];
        int error;

        if (p == NULL)
            continue;
        nicstride_wait_until(p, has_heard, p);
        error = nicstride_tx_take_error(&p->tx);
        if (error != 0)
            (void)nicstride_error(m, "An earlier one-sided call", error, "target rank %d: %s", i,
                                  nicstride_error_reason(error));
    }
}

/* ---- target ---------------------------------------------------------------------------------- */

/** Messages that a process had sent here, in all, when it last closed an epoch. */
static uint64_t count_of(const nicstride_module_t *m, const nicstride_peer_t *p)
{
    if (p->local < 0)
        return p->complete_count;
    return atomic_load_explicit(&nicstride_ctl_counts(m, m->node.me)[p->local],
                                memory_order_acquire);
}

/** A wait for what one origin has sent. */
typedef struct applied {
    nicstride_module_t *m;
    nicstride_peer_t *p;
    bool lost;
} applied_t;

static bool is_applied_locked(void *arg)
{
    applied_t *a = arg;

    if (a->p->rx.applied >= count_of(a->m, a->p))
        return true;
    a->lost = nicstride_peer_failed_locked(a->p);
    return a->lost;
}

bool nicstride_is_applied(nicstride_module_t *m, nicstride_peer_t *p)
{
    applied_t a = {.m = m, .p = p};
    bool applied;

    onic_wire_lock();
    applied = is_applied_locked(&a);
    onic_wire_unlock();
    return applied;
}

static int lost_error(const nicstride_module_t *m, const char *call)
{
    return nicstride_error(m, call,
                           nicstride_node_has_lost(m) ? ONIC_ERR_PROC_FAILED : MPI_ERR_OTHER,
                           "a process was lost whose operations have not all come");
}

int nicstride_await_applied(nicstride_module_t *m, const char *call, nicstride_peer_t *p)
{
    applied_t a = {.m = m, .p = p};

    nicstride_wait_polling(is_applied_locked, &a);
    return a.lost ? lost_error(m, call) : OMPI_SUCCESS;
}

int nicstride_take_applied_error(nicstride_module_t *m, const char *call)
{
    int error;

    onic_wire_lock();
    error = m->applied_error;
    m->applied_error = 0;
    onic_wire_unlock();
    if (error == 0)
        return OMPI_SUCCESS;
    return nicstride_error(m, call, error, "an operation of another process failed here: %s",
                           nicstride_error_reason(error));
}

/* ---- fences ---------------------------------------------------------------------------------- */

/** A wait within a fence. */
typedef struct arrival {
    nicstride_module_t *m;
    bool counted;
    int next;     /**< process of the node whose operations are looked at */
    uint64_t far; /**< credits used by the other nodes, in all */
    bool lost;
    int error; /**< of an operation that was applied here */
} arrival_t;

static bool node_has_entered(void *arg)
{
    arrival_t *a = arg;

    if (nicstride_fence_entered(&a->m->fence))
        return true;
    /* Those who live hear of each other through all others. */
    a->lost = nicstride_node_has_lost(a->m);
    return a->lost;
}

/** Has everything been applied that the processes of the node have sent? */
static bool near_applied_locked(arrival_t *a)
{
    nicstride_module_t *m = a->m;

    for (; a->next < m->node.n; a->next++) {
        nicstride_peer_t *p = m->peer[m->node.ranks[a->next]];
        const uint64_t count = atomic_load_explicit(&nicstride_ctl_counts(m, m->node.me)[a->next],
                                                    memory_order_relaxed);

        if (count == 0 || (p != NULL && p->rx.applied >= count))
            continue;
        if (!nicstride_rank_failed_locked(m, m->node.ranks[a->next]))
            return false;
        a->lost = true;
    }
    return true;
}

/** Is somebody lost of whom something is missing? The sum does not say of whom. */
static bool far_is_lost_locked(const nicstride_module_t *m)
{
    bool lost = false;

    for (int i = 0; i < m->size && !lost && onic_wire_losses() > 0; i++)
        lost =
            m->peer[i] != NULL && m->peer[i]->local < 0 && nicstride_peer_failed_locked(m->peer[i]);
    return lost;
}

static bool all_applied(void *arg)
{
    arrival_t *a = arg;

    if (a->counted && !near_applied_locked(a))
        return false;
    if (a->m->applied_far >= a->far)
        return true;
    a->lost = far_is_lost_locked(a->m);
    return a->lost;
}

static bool node_has_entered_and_applied(void *arg)
{
    arrival_t *a = arg;

    return node_has_entered(a) && (a->lost || all_applied(a));
}

static bool is_done(void *arg)
{
    const arrival_t *a = arg;

    return nicstride_fence_is_done(&a->m->fence, a->next) ||
           onic_peer_has_died(a->m->wire[a->m->node.ranks[a->next]]);
}

void nicstride_await_done(nicstride_module_t *m, int target)
{
    arrival_t a = {.m = m, .next = m->node.index[target]};
    nicstride_peer_t *p = nicstride_peer(m, target);

    nicstride_wait_polling(is_done, &a);
    if (p != NULL)
        nicstride_settle(p);
    __atomic_store_n(&m->done[target], m->fenced, __ATOMIC_RELEASE);
}

/** Waits until every process of the node is done: memory of theirs may be read without a call. */
static void await_all_done(nicstride_module_t *m)
{
    for (int i = 0; i < m->size; i++) {
        if (!nicstride_is_past_fence(m, i))
            nicstride_await_done(m, i);
    }
}

/** All members are on this node. Where no message is sent everything is there once all have
 *  entered. */
static int fence_on_node(nicstride_module_t *m, arrival_t *a)
{
    nicstride_fence_begin(&m->fence);
    nicstride_wait_polling(a->counted ? node_has_entered_and_applied : node_has_entered, a);
    atomic_thread_fence(memory_order_seq_cst);
    if (!m->by_message)
        return OMPI_SUCCESS;
    if (a->counted)
        a->error = nicstride_take_applied_error(m, "MPI_Win_fence");
    nicstride_fence_set_done(&m->fence);
    m->fenced = m->fence.number;
    __atomic_store_n(&m->done[m->rank], m->fenced, __ATOMIC_RELEASE);
    if (m->flavor == MPI_WIN_FLAVOR_SHARED)
        await_all_done(m);
    return OMPI_SUCCESS;
}

static int barrier(nicstride_module_t *m)
{
    int rc = m->comm->c_coll->coll_barrier(m->comm, m->comm->c_coll->coll_barrier_module);

    atomic_thread_fence(memory_order_seq_cst);
    return rc;
}

/** How many credits have all processes of other nodes used here, in all? Nobody knows
 * before everybody has entered the fence. */
static int sum_counts(nicstride_module_t *m, uint64_t *sum_p)
{
    ompi_communicator_t *comm = m->comm;

    onic_wire_lock();
    for (int i = 0; i < m->size; i++) {
        const nicstride_peer_t *p = m->peer[i];

        m->counts[i] = p != NULL && p->local < 0 ? p->told : 0;
    }
    onic_wire_unlock();
    return comm->c_coll->coll_reduce_scatter_block(m->counts, sum_p, 1, MPI_UINT64_T, MPI_SUM, comm,
                                                   comm->c_coll->coll_reduce_scatter_block_module);
}

/** Members are on several nodes. A sum says nothing of pairs, so nobody may send for the next epoch
 *  before all have applied those of this one: the barrier at the end. */
static int fence_across_nodes(nicstride_module_t *m, arrival_t *a)
{
    int rc;

    /* Open MPI would wait for the dead. */
    if (nicstride_node_has_lost(m)) {
        a->lost = true;
        return OMPI_SUCCESS;
    }
    if (!a->counted)
        return barrier(m);
    rc = sum_counts(m, &a->far);
    if (rc != OMPI_SUCCESS)
        return rc;
    nicstride_wait_polling(all_applied, a);
    /* Who has left the barrier may send for the next epoch. */
    a->error = nicstride_take_applied_error(m, "MPI_Win_fence");
    rc = barrier(m);
    for (int i = 0; i < m->size && rc == OMPI_SUCCESS; i++) {
        if (m->peer[i] != NULL)
            nicstride_settle(m->peer[i]);
    }
    return rc;
}

/** Nothing has come before this fence that it would have to tell of; what comes while others have
 *  left it and this process has not is of the next epoch. */
static void forget_applied_error(nicstride_module_t *m)
{
    onic_wire_lock();
    m->applied_error = 0;
    onic_wire_unlock();
}

int nicstride_fence_all(nicstride_module_t *m, bool counted)
{
    arrival_t a = {.m = m, .counted = counted};
    int error = counted ? nicstride_close_epoch(m) : OMPI_SUCCESS, rc;

    atomic_thread_fence(memory_order_seq_cst);
    if (!counted)
        forget_applied_error(m);
    rc = m->node.n == m->size ? fence_on_node(m, &a) : fence_across_nodes(m, &a);
    if (rc == OMPI_SUCCESS && a.lost)
        rc = lost_error(m, "MPI_Win_fence");
    if (error == OMPI_SUCCESS)
        error = rc;
    return nicstride_unless_broken(m, "MPI_Win_fence", error == OMPI_SUCCESS ? a.error : error);
}
