/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Waiting for operations that go by message, until they are locally complete, or done at the
 *  target. */
#include <stdatomic.h>

#include "osc_nicstride/sync/fence.h"
#include "osc_nicstride/window/control.h"

#include "osc_nicstride/queue/flow.h"
#include "osc_nicstride/queue/presence.h"
#include "osc_nicstride/queue/wait.h"
#include "osc_nicstride/window/module.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/queue/operation.h"

/** True if all operations up to the goal are locally complete. They end in any order, but the list
 *  has them in the order in which they began. */
static bool ended_locked(const nicstride_peer_t *p, uint64_t goal)
{
    return TAILQ_EMPTY(&p->queue.live) || TAILQ_FIRST(&p->queue.live)->number > goal;
}

/** A waiting flush. */
typedef struct flush {
    nicstride_peer_t *p;
    uint64_t goal;
    bool mine;  /* remote: it is this flush's turn */
    bool given; /* local: the transport must have nothing left to send, either */
    bool lands; /* remote: errors are left to other calls */
    int error;  /* result: what happened to the flushed operations, or 0 */
} flush_t;

/** True if what is awaited will never happen. A message that needs the lock of a dead process is
 *  deferred for ever. */
static bool is_hopeless_locked(nicstride_peer_t *p)
{
    return nicstride_peer_failed_locked(p) || nicstride_is_broken(p->module);
}

static void take_error_locked(flush_t *f)
{
    f->error = nicstride_tx_take_error(&f->p->flow.tx);
    if (f->error == 0 && f->p->failed)
        f->error = nicstride_lost_class(f->p->peer);
}

static bool flushed_locally(void *arg)
{
    flush_t *f = arg;

    nicstride_pump_locked(f->p);
    nicstride_send_waiting_locked(f->p);
    if ((!ended_locked(f->p, f->goal) ||
         (f->given && (f->p->flow.posting > 0 || !nicstride_rows_landed_locked(f->p)))) &&
        !is_hopeless_locked(f->p))
        return false;
    take_error_locked(f);
    return true;
}

/** Waits for local completion of everything started before. Returns the error class, or 0. */
static int flush_local(nicstride_peer_t *p, bool given)
{
    flush_t f = {.p = p, .given = given};

    onic_transport_lock();
    f.goal = p->queue.enqueued;
    if (p->queue.urgent < f.goal)
        p->queue.urgent = f.goal;
    onic_transport_unlock();
    nicstride_wait(p, NICSTRIDE_WAKE_IF_NEEDED, flushed_locally, &f);
    return f.error;
}

static bool is_over_locked(nicstride_peer_t *p)
{
    return (ended_locked(p, p->queue.goal) && nicstride_tx_idle(&p->flow.tx) &&
            nicstride_rows_landed_locked(p)) ||
           is_hopeless_locked(p);
}

static void end_remote_locked(flush_t *f)
{
    nicstride_peer_t *p = f->p;

    p->queue.flushing = false;
    nicstride_answered_locked(p);
    /* A thread that sees this number must also see the data that has arrived. */
    if (!p->failed && !nicstride_is_broken(p->module)) {
        if (p->queue.goal == p->queue.enqueued)
            nicstride_order_landed(&p->order);
        __atomic_store_n(&p->queue.clean, p->queue.goal, __ATOMIC_RELEASE);
    }
    if (!f->lands)
        take_error_locked(f);
    nicstride_pump_locked(p);
}

/** Only one thread at a time flushes, so that the goal does not move. */
static bool flushed_remotely(void *arg)
{
    flush_t *f = arg;
    nicstride_peer_t *p = f->p;
    bool over = f->mine && is_over_locked(p);

    if (!f->mine && p->queue.flushing)
        return false;
    if (!f->mine) {
        f->mine = p->queue.flushing = true;
        p->queue.goal = p->queue.enqueued;
    }
    if (!over) {
        nicstride_pump_locked(p);
        nicstride_ask_locked(p, p->queue.goal);
        if (nicstride_waits_for_others(p))
            nicstride_send_waiting_locked(p);
        over = is_over_locked(p);
    }
    if (over)
        end_remote_locked(f);
    return over;
}

