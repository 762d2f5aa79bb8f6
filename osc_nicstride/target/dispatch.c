/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Messages from peers are decoded, given to the handler of their kind, and deferred if a
 *  lock is busy. The methods' rows have the handlers of operations. */
#include <stdlib.h>
#include <string.h>

#include "common/layout/copy.h"
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

static bool on_reply(const nicstride_incoming_t *in)
{
    nicstride_on_data(in);
    /* There may be no other acknowledgement, and only requests may wait for it. */
    if (in->msg->count != 0)
        nicstride_acknowledged_locked(in->p, in->msg->count, 0);
    return true;
}

static bool on_flush(const nicstride_incoming_t *in)
{
    nicstride_flush_asked_locked(in->p, in->msg->count);
    return true;
}

static bool on_ack(const nicstride_incoming_t *in)
{
    nicstride_acknowledged_locked(in->p, in->msg->count, in->msg->status);
    return true;
}

static void each_message(const void *bytes, size_t len);

/** A request for a lock, or its release. What came with the request is handled if the lock was
 *  free; the grant and the answer go back in one message. */
static bool on_lock(const nicstride_incoming_t *in)
{
    const bool collects = nicstride_collects;
    bool granted = false, handled;

    if (nicstride_lock_is_of_window(in->msg->op & NICSTRIDE_LOCK_TYPE))
        return nicstride_window_lock_message_locked(in->p, in->msg);
    nicstride_collects = collects || in->len > 0;
    handled = nicstride_lock_message_locked(in->p, in->msg, &granted);
    if (granted)
        each_message(in->data, in->len);
    nicstride_collects = collects;
    if (!collects && in->len > 0)
        (void)nicstride_send_all_waiting_locked();
    return handled;
}

static bool on_grant(const nicstride_incoming_t *in)
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
    return true;
}

static bool on_leave(const nicstride_incoming_t *in)
{
    nicstride_window_lock_leave_locked(in->m);
    return true;
}

static bool on_post(const nicstride_incoming_t *in)
{
    in->p->notices.come[NICSTRIDE_POST]++;
    return true;
}

static bool on_complete(const nicstride_incoming_t *in)
{
    in->p->notices.count = in->msg->count;
    in->p->notices.come[NICSTRIDE_COMPLETE]++;
    return true;
}

static bool on_fence(const nicstride_incoming_t *in)
{
    nicstride_fence_receive(&in->m->fence, in->msg->op, (uint32_t)in->msg->count,
                            in->msg->dtype != 0, in->msg->status);
    return true;
}

static bool on_layout(const nicstride_incoming_t *in)
{
    if (in->p->sent != NULL)
        nicstride_layout_answered(in->p->sent, (uint32_t)in->msg->count, in->msg->op != 0);
    return true;
}

enum { OF_LOCK = NICSTRIDE_TAKES_TURN | NICSTRIDE_TAKES_LOCK };

