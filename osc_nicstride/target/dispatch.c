/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What comes from peers: decoded, given to its handler, put off where a lock is busy. */
#include <stdlib.h>
#include <string.h>

#include "common/layout/copy.h"
#include "osc_nicstride/queue/flow.h"
#include "osc_nicstride/queue/wait.h"
#include "osc_nicstride/queue/lazy_lock.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/protocol/lockq.h"
#include "osc_nicstride/protocol/message.h"
#include "osc_nicstride/protocol/vector.h"
#include "osc_nicstride/sync/lock_queue.h"
#include "osc_nicstride/target/target.h"
#include "osc_nicstride/window/state.h"
#include "osc_nicstride/queue/operation.h"

static nicstride_module_t *find_window(uint32_t name)
{
    void *m = NULL;

    if (opal_hash_table_get_value_uint32(&nicstride_component.windows, name, &m) != OPAL_SUCCESS)
        return NULL;
    return m;
}

/* ---- synchronisation ------------------------------------------------------------------------- */

static void on_grant(const nicstride_incoming_t *in)
{
    const int error = nicstride_error_class(in->msg->status);
    nicstride_peer_t *target;

    if (in->msg->count == (uint64_t)in->m->size) {
        nicstride_window_lock_answered_locked(in->m, in->msg->op, error);
        return;
    }
    target = in->msg->count < (uint64_t)in->m->size ? in->m->peer[in->msg->count] : NULL;
    /* Of whom a lock was asked there is a peer. */
    if (target == NULL)
        return;
    if (!nicstride_lazy_lock_granted_locked(target, error != 0))
        (void)nicstride_asked_answer(&target->lock.asked, error);
    else if (error != 0) /* nothing that was to be done under it can be done */
        nicstride_peer_end_locked(target);
}

static bool by_rx_buffers(const nicstride_msg_t *msg)
{
    return (msg->flags & NICSTRIDE_MSG_RX_BUFFERS) != 0;
}

/** False where the message must wait for a lock. */
static bool handle(const nicstride_incoming_t *in)
{
    if (by_rx_buffers(in->msg)) {
        nicstride_on_move(in);
        return true;
    }
    switch ((nicstride_msg_type_t)in->msg->type) {
    case NICSTRIDE_MSG_PUT:
        nicstride_on_put(in);
        return true;
    case NICSTRIDE_MSG_GET:
        nicstride_on_get(in);
        return true;
    case NICSTRIDE_MSG_PUTV:
        nicstride_on_putv(in);
        return true;
    case NICSTRIDE_MSG_GETV:
        nicstride_on_getv(in);
        return true;
    case NICSTRIDE_MSG_GET_DATA:
    case NICSTRIDE_MSG_ACC_DATA:
        nicstride_on_data(in);
        /* There may be no other acknowledgement, and nobody but requests that wait for it. */
        if (in->msg->count != 0)
            nicstride_acknowledged_locked(in->p, in->msg->count, 0, 0);
        return true;
    case NICSTRIDE_MSG_ACC:
    case NICSTRIDE_MSG_GET_ACC:
    case NICSTRIDE_MSG_CAS:
        return nicstride_on_accumulate(in);
    case NICSTRIDE_MSG_FLUSH:
        nicstride_flush_asked_locked(in->p, in->msg->count);
        return true;
    case NICSTRIDE_MSG_ACK:
        nicstride_acknowledged_locked(in->p, in->msg->count, (uint64_t)in->msg->disp,
                                      in->msg->status);
        return true;
    case NICSTRIDE_MSG_LOCK:
    case NICSTRIDE_MSG_UNLOCK:
        return nicstride_lock_is_of_window(in->msg->op & NICSTRIDE_LOCK_TYPE)
                   ? nicstride_window_lock_message_locked(in->p, in->msg)
                   : nicstride_lock_message_locked(in->p, in->msg);
    case NICSTRIDE_MSG_LEAVE:
        nicstride_window_lock_leave_locked(in->m);
        return true;
    case NICSTRIDE_MSG_GRANT:
        on_grant(in);
        return true;
    case NICSTRIDE_MSG_POST:
        in->p->notices.come[NICSTRIDE_POST]++;
        return true;
    case NICSTRIDE_MSG_COMPLETE:
        in->p->notices.count = in->msg->count;
        in->p->notices.come[NICSTRIDE_COMPLETE]++;
        return true;
    case NICSTRIDE_MSG_LAYOUT:
        if (in->p->sent != NULL)
            nicstride_layout_answered(in->p->sent, (uint32_t)in->msg->count, in->msg->op != 0);
        return true;
    case NICSTRIDE_MSG_FENCE:
        nicstride_fence_receive(&in->m->fence, in->msg->op, (uint32_t)in->msg->count,
                                in->msg->dtype != 0, in->msg->status);
        return true;
    case NICSTRIDE_MSG_KEYS:
        nicstride_on_keys(in);
        return true;
    default:
        return true;
    }
}

