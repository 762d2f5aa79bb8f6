/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The target side: what a message of a peer does here. Accumulates are in handlers_accumulate.c,
 * gets and replies in answer.c.
 *
 * Runs with the wire lock held, in any thread, so nothing here waits, and nothing touches an
 * object of Open MPI but to read predefined datatypes and operations. Nothing that a message says
 * is believed before it is checked against the window.
 */
#include <stddef.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "osc_nicstride/handlers.h"
#include "osc_nicstride/batch.h"
#include "osc_nicstride/component.h"
#include "osc_nicstride/hold.h"
#include "osc_nicstride/lock.h"
#include "osc_nicstride/lost.h"
#include "osc_nicstride/module.h"
#include "osc_nicstride/small.h"
#include "osc_nicstride/stream.h"
#include "osc_nicstride/target.h"
#include "common/pack.h"

nicstride_module_t *nicstride_find_window(uint32_t name)
{
    void *m = NULL;

    if (opal_hash_table_get_value_uint32(&mca_osc_nicstride_component.windows, name, &m) !=
        OPAL_SUCCESS)
        return NULL;
    return m;
}

/* ---- completion -------------------------------------------------------------------------------
 */

static void send_ack_of(nicstride_module_t *m, nicstride_peer_t *p, uint64_t applied, int error)
{
    nicstride_msg_t msg;

    nicstride_msg_init(&msg, NICSTRIDE_MSG_ACK, m->info[p->rank].win, (uint32_t)m->rank);
    msg.count = applied;
    msg.status = error;
    nicstride_send_locked(m, p, &msg);
}

void nicstride_acknowledge_locked(nicstride_module_t *m, nicstride_peer_t *p)
{
    uint64_t applied;
    int error;

    nicstride_rx_ack(&p->rx, &applied, &error);
    send_ack_of(m, p, applied, error);
}

void nicstride_applied_locked(nicstride_module_t *m, nicstride_peer_t *p, int error)
{
    if (nicstride_count_applied(m, p, error))
        nicstride_acknowledge_locked(m, p);
}

/* ---- the target's bytes -----------------------------------------------------------------------
 */

bool nicstride_target_holds(const nicstride_module_t *m, int64_t disp, const onic_layout_t *l)
{
    if (m->flavor == MPI_WIN_FLAVOR_DYNAMIC)
        return nicstride_regions_cover(&m->regions, (uint64_t)disp, l);
    return nicstride_layout_fits(l, disp, m->info[m->rank].size);
}

int nicstride_open_target(const nicstride_incoming_t *in, onic_layout_t *l, char **base_p,
                          uint64_t *at_p)
{
    nicstride_module_t *m = in->m;
    const nicstride_msg_t *msg = in->msg;
    size_t used = 0;
    bool inside;

    if (msg->layout_len == 0) {
        if (onic_layout_contig(l, 0, msg->offset + msg->len) != ONIC_LAYOUT_OK)
            return MPI_ERR_RMA_RANGE;
    } else if (onic_layout_decode(l, in->layout, msg->layout_len, &used) != ONIC_LAYOUT_OK)
        return MPI_ERR_OTHER;
    *at_p = (msg->flags & NICSTRIDE_MSG_SLICE) ? 0 : msg->offset;
    inside = nicstride_target_holds(m, msg->disp, l);
    if (!inside || used != msg->layout_len || *at_p > l->size || msg->len > l->size - *at_p) {
        onic_layout_fini(l);
        return inside ? MPI_ERR_OTHER : MPI_ERR_RMA_RANGE;
    }
    *base_p = (char *)((uintptr_t)m->base + (uintptr_t)msg->disp);
    return 0;
}

/* ---- put --------------------------------------------------------------------------------------
 */

/** A rendezvous put that is being received. Names the window instead of pointing at it, because
 *  the window may be gone when the wire is torn down. */
typedef struct landing {
    uint32_t win;
    uint32_t origin;
} landing_t;

static void landed_cb(void *arg, int status)
{
    landing_t *l = arg;
    nicstride_module_t *m = nicstride_find_window(l->win);

    if (m != NULL && m->peer[l->origin] != NULL)
        nicstride_applied_locked(m, m->peer[l->origin], status == OMPI_SUCCESS ? 0 : MPI_ERR_OTHER);
    free(l);
}