/** Waits until the target has acknowledged everything started before. Returns as above. */
static int flush_remote(nicstride_peer_t *p)
{
    flush_t f = {.p = p};

    /* In active target the target comes by itself, so its helper need not be woken. */
    nicstride_wait(p,
                   nicstride_is_active(p->module) ? NICSTRIDE_WAKE_NOT : NICSTRIDE_WAKE_IF_NEEDED,
                   flushed_remotely, &f);
    return f.error;
}

const char *nicstride_error_reason(int error)
{
    switch (error) {
    case MPI_ERR_RMA_RANGE:
        return "the address is outside of the window";
    case MPI_ERR_TYPE:
        return "the element type does not fit";
    case MPI_ERR_NO_MEM:
        return "it is out of memory";
    default:
        return "the communication failed";
    }
}

/** Orders stores of direct transfers before whatever shows the target that they are done. If there
 *  are none, this is skipped: waiting for the processor's stores would take a good part of a small
 *  operation's time. */
static void order_stores(const nicstride_peer_t *p)
{
    if (p->rank == p->module->rank || nicstride_is_mapped(p->module, p->rank))
        atomic_thread_fence(memory_order_seq_cst);
}

int nicstride_flush_peer(nicstride_peer_t *p, nicstride_flush_t kind)
{
    int error;

    nicstride_alone_wait(&p->module->alone);
    if (nicstride_is_clean(p)) {
        order_stores(p);
        return OMPI_SUCCESS;
    }

    error = kind == NICSTRIDE_FLUSH_REMOTE ? flush_remote(p)
                                           : flush_local(p, kind == NICSTRIDE_FLUSH_GIVEN);
    order_stores(p);
    if (error == 0)
        return OMPI_SUCCESS;
    return nicstride_error(
        p->module, "An earlier one-sided call", error, "target rank %d: %s", p->rank,
        onic_peer_has_died(p->peer) ? "it has died" : nicstride_error_reason(error));
}

void nicstride_land(nicstride_peer_t *p)
{
    flush_t f = {.p = p, .lands = true};

    nicstride_wait(p, NICSTRIDE_WAKE_IF_NEEDED, flushed_remotely, &f);
    order_stores(p);
}

/** Sends what waits for the peer, and asks it for an acknowledgement if the flush is remote. */
static void start_one(nicstride_peer_t *p, nicstride_flush_t kind)
{
    const bool remote = kind == NICSTRIDE_FLUSH_REMOTE;

    onic_transport_lock();
    nicstride_pump_locked(p);
    if (remote)
        nicstride_ask_locked(p, p->queue.enqueued);
    nicstride_send_waiting_locked(p);
    if (kind != NICSTRIDE_FLUSH_LOCAL)
        (void)nicstride_rows_landed_locked(p);
    onic_transport_unlock();
}

int nicstride_flush_all_peers(nicstride_module_t *m, nicstride_flush_t kind)
{
    int error = OMPI_SUCCESS;
    nicstride_peer_t *p;
    bool any = false;

    nicstride_alone_wait(&m->alone);
    for (p = nicstride_peers(m); p != NULL; p = p->next) {
        if (nicstride_is_clean(p))
            continue;
        start_one(p, kind);
        any = true;
    }
    for (p = any ? nicstride_peers(m) : NULL; p != NULL; p = p->next) {
        const int rc = nicstride_is_clean(p) ? OMPI_SUCCESS : nicstride_flush_peer(p, kind);

        if (error == OMPI_SUCCESS)
            error = rc;
    }
    atomic_thread_fence(memory_order_seq_cst);
    return error;
}