/* ---- messages that wait for a lock ----------------------------------------------------------- */

/* First come, first served, so that what an origin has sent keeps its order; transport lock. What
 * it may hold is bounded (credit.h); how much that is (footprint) is counted. */
static TAILQ_HEAD(, nicstride_deferred) deferred = TAILQ_HEAD_INITIALIZER(deferred);
static size_t deferred_bytes;
static unsigned deferred_for_lock; /* those of them that take one */

/** Is it about memory of the window? */
static bool is_operation(const nicstride_msg_t *msg)
{
    return msg->type <= NICSTRIDE_MSG_CAS && msg->type != NICSTRIDE_MSG_GET_DATA;
}

static bool is_of_lock(const nicstride_msg_t *msg)
{
    return msg->type == NICSTRIDE_MSG_LOCK || msg->type == NICSTRIDE_MSG_UNLOCK;
}

static bool takes_lock(const nicstride_msg_t *msg)
{
    return is_of_lock(msg) || (is_operation(msg) && msg->type >= NICSTRIDE_MSG_ACC);
}

/** Does it wait for what its origin has sent before? Puts that come whole do not: nothing is kept
 *  for them, and their origin has waited (protocol/order.h). */
static bool takes_turn(const nicstride_msg_t *msg)
{
    return is_of_lock(msg) || (is_operation(msg) && msg->type != NICSTRIDE_MSG_PUTV &&
                               (msg->type != NICSTRIDE_MSG_PUT || by_rx_buffers(msg)));
}

/** Is it to be put off, whether or not what it takes is free? */
static bool stands_behind(const nicstride_peer_t *p, const nicstride_msg_t *msg)
{
    return (deferred_for_lock > 0 && takes_lock(msg)) ||
           ((p->served.moving > 0 || p->served.put_off > 0) && takes_turn(msg));
}

static void append(nicstride_peer_t *p, nicstride_deferred_t *d)
{
    TAILQ_INSERT_TAIL(&deferred, d, of_line);
    deferred_for_lock += takes_lock(&d->msg);
    p->served.put_off++;
    onic_transport_defer(ONIC_AM_OSC);
    nicstride_add(&nicstride_counters.deferred, 1);
}

_Static_assert(sizeof(nicstride_deferred_t) <= NICSTRIDE_KEPT_RECORD, "what is counted for it");

/** Bytes of layout and ticket behind the header. */
static size_t behind(const nicstride_msg_t *msg)
{
    return msg->layout_len + (by_rx_buffers(msg) ? NICSTRIDE_TICKET_BYTES : 0);
}

/** What one that was allocated takes up. */
static size_t footprint(const nicstride_deferred_t *d)
{
    return sizeof(*d) + behind(&d->msg) + d->len;
}

/** It is done with. */
static void give(nicstride_peer_t *p, nicstride_deferred_t *d)
{
    TAILQ_REMOVE(&deferred, d, of_line);
    deferred_for_lock -= takes_lock(&d->msg);
    if (p != NULL)
        p->served.put_off--;
    if (d->list != NULL)
        nicstride_layout_release(&nicstride_component.lists, d->list);
    if (d->bytes != NULL) {
        deferred_bytes -= footprint(d);
        free(d);
    } else
        d->used = false;
}

/** A request for a lock, or its release, has its place with the peer: its answer could not be an
 *  error, and each origin has at most one of either under way for each of the two locks. */
static void defer_lock(const nicstride_incoming_t *in)
{
    const bool of_window = nicstride_lock_is_of_window(in->msg->op & NICSTRIDE_LOCK_TYPE);
    nicstride_deferred_t *d =
        &in->p->served.deferred[2 * of_window + (in->msg->type == NICSTRIDE_MSG_UNLOCK)];

    *d = (nicstride_deferred_t){.used = true, .msg = *in->msg};
    append(in->p, d);
}

/** An operation for which there is no memory ends with an error. */
static void refuse(const nicstride_incoming_t *in)
{
    const uint64_t len = in->msg->len;

    switch (in->msg->type) {
    case NICSTRIDE_MSG_PUT:
    case NICSTRIDE_MSG_ACC:
        nicstride_applied_locked(in->m, in->p, in->msg, MPI_ERR_NO_MEM);
        break;
    case NICSTRIDE_MSG_GETV:
        nicstride_reply_locked(in, NULL, nicstride_getv_bytes(in->data, in->len), MPI_ERR_NO_MEM);
        break;
    default:
        nicstride_reply_locked(in, NULL, in->msg->type == NICSTRIDE_MSG_CAS ? len / 2 : len,
                               MPI_ERR_NO_MEM);
    }
}