/** Receives straight into the window. */
static void put_rndv(const nicstride_incoming_t *in, const onic_layout_t *l, char *base,
                     uint64_t at)
{
    landing_t *landing = onic_layout_is_contig(l) ? malloc(sizeof(*landing)) : NULL;
    int rc;

    if (landing == NULL) {
        onic_rndv_drop(in->rndv);
        nicstride_applied_locked(in->m, in->p, MPI_ERR_OTHER);
        return;
    }
    landing->win = in->msg->win;
    landing->origin = in->msg->origin;
    rc = onic_rndv_recv(in->rndv, base + l->offset + (int64_t)at, in->msg->len, landed_cb, landing);
    if (rc != 0)
        landed_cb(landing, rc < 0 ? rc : OMPI_SUCCESS);
}

char *nicstride_plain_target(const nicstride_incoming_t *in)
{
    const nicstride_module_t *m = in->m;
    const nicstride_msg_t *msg = in->msg;
    uint64_t at;

    if (msg->layout_len != 0 || m->flavor == MPI_WIN_FLAVOR_DYNAMIC ||
        !nicstride_bytes_fit(msg->disp, msg->offset, msg->len, m->info[m->rank].size, &at))
        return NULL;
    return (char *)m->base + at;
}

static void on_put(const nicstride_incoming_t *in)
{
    onic_layout_t l;
    char *base = in->rndv == NULL ? nicstride_plain_target(in) : NULL;
    uint64_t at;
    int error;

    if (base != NULL) {
        nicstride_copy_bytes(base, in->data, in->len);
        nicstride_applied_locked(in->m, in->p, 0);
        return;
    }
    error = nicstride_open_target(in, &l, &base, &at);

    if (error != 0) {
        if (in->rndv != NULL)
            onic_rndv_drop(in->rndv);
        nicstride_applied_locked(in->m, in->p, error);
        return;
    }
    if (in->rndv != NULL) {
        put_rndv(in, &l, base, at);
    } else {
        onic_cursor_t c;

        onic_cursor_init(&c, &l, at);
        onic_unpack(&c, base, in->data, in->len);
        nicstride_applied_locked(in->m, in->p, 0);
    }
    onic_layout_fini(&l);
}

/* ---- replies ----------------------------------------------------------------------------------
 */

void nicstride_reply_init(const nicstride_incoming_t *in, nicstride_msg_t *msg,
                          nicstride_msg_type_t type, uint64_t len)
{
    nicstride_msg_init(msg, type, in->m->info[in->p->rank].win, (uint32_t)in->m->rank);
    msg->handle = in->msg->handle;
    msg->offset = in->msg->offset;
    msg->len = len;
}

void nicstride_reply_small(const nicstride_incoming_t *in, nicstride_msg_type_t type,
                           const void *data, uint64_t len)
{
    nicstride_msg_t msg;
    uint64_t applied = 0;
    int error = 0;

    if (nicstride_count_applied(in->m, in->p, 0))
        nicstride_rx_ack(&in->p->rx, &applied, &error);
    nicstride_reply_init(in, &msg, type, len);
    if (error == 0)
        msg.count = applied;
    nicstride_send_small_locked(in->p, &msg, data, len);
    if (error != 0)
        send_ack_of(in->m, in->p, applied, error);
}

void nicstride_refuse(const nicstride_incoming_t *in, nicstride_msg_type_t type, uint64_t len,
                      int error)
{
    nicstride_msg_t msg;

    nicstride_reply_init(in, &msg, type, len);
    msg.status = error;
    nicstride_send_locked(in->m, in->p, &msg);
    nicstride_applied_locked(in->m, in->p, 0);
}

/* ---- synchronisation and regions --------------------------------------------------------------
 */

static void on_region(const nicstride_incoming_t *in)
{
    nicstride_msg_t msg;
    nicstride_region_t found;

    nicstride_msg_init(&msg, NICSTRIDE_MSG_REGION_IS, in->m->info[in->p->rank].win,
                       (uint32_t)in->m->rank);
    if (nicstride_regions_find(&in->m->regions, (uint64_t)in->msg->disp, in->msg->len, &found)) {
        msg.disp = (int64_t)found.base;
        msg.len = found.size;
    } else {
        msg.status = MPI_ERR_RMA_RANGE;
    }
    msg.count = in->m->regions.generation;
    nicstride_send_locked(in->m, in->p, &msg);
}

static void on_grant(const nicstride_incoming_t *in)
{
    nicstride_peer_t *target = NULL;

    if (in->msg->count < (uint64_t)in->m->size)
        target = nicstride_peer_locked(in->m, (int)in->msg->count);
    if (target == NULL)
        return;
    if (nicstride_hold_granted_locked(target, in->msg->status != 0))
        return;
    target->granted = true;
    target->refused = in->msg->status != 0;
}