static const nicstride_handler_t handlers[] = {
    {.kind = NICSTRIDE_MSG_REPLY, .handle = on_reply},
    {.kind = NICSTRIDE_MSG_FLUSH, .handle = on_flush},
    {.kind = NICSTRIDE_MSG_ACK, .handle = on_ack},
    {.kind = NICSTRIDE_MSG_LOCK, .holds = OF_LOCK, .handle = on_lock},
    {.kind = NICSTRIDE_MSG_UNLOCK, .holds = OF_LOCK, .handle = on_lock},
    {.kind = NICSTRIDE_MSG_GRANT, .handle = on_grant},
    {.kind = NICSTRIDE_MSG_LEAVE, .handle = on_leave},
    {.kind = NICSTRIDE_MSG_POST, .handle = on_post},
    {.kind = NICSTRIDE_MSG_COMPLETE, .handle = on_complete},
    {.kind = NICSTRIDE_MSG_FENCE, .handle = on_fence},
    {.kind = NICSTRIDE_MSG_KEYS, .handle = nicstride_on_keys},
    {.kind = NICSTRIDE_MSG_LAYOUT, .handle = on_layout},
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

static bool holds(const nicstride_msg_t *msg, unsigned what)
{
    return (by_kind[msg->type]->holds & what) != 0;
}

static bool handle(const nicstride_incoming_t *in)
{
    return by_kind[in->msg->type]->handle(in);
}

/* ---- deferred messages ----------------------------------------------------------------------- */

/* Each window has a queue of deferred messages: first come, first served, so that an origin's
 * messages keep their order. Credit bounds its contents; the bytes (footprint) are counted.
 * Transport lock. */
static LIST_HEAD(,
                 nicstride_module) lines = LIST_HEAD_INITIALIZER(lines); /* windows with a queue */
static size_t deferred_bytes;

/** True if the message must be deferred even if what it needs is free. */
static bool stands_behind(const nicstride_peer_t *p, const nicstride_msg_t *msg)
{
    return (p->module->deferred_for_lock > 0 && holds(msg, NICSTRIDE_TAKES_LOCK)) ||
           ((p->served.moving > 0 || p->served.put_off > 0) && holds(msg, NICSTRIDE_TAKES_TURN));
}

static void append(nicstride_peer_t *p, nicstride_deferred_t *d)
{
    nicstride_module_t *m = p->module;

    if (TAILQ_EMPTY(&m->deferred))
        LIST_INSERT_HEAD(&lines, m, of_lines);
    d->p = p;
    TAILQ_INSERT_TAIL(&m->deferred, d, of_line);
    m->deferred_for_lock += holds(&d->msg, NICSTRIDE_TAKES_LOCK);
    p->served.put_off++;
    onic_transport_ask(ONIC_AM_OSC, ONIC_LOCKED);
    nicstride_add(&nicstride_counters.deferred, 1);
}

_Static_assert(sizeof(nicstride_deferred_t) <= NICSTRIDE_KEPT_RECORD, "what is counted for it");

/** Bytes of layout and ticket behind the header. */
static size_t behind(const nicstride_msg_t *msg)
{
    return msg->layout_len + (nicstride_msg_has_ticket(msg->type) ? NICSTRIDE_TICKET_BYTES : 0);
}

/** Bytes that an allocated deferred message takes up. */
static size_t footprint(const nicstride_deferred_t *d)
{
    return sizeof(*d) + behind(&d->msg) + d->len;
}

/** Removes a deferred message that was handled. */
static void take_out(nicstride_deferred_t *d)
{
    nicstride_module_t *m = d->p->module;

    TAILQ_REMOVE(&m->deferred, d, of_line);
    if (TAILQ_EMPTY(&m->deferred))
        LIST_REMOVE(m, of_lines);
    m->deferred_for_lock -= holds(&d->msg, NICSTRIDE_TAKES_LOCK);
    d->p->served.put_off--;
    if (d->list != NULL)
        nicstride_layout_release(&nicstride_component.lists, d->list);
    if (d->bytes == NULL)
        return;
    deferred_bytes -= footprint(d);
    free(d);
}

/** Defers a request for a lock, or its release. The peer has space for these, as they cannot be
 *  refused with an error; each origin has at most one of either under way for each of the two
 *  locks. */
static void defer_lock(const nicstride_incoming_t *in)
{
    const bool of_window = nicstride_lock_is_of_window(in->msg->op & NICSTRIDE_LOCK_TYPE);
    nicstride_deferred_t *d =
        &in->p->served.deferred[2 * of_window + (in->msg->type == NICSTRIDE_MSG_UNLOCK)];

    *d = (nicstride_deferred_t){.msg = *in->msg};
    d->msg.len = 0; /* the contents of a request are dropped */
    append(in->p, d);
}

static void drop(onic_peer_t *from, const nicstride_msg_t *msg, const void *layout)
{
    if (by_kind[msg->type] != NULL && by_kind[msg->type]->drop != NULL)
        by_kind[msg->type]->drop(from, msg, layout);
}

static void defer(const nicstride_incoming_t *in)
{
    const size_t described = behind(in->msg);
    nicstride_deferred_t *d;

    if (in->msg->type == NICSTRIDE_MSG_LOCK || in->msg->type == NICSTRIDE_MSG_UNLOCK) {
        defer_lock(in);
        return;
    }
    d = malloc(sizeof(*d) + described + in->len);
    if (d == NULL) {
        drop(in->p->peer, in->msg, in->layout);
        by_kind[in->msg->type]->refuse(in, MPI_ERR_NO_MEM);
        return;
    }
    *d = (nicstride_deferred_t){
        .msg = *in->msg, .bytes = (char *)(d + 1), .len = in->len, .list = in->list};
    if (d->list != NULL)
        nicstride_layout_hold(d->list);
    memcpy(d->bytes, in->layout, described);
    if (in->len > 0)
        onic_copy_bytes(d->bytes + described, in->data, in->len);
    deferred_bytes += footprint(d);
    if (deferred_bytes > nicstride_counters.deferred_bytes)
        __atomic_store_n(&nicstride_counters.deferred_bytes, deferred_bytes, __ATOMIC_RELAXED);
    append(in->p, d);
}

/** Handles a window's deferred messages until a lock is busy; then false. */
static bool run_line(nicstride_module_t *m, int *n_p)
{
    static uint64_t pass;
    nicstride_deferred_t *next;

    pass++;
    for (nicstride_deferred_t *d = TAILQ_FIRST(&m->deferred); d != NULL; d = next) {
        nicstride_peer_t *p = d->p;
        const nicstride_incoming_t in = {
            .m = m,
            .p = p,
            .msg = &d->msg,
            .layout = d->bytes,
            .data = d->bytes != NULL ? d->bytes + d->msg.layout_len : NULL,
            .len = d->len,
            .list = d->list,
        };

        /* An origin's messages are handled in turn: after transfers through receive buffers, and
         * after earlier ones that still wait (in this pass). */
        if (p->served.moving > 0 || p->served.waited == pass) {
            p->served.waited = pass;
            next = TAILQ_NEXT(d, of_line);
            continue;
        }
        if (!handle(&in))
            return false;
        next = TAILQ_NEXT(d, of_line);
        take_out(d);
        (*n_p)++;
    }
    return true;
}

int nicstride_run_deferred(void)
{
    int n = nicstride_send_all_waiting_locked();
    const int lost = nicstride_end_lost_locked();
    const bool flushed = nicstride_queues_flush_locked();
    bool busy = false, left = false;

    n += nicstride_rows_progress_locked(&left);
    nicstride_pump_all_locked();
    for (nicstride_module_t *m = LIST_FIRST(&lines), *next; m != NULL; m = next) {
        next = LIST_NEXT(m, of_lines);
        busy = !run_line(m, &n) || busy;
    }
    /* If work is left, the progressing thread comes back soon. When buffers become free, this is
     * called. */
    return busy || left || lost < 0 || !flushed ? -1 : n + lost;
}

void nicstride_drop_deferred_locked(nicstride_module_t *m)
{
    nicstride_deferred_t *d;

    while ((d = TAILQ_FIRST(&m->deferred)) != NULL) {
        drop(d->p->peer, &d->msg, d->bytes);
        nicstride_freed_locked(d->p, &d->msg);
        take_out(d);
    }
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

        drop(peer, in->msg, in->layout);
        if (peer != NULL)
            onic_peer_give_up(peer);
    }
    return in->p != NULL;
}

