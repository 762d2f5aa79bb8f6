/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Gets of peers: a short one has one reply, others are answered fragment by fragment. And
 *  their puts. */
#include <string.h>

#include "common/layout/pack.h"
#include "common/pipeline/pipeline.h"
#include "osc_nicstride/protocol/vector.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/target/target.h"
#include "osc_nicstride/window/control.h"
#include "osc_nicstride/window/op.h"

/** A get that is being answered. */
typedef struct answer {
    nicstride_pending_access_t access; /**< `at` is the next packed byte of the layout */
    uint64_t offset;                   /**< the same as a position in the origin's operation */
    uint64_t left;
    bool running; /**< in the sending loop: completions need not continue it */
    unsigned in_flight;
} answer_t;

_Static_assert(sizeof(answer_t) <= NICSTRIDE_KEPT_USE, "what is counted for it");

static void answer_more(answer_t *a);

static void answered_cb(void *arg, int status)
{
    answer_t *a = arg;

    /* The origin misses data, and nothing else would show it. */
    if (status != OMPI_SUCCESS && a->access.m != NULL)
        nicstride_give_up_locked(a->access.p);
    a->in_flight--;
    if (!a->running)
        answer_more(a);
}

static int answer_fragment(answer_t *a)
{
    const onic_layout_t *l = &a->access.layout;
    nicstride_peer_t *p = a->access.p;
    nicstride_msg_t msg;
    onic_payload_t payload;
    const uint64_t room = nicstride_frag_max_locked(p, sizeof(msg) + a->left) - sizeof(msg);
    uint64_t n = a->left;
    int rc;

    if (n > room)
        n = nicstride_fragment(l, (uintptr_t)a->access.base, a->access.at, room, 1);
    nicstride_reply_init(p, &a->access.msg, &msg, n);
    msg.offset = a->offset;
    nicstride_set_payload(&payload, l, a->access.base, a->access.at, n);
    a->in_flight++;
    rc = nicstride_send_locked(p, &msg, &payload, answered_cb, a);
    if (rc != 0)
        a->in_flight--;
    if (rc < 0)
        return rc;
    a->access.at += n;
    a->offset += n;
    a->left -= n;
    return OMPI_SUCCESS;
}

/** Ends an answer that cannot be given in full: the origin must not wait for the rest. */
static void answer_failed(answer_t *a)
{
    nicstride_msg_t msg;

    nicstride_reply_init(a->access.p, &a->access.msg, &msg, a->left);
    msg.offset = a->offset;
    msg.status = MPI_ERR_OTHER;
    nicstride_send_header_locked(a->access.p, &msg);
    a->left = 0;
}

/** Sends on; ends the answer with the last fragment. The get counts as applied then. */
static void answer_more(answer_t *a)
{
    int rc = OMPI_SUCCESS;

    if (a->access.m == NULL)
        a->left = 0;
    a->running = true;
    while (a->left > 0 && a->in_flight < NICSTRIDE_REPLIES_IN_FLIGHT && rc == OMPI_SUCCESS)
        rc = answer_fragment(a);
    a->running = false;
    if (rc != OMPI_SUCCESS)
        answer_failed(a);
    if (a->left > 0 || a->in_flight > 0)
        return;
    nicstride_pending_access_end(&a->access, 0);
}

static void answer_long(const nicstride_incoming_t *in)
{
    void *record;
    const int error = nicstride_use_open(in, sizeof(answer_t), &record);

    if (error != 0) {
        nicstride_reply_locked(in, NULL, in->msg->len, error);
        return;
    }
    answer_t *a = record;
    a->offset = in->msg->offset;
    a->left = in->msg->len;
    a->in_flight = 0;
    answer_more(a);
}

/** Packs the bytes of a short message, or unpacks them; returns an error class, or 0. */
static int move_short(const nicstride_incoming_t *in, void *to, const void *from)
{
    onic_layout_t l;
    onic_cursor_t c;
    char *base;
    uint64_t at;
    const int error = nicstride_open_target(in, &l, &base, &at);

    if (error != 0)
        return error;
    onic_cursor_init(&c, &l, at);
    if (to != NULL)
        onic_pack(&c, base, to, in->msg->len);
    else
        onic_unpack(&c, base, from, in->len);
    onic_layout_fini(&l);
    return 0;
}