static void defer(const nicstride_incoming_t *in)
{
    const size_t described = behind(in->msg);
    nicstride_deferred_t *d;

    if (is_of_lock(in->msg)) {
        defer_lock(in);
        return;
    }
    d = malloc(sizeof(*d) + described + in->len);
    if (d == NULL) {
        nicstride_throw_away_locked(in->p->wire, in->msg, in->layout);
        refuse(in);
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

int nicstride_run_deferred(void)
{
    static uint64_t pass;
    nicstride_deferred_t *next;
    int n = nicstride_lazy_lock_send_kept_locked() + nicstride_send_all_waiting_locked();
    const int lost = nicstride_end_lost_locked();
    const bool flushed = nicstride_queues_flush_locked();
    bool busy = false, left = false;

    n += nicstride_rows_progress_locked(&left);
    pass++;
    for (nicstride_deferred_t *d = TAILQ_FIRST(&deferred); d != NULL; d = next) {
        nicstride_incoming_t in = {
            .m = find_window(d->msg.win),
            .msg = &d->msg,
            .layout = d->bytes,
            .data = d->bytes != NULL ? d->bytes + d->msg.layout_len : NULL,
            .len = d->len,
            .list = d->list,
        };

        if (in.m != NULL)
            in.p = in.m->peer[d->msg.origin];
        /* What one origin has sent takes its turn: behind what comes through receive buffers, or
         * was put off before and still waits (in this pass). */
        if (in.p != NULL && (in.p->served.moving > 0 || in.p->served.waited == pass)) {
            in.p->served.waited = pass;
            next = TAILQ_NEXT(d, of_line);
            continue;
        }
        busy = in.p != NULL && !handle(&in);
        if (busy)
            break;
        next = TAILQ_NEXT(d, of_line);
        give(in.p, d);
        n++;
    }
    /* Work is left: the progressing thread comes back soon. What waits for buffers is called
     * for. */
    return busy || left || lost < 0 || !flushed ? -1 : n + lost;
}

void nicstride_drop_deferred_locked(nicstride_module_t *m)
{
    for (nicstride_deferred_t *d = TAILQ_FIRST(&deferred), *next; d != NULL; d = next) {
        next = TAILQ_NEXT(d, of_line);
        if (d->msg.win != m->name)
            continue;
        nicstride_throw_away_locked(nicstride_wire_locked(m, (int)d->msg.origin), &d->msg,
                                    d->bytes);
        give(m->peer[d->msg.origin], d);
    }
}

/* ---- entry ----------------------------------------------------------------------------------- */

/** Finds the window and the sender. False where there is nobody to handle it for; a window that is
 *  gone is nothing unusual: late acknowledgements and releases. */
static bool find(nicstride_incoming_t *in)
{
    in->m = find_window(in->msg->win);
    if (in->m == NULL || in->msg->origin >= (uint32_t)in->m->size)
        return false;
    in->p = nicstride_peer_locked(in->m, (int)in->msg->origin);
    if (in->p == NULL) {
        /* There is no memory for what is to be known of the sender: it must not wait for this. */
        onic_peer_t *wire = nicstride_wire_locked(in->m, (int)in->msg->origin);

        nicstride_throw_away_locked(wire, in->msg, in->layout);
        if (wire != NULL)
            onic_peer_give_up(wire);
    }
    return in->p != NULL;
}

/** Does what follows in the same message belong to a lock? */
static bool has_more(const nicstride_msg_t *msg)
{
    return msg->type == NICSTRIDE_MSG_LOCK && (msg->op & NICSTRIDE_LOCK_WITH_MORE) != 0;
}

/** False where what follows in the same message is not to be done. */
static bool one_message(const void *header, size_t header_len, const void *data, size_t len)
{
    nicstride_msg_t msg;
    nicstride_incoming_t in = {.msg = &msg, .data = data, .len = len};

    if (nicstride_msg_decode(header, header_len, len, &msg, &in.layout) != NULL || !find(&in)) {
        nicstride_refuse();
        return true;
    }
    if ((msg.flags & NICSTRIDE_MSG_CACHED) != 0)
        in.list = nicstride_cached_layout_locked(&in);
    if ((msg.flags & NICSTRIDE_MSG_INLINE) != 0) {
        in.data = (const char *)in.layout + msg.layout_len;
        in.len = msg.len;
    }
    if (has_more(&msg) && !stands_behind(in.p, &msg) && nicstride_lock_at_once_locked(in.p, &msg))
        return true;
    /* Not yet satisfied, so no acknowledgement goes out here but with the effect. */
    if (msg.count != 0 && is_operation(&msg))
        nicstride_flush_asked_locked(in.p, msg.count);
    if (stands_behind(in.p, &msg) || !handle(&in))
        defer(&in);
    return !has_more(&msg);
}

/** Messages that came in one; the replies go back in one. */
static void batch(const void *bytes, size_t len)
{
    const void *message;
    size_t at = 0, message_len;
    bool go_on = true;

    nicstride_collects = true;
    while (go_on && nicstride_batch_next(bytes, len, &at, &message, &message_len))
        go_on = one_message(message, message_len, NULL, 0);
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
        (void)one_message(header, header_len, data, len);
}