static void on_ack(const nicstride_incoming_t *in)
{
    if (!nicstride_tx_ack(&in->p->tx, in->msg->count, nicstride_error_class(in->msg->status)))
        nicstride_add(&nicstride_counters.refused, 1);
    nicstride_pump_locked(in->m, in->p);
}

/** False where the message must wait for a lock. */
static bool dispatch(const nicstride_incoming_t *in)
{
    switch ((nicstride_msg_type_t)in->msg->type) {
    case NICSTRIDE_MSG_PUT:
        on_put(in);
        return true;
    case NICSTRIDE_MSG_GET:
        nicstride_on_get(in);
        return true;
    case NICSTRIDE_MSG_GET_DATA:
    case NICSTRIDE_MSG_ACC_DATA:
        nicstride_on_data(in);
        return true;
    case NICSTRIDE_MSG_ACC:
    case NICSTRIDE_MSG_GET_ACC:
    case NICSTRIDE_MSG_CAS:
        return nicstride_on_accumulate(in);
    case NICSTRIDE_MSG_FLUSH:
        if (nicstride_rx_flush(&in->p->rx, in->msg->count))
            nicstride_acknowledge_locked(in->m, in->p);
        return true;
    case NICSTRIDE_MSG_ACK:
        on_ack(in);
        return true;
    case NICSTRIDE_MSG_LOCK:
    case NICSTRIDE_MSG_UNLOCK:
        return nicstride_lock_message_locked(in->m, in->p, in->msg);
    case NICSTRIDE_MSG_GRANT:
        on_grant(in);
        return true;
    case NICSTRIDE_MSG_POST:
        in->p->posts++;
        return true;
    case NICSTRIDE_MSG_COMPLETE:
        in->p->complete_count = in->msg->count;
        in->p->completes++;
        return true;
    case NICSTRIDE_MSG_REGION:
        on_region(in);
        return true;
    case NICSTRIDE_MSG_REGION_IS:
        in->p->region_answer = *in->msg;
        in->p->region_answered = true;
        return true;
    default:
        return true;
    }
}

/* ---- messages that wait for a lock ------------------------------------------------------------
 */

/** A message that could not be handled at once because a lock was busy. */
typedef struct deferred {
    struct deferred *next;
    nicstride_msg_t msg;
    size_t len;
    char bytes[]; /**< layout, then payload */
} deferred_t;

/* First come, first served, so that accumulates keep their order; wire lock. What it may hold is
 * bounded by the origins' flow control. */
static deferred_t *deferred_head, *deferred_tail;

bool nicstride_any_deferred_locked(void)
{
    return deferred_head != NULL;
}

static bool takes_lock(const nicstride_msg_t *msg)
{
    return msg->type == NICSTRIDE_MSG_ACC || msg->type == NICSTRIDE_MSG_GET_ACC ||
           msg->type == NICSTRIDE_MSG_CAS || msg->type == NICSTRIDE_MSG_LOCK ||
           msg->type == NICSTRIDE_MSG_UNLOCK;
}

static bool asks_for_ack(const nicstride_msg_t *msg)
{
    return msg->count != 0 &&
           (msg->type == NICSTRIDE_MSG_PUT || msg->type == NICSTRIDE_MSG_GET ||
            msg->type == NICSTRIDE_MSG_ACC || msg->type == NICSTRIDE_MSG_GET_ACC ||
            msg->type == NICSTRIDE_MSG_CAS);
}

static void defer(const nicstride_incoming_t *in)
{
    size_t layout_len = in->msg->layout_len;
    deferred_t *d = malloc(sizeof(*d) + layout_len + in->len);

    if (d == NULL) {
        /* Out of memory: waiting is all that is left. The locks are held for short by others that
         * need nothing of us. */
        while (nicstride_run_deferred() < 0 || !dispatch(in))
            sched_yield();
        return;
    }
    d->next = NULL;
    d->msg = *in->msg;
    d->len = in->len;
    memcpy(d->bytes, in->layout, layout_len);
    if (in->len > 0)
        memcpy(d->bytes + layout_len, in->data, in->len);
    if (deferred_tail != NULL)
        deferred_tail->next = d;
    else
        deferred_head = d;
    deferred_tail = d;
    onic_wire_defer(ONIC_AM_OSC);
    nicstride_add(&nicstride_counters.deferred, 1);
}