static void answer_short(const nicstride_incoming_t *in)
{
    unsigned char few[NICSTRIDE_INLINE_MAX];
    const int error = move_short(in, few, NULL);

    nicstride_reply_locked(in, few, in->msg->len, error);
}

void nicstride_on_get(const nicstride_incoming_t *in)
{
    const bool is_short = in->msg->len <= nicstride_inline_max(false);
    const char *at = is_short ? nicstride_contiguous_target(in, in->msg->len) : NULL;

    if (at != NULL)
        nicstride_reply_locked(in, at, in->msg->len, 0);
    else if (is_short)
        answer_short(in);
    else
        answer_long(in);
}

/* ---- puts ------------------------------------------------------------------------------------ */

void nicstride_on_put(const nicstride_incoming_t *in)
{
    char *at = nicstride_contiguous_target(in, in->len);

    if (at == NULL) {
        nicstride_applied_locked(in->m, in->p, in->msg, move_short(in, NULL, in->data));
        return;
    }
    onic_copy_bytes(at, in->data, in->len);
    nicstride_applied_locked(in->m, in->p, in->msg, 0);
}

/* ---- vectors --------------------------------------------------------------------------------- */

/** All that can be are done, whatever becomes of others: they are operations of their own. */
void nicstride_on_putv(const nicstride_incoming_t *in)
{
    nicstride_record_t r;
    int error = 0;
    size_t at = 0;

    while (nicstride_record_next(in->data, in->len, true, &at, &r)) {
        char *to = nicstride_window_bytes(in->m, r.place, r.len);

        if (to != NULL)
            onic_copy_bytes(to, r.data, r.len);
        else if (error == 0)
            error = MPI_ERR_RMA_RANGE;
    }
    if (at < in->len && error == 0)
        error = MPI_ERR_OTHER;
    nicstride_applied_locked(in->m, in->p, in->msg, error);
}

/** The reply has the bytes of all one behind another, or none where one cannot be. */
void nicstride_on_getv(const nicstride_incoming_t *in)
{
    const uint64_t bytes = nicstride_getv_bytes(in->data, in->len);
    unsigned char few[NICSTRIDE_INLINE_MAX], *to = few;
    int error = bytes <= sizeof(few) ? 0 : MPI_ERR_OTHER;
    nicstride_record_t r;
    size_t at = 0;

    while (error == 0 && nicstride_record_next(in->data, in->len, false, &at, &r)) {
        const char *from = nicstride_window_bytes(in->m, r.place, r.len);

        if (from == NULL)
            error = MPI_ERR_RMA_RANGE;
        else
            onic_copy_out(to, from, r.len);
        to += r.len;
    }
    nicstride_reply_locked(in, few, bytes, error);
}

/* ---- receive buffers ----------------------------------------------------------------------------
 *
 * Transfers of peers that go through receive buffers (common/pipeline): the message says where in
 * the window the data belongs, and the ticket behind it which buffers it comes in or goes to. */

/** One that is under way. */
typedef struct nicstride_moving {
    nicstride_pending_access_t access;
    nicstride_accop_t op; /**< accumulates */
    onic_cursor_t cursor;
} moving_t;

_Static_assert(sizeof(moving_t) <= NICSTRIDE_KEPT_USE, "what is counted for it");

static bool is_accumulate(const nicstride_msg_t *msg)
{
    return msg->type == NICSTRIDE_MSG_ACC;
}

static void moved_cb(void *arg, int status)
{
    moving_t *v = arg;

    if (v->access.m != NULL && v->access.msg.type != NICSTRIDE_MSG_GET) {
        v->access.p->served.moving--;
        /* Those that had to wait for it. */
        if (v->access.p->served.put_off > 0)
            onic_transport_defer(ONIC_AM_OSC);
    }
    nicstride_pending_access_end(&v->access, status == OMPI_SUCCESS ? 0 : MPI_ERR_OTHER);
}

