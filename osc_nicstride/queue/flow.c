/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Flow control: what may be sent and asked for; see flow.h. */
#include "osc_nicstride/queue/flow.h"
#include "osc_nicstride/queue/lazy_lock.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/queue/reply.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/window/state.h"
#include "osc_nicstride/window/used.h"

/* ---- asking ---------------------------------------------------------------------------------- */

/** Nobody would acknowledge what is out, in this window or others: asks. */
static void ask_for_credit(nicstride_peer_t *p)
{
    if (!nicstride_tx_is_short(&p->flow.tx, p->quota, p->flow.wants))
        return;
    for (nicstride_peer_t *other = p->process->peers; other != NULL; other = other->next_window) {
        uint64_t upto;

        /* What is kept for a lock was not sent yet; what lies in a slot nobody else looks for. */
        nicstride_lazy_lock_ask_locked(other);
        nicstride_look_locked(other);
        if (!other->failed && nicstride_tx_ask(&other->flow.tx, &upto))
            nicstride_send_note_locked(other, NICSTRIDE_MSG_FLUSH, 0, upto);
    }
}

void nicstride_ask_locked(nicstride_peer_t *p, uint64_t goal)
{
    const nicstride_op_t *next = p->queue.head;
    uint64_t upto;

    if ((next == NULL || (next->number > goal && next->sent == 0)) &&
        nicstride_tx_ask(&p->flow.tx, &upto))
        nicstride_send_note_locked(p, NICSTRIDE_MSG_FLUSH, 0, upto);
}

/* ---- sending what is queued ------------------------------------------------------------------ */

/** May the first operation of the queue go on? Not past one that a flush waits for, since the flush
 *  would never end while other threads keep sending; unless a local flush waits for it. */
static bool may_send(const nicstride_peer_t *p)
{
    return p->queue.head != NULL && !(p->queue.flushing && p->queue.head->number > p->queue.goal &&
                                      p->queue.head->number > p->queue.urgent);
}

void nicstride_pump_queue_locked(nicstride_peer_t *p)
{
    nicstride_look_locked(p);
    /* To a failed peer nothing is sent, nor does what is queued wait for its turn. */
    while (p->failed ? p->queue.head != NULL : may_send(p)) {
        nicstride_op_t *op = p->queue.head;
        const int rc = p->failed ? OMPI_ERR_UNREACH : nicstride_send_fragment_locked(op);

        if (rc == 0) {
            ask_for_credit(p);
            break;
        }
        if (rc < 0)
            nicstride_op_fail(op);
        if (op->sent == op->size) {
            p->queue.head = op->next;
            p->queue.length--;
            op->queued = false;
            nicstride_op_finish_locked(op);
        }
    }
    if (p->queue.head == NULL)
        p->queue.tail = NULL;
}

void nicstride_pump_askers_locked(void)
{
    for (nicstride_asker_t *a = nicstride_reply_next(&nicstride_component.replies); a != NULL;
         a = nicstride_reply_next(&nicstride_component.replies)) {
        nicstride_pump_queue_locked(
            (nicstride_peer_t *)(void *)((char *)a - offsetof(nicstride_peer_t, flow.asker)));
        /* Other things hold it up: it comes again. */
        if (nicstride_reply_next(&nicstride_component.replies) == a)
            nicstride_reply_leave(&nicstride_component.replies, a);
    }
}

/* ---- acknowledgements ------------------------------------------------------------------------ */

void nicstride_acknowledged_locked(nicstride_peer_t *p, uint64_t count, uint64_t freed, int error)
{
    if (!nicstride_tx_ack(&p->flow.tx, p->quota, count, freed, nicstride_error_class(error)))
        nicstride_refuse();
    if (error != 0)
        nicstride_use_locked(p);
    nicstride_pump_all_locked(p->process);
}

void nicstride_take_answer_locked(nicstride_peer_t *p)
{
    nicstride_place_answer_locked(p);
    nicstride_acknowledged_locked(p, p->flow.slot_seen, 0, 0);
}

void nicstride_peer_end_locked(nicstride_peer_t *p)
{
    __atomic_store_n(&p->failed, true, __ATOMIC_RELAXED);
    nicstride_use_locked(p);
    nicstride_drop_waiting_locked(p);
    nicstride_ops_fail_locked(p);
    nicstride_tx_forget(&p->flow.tx, p->quota);
    nicstride_pump_all_locked(p->process);
}
