/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/queue/short.h"

#include <stdlib.h>

#include "common/layout/copy.h"
#include "osc_nicstride/protocol/vector.h"
#include "osc_nicstride/queue/flow.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/queue/send.h"

/** Does nothing stand before what is sent now? */
static bool is_open(const nicstride_peer_t *p)
{
    return STAILQ_EMPTY(&p->queue.waiting) && !p->queue.flushing && !p->failed &&
           p->lock.lazy == NULL;
}

/** Is there credit for another message, and room for a reply of so many bytes? */
static bool may_send(nicstride_peer_t *p, uint64_t kept, uint64_t reply)
{
    return kept <= p->quota->limit && nicstride_tx_can_send(&p->flow.tx, p->quota, kept) &&
           (reply == 0 ||
            nicstride_reply_may_ask(&nicstride_component.replies, &p->flow.asker, reply));
}

/** A get, or the first of several; NULL where memory is exhausted. */
static nicstride_op_t *new_get(nicstride_peer_t *p, bool several, uint64_t at, char *base,
                               size_t bytes)
{
    nicstride_op_t *op =
        nicstride_op_new_locked(p, NICSTRIDE_MSG_GET, (int64_t)at, several ? 0 : bytes);

    if (op == NULL)
        return NULL;
    if (several) {
        op->gets = malloc(NICSTRIDE_VECTOR_MAX * sizeof(*op->gets));
        if (op->gets != NULL)
            return op;
        nicstride_op_free_locked(op);
        return NULL;
    }
    onic_layout_set(&op->result, bytes);
    op->result_base = base;
    op->sent = bytes;
    nicstride_op_reserve_locked(op, bytes);
    return op;
}

/* ---- alone ----------------------------------------------------------------------------------- */

/** It asks for its acknowledgement where somebody waits for that: in active target only where it
 *  comes with a reply. */
static bool send_alone(nicstride_peer_t *p, bool get, uint64_t at, char *base, size_t bytes)
{
    struct {
        nicstride_msg_t msg;
        unsigned char data[NICSTRIDE_INLINE_MAX];
    } m;
    nicstride_op_t *op = NULL;

    nicstride_msg_init(&m.msg, get ? NICSTRIDE_MSG_GET : NICSTRIDE_MSG_PUT, p->win, p->me);
    m.msg.disp = (int64_t)at;
    m.msg.len = bytes;
    const uint64_t kept = nicstride_msg_kept(&m.msg);
    if (!may_send(p, kept, get ? bytes : 0) ||
        (get && (op = new_get(p, false, at, base, bytes)) == NULL))
        return false;
    nicstride_enter_locked(p, nicstride_short_way(get), get, at, at + bytes);
    if (op != NULL) {
        nicstride_op_live_locked(op);
        m.msg.handle = op->handle;
    } else {
        m.msg.flags = NICSTRIDE_MSG_INLINE;
        onic_copy_bytes(m.data, base, bytes);
    }
    if ((get || !nicstride_is_active(p->module)) && nicstride_tx_may_ask(&p->flow.tx))
        m.msg.count = p->flow.tx.asked = p->flow.tx.sent + 1;
    nicstride_post_locked(p, &m, sizeof(m.msg) + (get ? 0 : bytes), false);
    nicstride_count_sent_locked(p, kept);
    return true;
}

/* ---- in a vector ----------------------------------------------------------------------------- */

/** Begins a vector, with room for one record of `len` bytes: where that is to be written. */
static unsigned char *begin(nicstride_peer_t *p, bool get, uint64_t at, size_t len)
{
    nicstride_op_t *op = NULL;
    nicstride_msg_t msg;

    nicstride_msg_init(&msg, get ? NICSTRIDE_MSG_GETV : NICSTRIDE_MSG_PUTV, p->win, p->me);
    const uint64_t kept = nicstride_msg_kept(&msg);
    if (!may_send(p, kept, 0) || (get && (op = new_get(p, true, at, NULL, 0)) == NULL))
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

/** May the vector that waits last take another record? Of several gets all must fit into a reply.
 */
static bool is_full(const nicstride_peer_t *p, bool get, size_t bytes)
{
    return p->flow.records == NICSTRIDE_VECTOR_MAX ||
           (get && p->flow.gets->size + bytes > NICSTRIDE_INLINE_MAX);
}

/** Room for one more record there, if it is such a vector. */
static unsigned char *extend(nicstride_peer_t *p, bool get, size_t bytes, size_t len)
{
    if (p->flow.vector != (get ? NICSTRIDE_MSG_GETV : NICSTRIDE_MSG_PUTV) || is_full(p, get, bytes))
        return NULL;
    return nicstride_batch_extend(&p->flow.batch->batch, nicstride_batch_max_locked(p, len), len);
}

static void add_get(nicstride_peer_t *p, char *base, size_t bytes)
{
    nicstride_op_t *op = p->flow.gets;

    op->gets[op->ngets++] = (nicstride_get_t){base, (uint32_t)bytes};
    op->size += bytes;
    op->sent = op->size;
    nicstride_op_reserve_locked(op, bytes);
    if (op->ngets == 1)
        nicstride_op_live_locked(op);
}

static bool add(nicstride_peer_t *p, bool get, uint64_t at, char *base, size_t bytes)
{
    const size_t len = NICSTRIDE_RECORD_HEAD + (get ? 0 : bytes);

    if (get && !nicstride_reply_may_ask(&nicstride_component.replies, &p->flow.asker, bytes))
        return false;
    unsigned char *to = extend(p, get, bytes, len);
    if (to == NULL)
        to = begin(p, get, at, len);
    if (to == NULL)
        return false;
    to = nicstride_record_write(to, at, (uint32_t)bytes);
    nicstride_enter_locked(p, nicstride_short_way(get), get, at, at + bytes);
    if (get)
        add_get(p, base, bytes);
    else
        onic_copy_bytes(to, base, bytes);
    p->flow.records++;
    /* A process of the node works on it while the next one is filled. */
    if (p->local >= 0 && is_full(p, get, bytes))
        nicstride_send_waiting_locked(p);
    return true;
}

bool nicstride_short_start(nicstride_peer_t *p, bool get, uint64_t at, char *base, size_t bytes)
{
    /* To another node, in active target, nobody waits for the first before the epoch closes. */
    const bool together = p->local < 0 && nicstride_is_active(p->module);
    bool started;

    onic_wire_lock();
    if (p->flow.vector == 0)
        nicstride_look_locked(p);
    started = is_open(p) &&
              (nicstride_tx_idle(&p->flow.tx) && !together ? send_alone(p, get, at, base, bytes)
                                                           : add(p, get, at, base, bytes));
    onic_wire_unlock();
    return started;
}