/** Applies whole elements that have come; none while another process has the lock. */
static int64_t apply(void *arg, uint64_t pos, const void *data, uint64_t n)
{
    moving_t *v = arg;
    const nicstride_module_t *m = v->access.m;
    onic_owned_lock_t *lock = &nicstride_ctl(m, m->node.me)->acc_lock;

    (void)pos;
    n -= n % v->op.apply.size;
    if (n == 0)
        return 0;
    if (!nicstride_ctl_try(m, lock))
        return nicstride_is_broken(m) ? -1 : 0;
    nicstride_apply(&v->op.apply, &v->cursor, v->access.base, data, NULL, n);
    nicstride_ctl_unlock(lock);
    return (int64_t)n;
}

static onic_ticket_t ticket_of(const nicstride_msg_t *msg, const void *layout)
{
    onic_ticket_t ticket;

    memcpy(&ticket, (const char *)layout + msg->layout_len, sizeof(ticket));
    return ticket;
}

/** Checks the message and makes its record and its end in the window. */
static int open_moving(const nicstride_incoming_t *in, moving_t **v_p, onic_pipeline_end_t *end_p)
{
    void *record;
    int error = nicstride_use_open(in, sizeof(moving_t), &record);

    if (error != 0)
        return error;
    moving_t *v = *v_p = record;
    const nicstride_pending_access_t *u = &v->access;
    *end_p = (onic_pipeline_end_t){.at = u->at,
                                   .len = in->msg->len,
                                   .base = u->base,
                                   .granule = 1,
                                   .done = moved_cb,
                                   .arg = v};
    if (is_accumulate(in->msg)) {
        if (!nicstride_accop_init(&v->op, in->msg->op, in->msg->dtype) ||
            in->msg->len % v->op.apply.size != 0 || u->at % v->op.apply.size != 0)
            error = MPI_ERR_TYPE;
        v->op.apply.ctx = &v->op;
        onic_cursor_init(&v->cursor, &u->layout, u->at);
        onic_layout_set(&end_p->layout, 0);
        end_p->take = apply;
    } else {
        onic_layout_dup(&end_p->layout, &u->layout);
    }
    if (error != 0)
        nicstride_pending_access_close(&v->access);
    return error;
}

void nicstride_throw_away_locked(onic_peer_t *from, const nicstride_msg_t *msg, const void *layout)
{
    if ((msg->flags & NICSTRIDE_MSG_RX_BUFFERS) == 0 || msg->type == NICSTRIDE_MSG_GET)
        return;
    const onic_ticket_t ticket = ticket_of(msg, layout);
    (void)onic_pipeline_receive_locked(from, &ticket, NULL);
}

void nicstride_on_move(const nicstride_incoming_t *in)
{
    const bool get = in->msg->type == NICSTRIDE_MSG_GET;
    const onic_ticket_t ticket = ticket_of(in->msg, in->layout);
    onic_pipeline_end_t end;
    moving_t *v;
    int error = open_moving(in, &v, &end);

    if (error == 0) {
        const int rc = get ? onic_pipeline_answer_locked(in->p->wire, &ticket, &end)
                           : onic_pipeline_receive_locked(in->p->wire, &ticket, &end);

        if (rc == OMPI_SUCCESS) {
            v->access.moves = true;
            if (!get)
                in->p->served.moving++;
            return;
        }
        onic_layout_fini(&end.layout);
        nicstride_pending_access_close(&v->access);
        /* The origin could have this process map its buffers, and it cannot: data goes by
         * message. */
        if (get && rc == OMPI_ERR_UNREACH) {
            answer_long(in);
            return;
        }
        error = MPI_ERR_OTHER;
    }
    if (get) {
        nicstride_reply_locked(in, NULL, in->msg->len, error);
        return;
    }
    nicstride_throw_away_locked(in->p->wire, in->msg, in->layout);
    nicstride_applied_locked(in->m, in->p, in->msg, error);
}
