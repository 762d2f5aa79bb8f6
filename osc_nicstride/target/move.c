/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Transfers of peers that go through slots (common/mover): the message says where in the window the
 * data belongs, and the ticket behind it which slots it comes in or goes to.
 */
#include <stdlib.h>
#include <string.h>

#include "common/mover/mover.h"
#include "osc_nicstride/target/target.h"
#include "osc_nicstride/window/control.h"
#include "osc_nicstride/window/op.h"

/** One that is under way. */
typedef struct nicstride_moving {
    struct nicstride_moving *next, **link;
    nicstride_module_t *m;
    nicstride_peer_t *p;
    nicstride_msg_t msg;
    nicstride_accop_t op; /**< accumulates */
    onic_layout_t layout; /**< of the window */
    onic_cursor_t cursor;
    char *base;
    bool cancelled;
} moving_t;

static bool is_accumulate(const nicstride_msg_t *msg)
{
    return msg->type == NICSTRIDE_MSG_ACC;
}

static void enlist(moving_t *v)
{
    v->next = v->m->moving;
    v->link = &v->m->moving;
    if (v->next != NULL)
        v->next->link = &v->next;
    v->m->moving = v;
    if (is_accumulate(&v->msg))
        v->p->accumulating++;
}

static void end(moving_t *v)
{
    *v->link = v->next;
    if (v->next != NULL)
        v->next->link = v->link;
    if (is_accumulate(&v->msg)) {
        v->p->accumulating--;
        onic_layout_fini(&v->layout);
        /* Those that had to wait for it. */
        onic_wire_defer(ONIC_AM_OSC);
    }
    free(v);
}

static void moved_cb(void *arg, int status)
{
    moving_t *v = arg;

    nicstride_applied_locked(v->m, v->p, &v->msg, status == OMPI_SUCCESS ? 0 : MPI_ERR_OTHER);
    end(v);
}

/** Applies what has come, without the wire lock. Whole elements only; none while somebody else has
 *  the lock. */
static int64_t apply(void *arg, uint64_t pos, const void *data, uint64_t n)
{
    moving_t *v = arg;
    onic_owned_lock_t *lock = &nicstride_ctl(v->m, v->m->node.me)->acc_lock;

    (void)pos;
    n -= n % v->op.apply.size;
    if (n == 0)
        return 0;
    if (!nicstride_ctl_try(v->m, lock))
        return nicstride_is_broken(v->m) ? -1 : 0;
    nicstride_apply(&v->op.apply, &v->cursor, v->base, data, NULL, n);
    nicstride_ctl_unlock(lock);
    return (int64_t)n;
}

static onic_ticket_t ticket_of(const nicstride_incoming_t *in)
{
    onic_ticket_t ticket;

    memcpy(&ticket, (const char *)in->layout + in->msg->layout_len, sizeof(ticket));
    return ticket;
}

/** Checks the message and makes its record and its end in the window. */
static int open_moving(const nicstride_incoming_t *in, moving_t **v_p, onic_mover_end_t *end_p)
{
    moving_t *v = malloc(sizeof(*v));
    uint64_t at = 0;
    int error;

    if (v == NULL)
        return MPI_ERR_NO_MEM;
    error = nicstride_open_target(in, &v->layout, &v->base, &at);
    if (error == 0 && is_accumulate(in->msg) &&
        (!nicstride_accop_init(&v->op, in->msg->op, in->msg->dtype) ||
         in->msg->len % v->op.apply.size != 0 || at % v->op.apply.size != 0)) {
        onic_layout_fini(&v->layout);
        error = MPI_ERR_TYPE;
    }
    if (error != 0) {
        free(v);
        return error;
    }
    v->m = in->m;
    v->p = in->p;
    v->msg = *in->msg;
    v->op.apply.ctx = &v->op;
    *end_p = (onic_mover_end_t){.layout = v->layout,
                                .at = at,
                                .len = in->msg->len,
                                .base = v->base,
                                .granule = 1,
                                .done = moved_cb,
                                .arg = v};
    if (is_accumulate(in->msg)) {
        onic_cursor_init(&v->cursor, &v->layout, at);
        onic_layout_set(&end_p->layout, 0); /* it stays with the record */
        end_p->take = apply;
    }
    *v_p = v;
    return 0;
}

/** Gives up a record that was not started. */
static void drop(moving_t *v)
{
    onic_layout_fini(&v->layout);
    free(v);
}

void nicstride_throw_away_locked(onic_peer_t *from, const nicstride_msg_t *msg, const void *layout)
{
    onic_ticket_t ticket;

    if ((msg->flags & NICSTRIDE_MSG_SLOTS) == 0 || msg->type == NICSTRIDE_MSG_GET)
        return;
    memcpy(&ticket, (const char *)layout + msg->layout_len, sizeof(ticket));
    (void)onic_mover_receive_locked(from, &ticket, NULL);
}

void nicstride_on_move_in(const nicstride_incoming_t *in)
{
    const onic_ticket_t ticket = ticket_of(in);
    onic_mover_end_t sink;
    moving_t *v;
    int error = open_moving(in, &v, &sink);

    if (error == 0) {
        if (onic_mover_receive_locked(in->p->wire, &ticket, &sink) == OMPI_SUCCESS) {
            enlist(v);
            return;
        }
        drop(v);
        error = MPI_ERR_OTHER;
    }
    nicstride_throw_away_locked(in->p->wire, in->msg, in->layout);
    nicstride_applied_locked(in->m, in->p, in->msg, error);
}

void nicstride_on_move_out(const nicstride_incoming_t *in)
{
    const onic_ticket_t ticket = ticket_of(in);
    onic_mover_end_t source;
    moving_t *v;
    int error = open_moving(in, &v, &source);

    if (error == 0) {
        if (onic_mover_answer_locked(in->p->wire, &ticket, &source) == OMPI_SUCCESS) {
            enlist(v);
            return;
        }
        drop(v);
        error = MPI_ERR_OTHER;
    }
    nicstride_reply_locked(in, NULL, in->msg->len, error);
}

/** The next one that was not cancelled yet. */
static moving_t *next_to_cancel(const nicstride_module_t *m)
{
    moving_t *v = m->moving;

    while (v != NULL && v->cancelled)
        v = v->next;
    return v;
}

bool nicstride_cancel_moving_locked(nicstride_module_t *m)
{
    bool all = true;

    for (moving_t *v = m->moving; v != NULL; v = v->next)
        v->cancelled = false;
    /* From the begin each time: cancelling one may end it, and others. */
    for (moving_t *v = next_to_cancel(m); v != NULL; v = next_to_cancel(m)) {
        v->cancelled = true;
        all = onic_mover_cancel_locked(v) && all;
    }
    return all && m->moving == NULL;
}