static void one_message(const void *header, size_t header_len, const void *data, size_t len)
{
    nicstride_msg_t msg;
    nicstride_incoming_t in = {.msg = &msg, .data = data, .len = len};

    if (nicstride_msg_decode(header, header_len, len, &msg, &in.layout) != NULL || !find(&in)) {
        nicstride_refuse();
        return;
    }
    if ((msg.flags & NICSTRIDE_MSG_CACHED) != 0)
        in.list = nicstride_cached_layout_locked(&in);
    if ((msg.flags & NICSTRIDE_MSG_INLINE) != 0) {
        in.data = (const char *)in.layout + msg.layout_len;
        in.len = msg.len;
    }
    const uint64_t kept = nicstride_msg_kept(&msg);
    if (kept > 0)
        onic_account_arrived(in.p->account, kept);
    /* This cannot be satisfied yet, so an acknowledgement goes out only with the message's
     * effect. */
    if (msg.count != 0 && holds(&msg, NICSTRIDE_OPERATES))
        nicstride_flush_asked_locked(in.p, msg.count);
    if (stands_behind(in.p, &msg) || !handle(&in))
        defer(&in);
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
        nicstride_refuse();
    else if (header_len == 1 && *(const unsigned char *)header == NICSTRIDE_BATCH_MARK)
        batch(data, len);
    else
        one_message(header, header_len, data, len);
}