int nicstride_run_deferred(void)
{
    int n = nicstride_outboxes_send_locked() + nicstride_end_lost_locked();

    while (deferred_head != NULL) {
        deferred_t *d = deferred_head;
        nicstride_incoming_t in = {
            .m = nicstride_find_window(d->msg.win),
            .msg = &d->msg,
            .layout = d->bytes,
            .data = d->bytes + d->msg.layout_len,
            .len = d->len,
        };

        if (in.m != NULL)
            in.p = in.m->peer[d->msg.origin];
        if (in.m != NULL && in.p != NULL && !dispatch(&in))
            return -1; /* work is left: whoever progresses comes back soon */
        deferred_head = d->next;
        if (deferred_head == NULL)
            deferred_tail = NULL;
        free(d);
        n++;
    }
    return n;
}

void nicstride_drop_deferred_locked(uint32_t win)
{
    deferred_t **link = &deferred_head;

    deferred_tail = NULL;
    while (*link != NULL) {
        deferred_t *d = *link;

        if (d->msg.win == win) {
            *link = d->next;
            free(d);
        } else {
            deferred_tail = d;
            link = &d->next;
        }
    }
}

/* ---- entry ------------------------------------------------------------------------------------
 */

/** True where what follows belongs to a lock that is had already. */
static bool has_lock(const nicstride_incoming_t *in)
{
    return in->msg->type == NICSTRIDE_MSG_LOCK && in->msg->count == NICSTRIDE_LOCK_COMPANY &&
           !nicstride_any_deferred_locked() && nicstride_lock_at_once_locked(in->m, in->p, in->msg);
}

/** False where what follows in the same message is not to be done. */
static bool one_message(const void *header, size_t header_len, const void *data, size_t len,
                        onic_rndv_t *rndv)
{
    nicstride_msg_t msg;
    nicstride_incoming_t in = {.msg = &msg, .data = data, .len = len, .rndv = rndv};
    const char *wrong = nicstride_msg_decode(header, header_len, len, &msg, &in.layout);

    if (wrong == NULL)
        in.m = nicstride_find_window(msg.win);
    if (in.m != NULL && msg.origin < (uint32_t)in.m->size)
        in.p = nicstride_peer_locked(in.m, (int)msg.origin);
    if (wrong == NULL && (msg.flags & NICSTRIDE_MSG_INLINE) != 0) {
        in.data = (const char *)in.layout + msg.layout_len;
        in.len = msg.len;
    }
    /* A window that is gone is nothing unusual: late acknowledgements and releases. */
    if (in.p == NULL || (rndv != NULL) != ((msg.flags & NICSTRIDE_MSG_RNDV) != 0 &&
                                           msg.type != NICSTRIDE_MSG_GET)) {
        nicstride_add(&nicstride_counters.refused, 1);
        if (rndv != NULL)
            onic_rndv_drop(rndv);
        return true;
    }
    if (has_lock(&in))
        return true;
    /* Not yet satisfied, so no acknowledgement goes out here but with the effect. */
    if (asks_for_ack(&msg) && nicstride_rx_flush(&in.p->rx, msg.count))
        nicstride_acknowledge_locked(in.m, in.p);
    if ((takes_lock(&msg) && nicstride_any_deferred_locked()) || !dispatch(&in))
        defer(&in);
    return msg.type != NICSTRIDE_MSG_LOCK || msg.count != NICSTRIDE_LOCK_COMPANY;
}

/** Messages that came in one; the replies go back in one. */
static void batch(const void *bytes, size_t len)
{
    const void *message;
    size_t at = 0, message_len;
    bool go_on = true;

    nicstride_outboxes_collect = true;
    while (go_on && nicstride_batch_next(bytes, len, &at, &message, &message_len)) {
        if (!nicstride_on_short(message, message_len))
            go_on = one_message(message, message_len, NULL, 0, NULL);
    }
    nicstride_outboxes_collect = false;
    nicstride_outboxes_send_locked();
    if (go_on && at < len)
        nicstride_add(&nicstride_counters.refused, 1);
}

void nicstride_am(const void *header, size_t header_len, const void *data, size_t len,
                  onic_rndv_t *rndv)
{
    const unsigned char *mark = header;

    if (len == 0 && rndv == NULL && nicstride_on_short(header, header_len))
        return;
    if (header_len == 1 && *mark == NICSTRIDE_BATCH_MARK && rndv == NULL)
        batch(data, len);
    else
        (void)one_message(header, header_len, data, len, rndv);
}
