/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Messages from peers are decoded and given to the handler of their kind, in the order in
 *  which they come. The methods' rows have the handlers of operations. */
#include "osc_nicstride/protocol/lockq.h"
#include "osc_nicstride/protocol/message.h"
#include "osc_nicstride/queue/ask_lock.h"
#include "osc_nicstride/queue/flow.h"
#include "osc_nicstride/queue/keys.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/sync/lock_queue.h"
#include "osc_nicstride/target/target.h"
#include "osc_nicstride/window/state.h"

static nicstride_module_t *find_window(uint32_t name)
{
    void *m = NULL;

    if (opal_hash_table_get_value_uint32(&nicstride_component.windows, name, &m) != OPAL_SUCCESS)
        return NULL;
    return m;
}

/* ---- messages that belong to no row ---------------------------------------------------------- */

static void on_reply(const nicstride_incoming_t *in)
{
    nicstride_on_data(in);
    /* There may be no other acknowledgement, and only requests may wait for it. */
    if (in->msg->count != 0)
        nicstride_acknowledged_locked(in->p, in->msg->count, 0);
}

static void on_flush(const nicstride_incoming_t *in)
{
    nicstride_flush_asked_locked(in->p, in->msg->count);
}

static void on_ack(const nicstride_incoming_t *in)
{
    nicstride_acknowledged_locked(in->p, in->msg->count, in->msg->status);
}

static void each_message(const void *bytes, size_t len);

/** A request for a lock. What came with it is handled if the lock was free; the grant and the
 *  answer go back in one message. */
static void on_lock(const nicstride_incoming_t *in)
{
    const bool collects = nicstride_collects;

    nicstride_collects = collects || in->len > 0;
    if (nicstride_lock_message_locked(in->p, in->msg))
        each_message(in->data, in->len);
    nicstride_collects = collects;
    if (!collects && in->len > 0)
        (void)nicstride_send_all_waiting_locked();
}

static void on_unlock(const nicstride_incoming_t *in)
{
    nicstride_unlock_message_locked(in->p);
}

static void on_grant(const nicstride_incoming_t *in)
{
    const int error = nicstride_error_class(in->msg->status);
    nicstride_peer_t *target = NULL;

    if (in->msg->count == (uint64_t)in->m->size)
        nicstride_window_lock_answered_locked(in->m, in->msg->op, error);
    else if (in->msg->count < (uint64_t)in->m->size)
        target = in->m->peer[in->msg->count];
    /* There is a peer for every process that was asked for a lock. */
    if (target != NULL)
        nicstride_lock_answered_locked(target, error, (in->msg->op & NICSTRIDE_LOCK_DONE) != 0);
}

static void on_leave(const nicstride_incoming_t *in)
{
    nicstride_window_lock_leave_locked(in->p);
}

static void on_post(const nicstride_incoming_t *in)
{
    in->p->notices.come.notices[NICSTRIDE_POST]++;
}

static void on_complete(const nicstride_incoming_t *in)
{
    in->p->notices.come.count = in->msg->count;
    in->p->notices.come.notices[NICSTRIDE_COMPLETE]++;
}

static void on_fence(const nicstride_incoming_t *in)
{
    nicstride_fence_receive(&in->m->fence, in->msg->op, (uint32_t)in->msg->count,
                            in->msg->dtype != 0, in->msg->status);
}

static const nicstride_handler_t handlers[] = {
    {NICSTRIDE_MSG_REPLY, on_reply},       {NICSTRIDE_MSG_FLUSH, on_flush},
    {NICSTRIDE_MSG_ACK, on_ack},           {NICSTRIDE_MSG_LOCK, on_lock},
    {NICSTRIDE_MSG_UNLOCK, on_unlock},     {NICSTRIDE_MSG_GRANT, on_grant},
    {NICSTRIDE_MSG_LEAVE, on_leave},       {NICSTRIDE_MSG_POST, on_post},
    {NICSTRIDE_MSG_COMPLETE, on_complete}, {NICSTRIDE_MSG_FENCE, on_fence},
    {NICSTRIDE_MSG_KEY, nicstride_on_key}, {NICSTRIDE_MSG_LAYOUT, nicstride_on_layout},
};

