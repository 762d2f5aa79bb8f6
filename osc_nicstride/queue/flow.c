/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */

#include "osc_nicstride/queue/flow.h"

#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/window/state.h"

void nicstride_ask_locked(nicstride_peer_t *p, uint64_t goal)
{
    const nicstride_op_t *next = STAILQ_FIRST(&p->queue.waiting);
    uint64_t upto;

    if ((next == NULL || (next->number > goal && next->sent == 0)) &&
        nicstride_tx_ask(&p->flow.tx, &upto))
        nicstride_send_note_locked(p, NICSTRIDE_MSG_FLUSH, 0, upto);
}

/* ---- sending what is queued ------------------------------------------------------------------ */

/** True if the first operation of the queue may go on. It must not pass one that a flush waits for,
 *  since the flush would never end while other threads keep sending, unless a local flush waits for
 *  this operation. */
static bool may_send(const nicstride_peer_t *p)
{
    const nicstride_op_t *op = STAILQ_FIRST(&p->queue.waiting);

    return !(p->queue.flushing && op->number > p->queue.goal && op->number > p->queue.urgent);
}

void nicstride_pump_queue_locked(nicstride_peer_t *p)
{
    nicstride_look_locked(p);
    /* Nothing is sent to a failed peer, and what is queued for it does not wait for its turn. */
    while (!STAILQ_EMPTY(&p->queue.waiting) && (p->failed || may_send(p))) {
        nicstride_op_t *op = STAILQ_FIRST(&p->queue.waiting);
        const int rc = p->failed ? OMPI_ERR_UNREACH : nicstride_send_fragment(op);

        if (rc == 0)
            break;
        if (rc < 0)
            nicstride_op_fail(op);
        if (op->sent == op->size) {
            STAILQ_REMOVE_HEAD(&p->queue.waiting, of_queue);
            if (--p->queue.length == 0)
                LIST_REMOVE(p, queue.of_queueing);
            nicstride_op_finish_locked(op);
        }
    }
}

/* ---- acknowledgements ------------------------------------------------------------------------ */

void nicstride_acknowledged_locked(nicstride_peer_t *p, uint64_t count, int error)
{
    nicstride_tx_ack(&p->flow.tx, count, nicstride_error_class(error));
    nicstride_pump_locked(p);
}

void nicstride_take_answer_locked(nicstride_peer_t *p)
{
    nicstride_place_answer_locked(p);
    nicstride_acknowledged_locked(p, p->flow.reply_line_seen, 0);
}

void nicstride_peer_end_locked(nicstride_peer_t *p)
{
    __atomic_store_n(&p->failed, true, __ATOMIC_RELAXED);
    nicstride_drop_waiting_locked(p);
    nicstride_ops_fail_locked(p);
    nicstride_tx_forget(&p->flow.tx);
}

void nicstride_pump_all_locked(void)
{
    for (nicstride_peer_t *p = LIST_FIRST(&nicstride_queueing), *next; p != NULL; p = next) {
        next = LIST_NEXT(p, queue.of_queueing);
        nicstride_pump_queue_locked(p);
    }
}
