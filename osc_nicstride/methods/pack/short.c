/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/methods/pack/short.h"

#include <stdlib.h>

#include "common/layout/copy.h"
#include "osc_nicstride/protocol/vector.h"
#include "osc_nicstride/queue/ask_lock.h"
#include "osc_nicstride/queue/flow.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/window/module.h"

/** True if nothing has to be sent before this. */
static bool is_open(const nicstride_peer_t *p)
{
    return STAILQ_EMPTY(&p->queue.waiting) && !p->queue.flushing && !p->failed;
}

/** The operation that awaits the result, or the results of several gets; NULL if memory is
 *  exhausted. */
static nicstride_op_t *new_op(nicstride_peer_t *p, const nicstride_short_t *s, bool several)
{
    nicstride_op_t *op =
        nicstride_op_new_locked(p, s->type, (int64_t)s->at, several ? 0 : s->bytes);

    if (op == NULL)
        return NULL;
    if (several) {
        op->gets = malloc(NICSTRIDE_VECTOR_MAX * sizeof(*op->gets));
        if (op->gets != NULL)
            return op;
        nicstride_op_free_locked(op);
        return NULL;
    }
    onic_layout_set(&op->result, s->bytes);
    op->result_base = s->result;
    op->sent = s->bytes;
    return op;
}

static void enter(nicstride_peer_t *p, const nicstride_short_t *s)
{
    nicstride_enter_locked(p, NICSTRIDE_WAY_COMES, s->data == NULL, s->at, s->at + s->bytes);
}

/* ---- a message of its own -------------------------------------------------------------------- */

/** Sends a message of its own. `first`: nothing is under way, and the message goes at once. It then
 *  asks for its acknowledgement if somebody will wait for that; in active target only if it comes
 *  with a reply. */
static bool send_one(nicstride_peer_t *p, const nicstride_short_t *s, bool first)
{
    struct {
        nicstride_msg_t msg;
        unsigned char data[NICSTRIDE_INLINE_MAX];
    } m;
    const bool swaps = s->type == NICSTRIDE_MSG_CAS;
    nicstride_op_t *op = NULL;
    size_t len = sizeof(m.msg);

    nicstride_msg_init(&m.msg, s->type, p->win, p->me);
    m.msg.op = s->op;
    m.msg.dtype = s->dtype;
    m.msg.disp = (int64_t)s->at;
    m.msg.len = swaps ? 2 * s->bytes : s->bytes;
    const uint64_t kept = nicstride_msg_kept(&m.msg);
    if (!nicstride_may_post_locked(p, kept) ||
        (s->result != NULL && (op = new_op(p, s, false)) == NULL))
        return false;
    enter(p, s);
    if (op != NULL) {
        nicstride_op_live_locked(op);
        m.msg.handle = op->handle;
    }
    if (s->data != NULL) {
        m.msg.flags = NICSTRIDE_MSG_INLINE;
        onic_copy_bytes(m.data, s->data, s->bytes);
        if (swaps)
            onic_copy_bytes(m.data + s->bytes, s->swap, s->bytes);
        len += m.msg.len;
    }
    if (first && (op != NULL || !nicstride_is_active(p->module)) &&
        nicstride_tx_may_ask(&p->flow.tx))
        m.msg.count = p->flow.tx.asked = p->flow.tx.sent + 1;
    nicstride_post_operation_locked(p, &m, len, !first);
    nicstride_count_sent_locked(p, kept);
    return true;
}

/* ---- in a vector ----------------------------------------------------------------------------- */

/** Begins a vector with room for one record of `len` bytes; returns where that is to be written. */
static unsigned char *begin(nicstride_peer_t *p, const nicstride_short_t *s, size_t len)
{
    const bool get = s->type == NICSTRIDE_MSG_GET;
    nicstride_op_t *op = NULL;
    nicstride_msg_t msg;

    nicstride_msg_init(&msg, get ? NICSTRIDE_MSG_GETV : NICSTRIDE_MSG_PUTV, p->win, p->me);
    const uint64_t kept = nicstride_msg_kept(&msg);
    if (!nicstride_may_send_locked(p, kept) || (get && (op = new_op(p, s, true)) == NULL))
        return NULL;
    unsigned char *to = nicstride_message_room_locked(p, sizeof(msg) + len);
    if (to == NULL) {
        if (op != NULL)
            nicstride_op_free_locked(op);
        return NULL;
    }
    msg.flags = NICSTRIDE_MSG_INLINE;
    msg.len = len;
    msg.handle = op != NULL ? op->handle : 0;
    memcpy(to, &msg, sizeof(msg));
    p->flow.vector = (nicstride_msg_type_t)msg.type;
    p->flow.records = 0;
    p->flow.gets = op;
    nicstride_count_sent_locked(p, kept);
    return to + sizeof(msg);
}

/** True if the last waiting vector can take no more records. All gets of one must fit into a
 *  reply. */
static bool is_full(const nicstride_peer_t *p, const nicstride_short_t *s)
{
    return p->flow.records == NICSTRIDE_VECTOR_MAX ||
           (s->type == NICSTRIDE_MSG_GET && p->flow.gets->size + s->bytes > NICSTRIDE_INLINE_MAX);
}

/** Makes room for one more record in the last waiting vector, if that is of the right kind. */
static unsigned char *extend(nicstride_peer_t *p, const nicstride_short_t *s, size_t len)
{
    if (p->flow.vector !=
            (s->type == NICSTRIDE_MSG_GET ? NICSTRIDE_MSG_GETV : NICSTRIDE_MSG_PUTV) ||
        is_full(p, s))
        return NULL;
    return nicstride_batch_extend(&p->flow.batch->batch, nicstride_batch_max_locked(p, len), len);
}

static void add_get(nicstride_peer_t *p, const nicstride_short_t *s)
{
    nicstride_op_t *op = p->flow.gets;

    op->gets[op->ngets++] = (nicstride_get_t){s->result, (uint32_t)s->bytes};
    op->size += s->bytes;
    op->sent = op->size;
    if (op->ngets == 1)
        nicstride_op_live_locked(op);
}

static bool add(nicstride_peer_t *p, const nicstride_short_t *s)
{
    const bool get = s->type == NICSTRIDE_MSG_GET;
    const size_t len = NICSTRIDE_RECORD_HEAD + (get ? 0 : s->bytes);

    unsigned char *to = extend(p, s, len);
    if (to == NULL)
        to = begin(p, s, len);
    if (to == NULL)
        return false;
    to = nicstride_record_write(to, s->at, (uint32_t)s->bytes);
    enter(p, s);
    if (get)
        add_get(p, s);
    else
        onic_copy_bytes(to, s->data, s->bytes);
    p->flow.records++;
    /* A process of the node handles it while the next one is filled. */
    if (p->local >= 0 && is_full(p, s))
        nicstride_send_waiting_locked(p);
    return true;
}

bool nicstride_short_start(nicstride_peer_t *p, const nicstride_short_t *s)
{
    /* To another node, in active target, nobody waits for the first message before the epoch
     * closes. */
    const bool together = p->local < 0 && nicstride_is_active(p->module);
    bool joins = s->type == NICSTRIDE_MSG_PUT || s->type == NICSTRIDE_MSG_GET;
    bool started, first;

    onic_transport_lock();
    if (p->flow.vector == 0)
        nicstride_look_locked(p);
    first = nicstride_tx_idle(&p->flow.tx) && !together;
    joins = joins && !first && !nicstride_lock_is_held_back(p);
    started = is_open(p) && (joins ? add(p, s) : send_one(p, s, first));
    onic_transport_unlock();
    return started;
}