/* The handlers by kind. Written before a window is made; transport lock. */
static const nicstride_handler_t *by_kind[NICSTRIDE_MSG_LAST];

static void add_handlers(const nicstride_handler_t *h, size_t n)
{
    for (size_t i = 0; i < n; i++)
        by_kind[h[i].kind] = &h[i];
}

void nicstride_find_handlers(void)
{
    onic_transport_lock();
    add_handlers(handlers, sizeof(handlers) / sizeof(handlers[0]));
    for (unsigned i = 0; i < NICSTRIDE_METHODS_MAX; i++)
        if (nicstride_component.methods[i] != NULL)
            add_handlers(nicstride_component.methods[i]->handlers,
                         nicstride_component.methods[i]->nhandlers);
    onic_transport_unlock();
}

int nicstride_work_locked(void)
{
    bool left = false;
    int n = nicstride_send_all_waiting_locked();

    n += nicstride_end_lost_locked();
    n += nicstride_rows_progress_locked(&left);
    nicstride_pump_all_locked();
    /* If work is left, the progressing thread comes back soon. */
    return left ? -1 : n;
}

/* ---- entry ----------------------------------------------------------------------------------- */

/** Finds the window and the sender. False if there is nobody to handle the message. A window that
 *  is gone is not unusual: acknowledgements and releases may be late. */
static bool find(nicstride_incoming_t *in)
{
    in->m = find_window(in->msg->win);
    if (in->m == NULL || in->msg->origin >= (uint32_t)in->m->size || by_kind[in->msg->type] == NULL)
        return false;
    in->p = nicstride_peer_locked(in->m, (int)in->msg->origin);
    if (in->p == NULL) {
        /* There is no memory to record the sender, which must not wait for an answer. */
        onic_peer_t *peer = nicstride_onic_peer_locked(in->m, (int)in->msg->origin);

        if (peer != NULL)
            onic_peer_give_up(peer);
    }
    return in->p != NULL;
}

static void one_message(const void *header, size_t header_len, const void *data, size_t len)
{
    nicstride_msg_t msg;
    nicstride_incoming_t in = {.msg = &msg, .data = data, .len = len};

    if (!nicstride_msg_decode(header, header_len, len, &msg, &in.layout) || !find(&in)) {
        onic_count(&nicstride_counters.refused, 1);
        return;
    }
    if ((msg.flags & NICSTRIDE_MSG_INLINE) != 0) {
        in.data = (const char *)in.layout + msg.layout_len;
        in.len = msg.len;
    }
    const uint64_t kept = nicstride_msg_kept(&msg);
    if (kept > 0)
        onic_account_arrived(in.p->account, kept);
    by_kind[msg.type]->handle(&in);
}

/** Handles the messages of a batch. */
static void each_message(const void *bytes, size_t len)
{
    const void *message;
    size_t at = 0, message_len;

    while (nicstride_batch_next(bytes, len, &at, &message, &message_len))
        one_message(message, message_len, NULL, 0);
}

/** The same; the replies go back in one message. */
static void batch(const void *bytes, size_t len)
{
    nicstride_collects = true;
    each_message(bytes, len);
    nicstride_collects = false;
    nicstride_send_all_waiting_locked();
}

void nicstride_am(onic_peer_t *from, const void *header, size_t header_len, const void *data,
                  size_t len, onic_rndv_t *rndv)
{
    (void)from;
    if (rndv != NULL)
        onic_count(&nicstride_counters.refused, 1);
    else if (header_len == 1 && *(const unsigned char *)header == NICSTRIDE_BATCH_MARK)
        batch(data, len);
    else
        one_message(header, header_len, data, len);
}
