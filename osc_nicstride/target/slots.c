/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Transfers of peers that go through slots (common/mover): the message says where in the
 *  window the data belongs, and the ticket behind it which slots it comes in or goes to. */
#include <string.h>

#include "common/mover/mover.h"
#include "osc_nicstride/target/target.h"
#include "osc_nicstride/window/control.h"
#include "osc_nicstride/window/op.h"

/** One that is under way. */
typedef struct nicstride_moving {
    nicstride_use_t use;
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

    if (v->use.m != NULL && is_accumulate(&v->use.msg)) {
        v->use.p->served.accumulating--;
        /* Those that had to wait for it. */
        onic_wire_defer(ONIC_AM_OSC);
    }
    nicstride_use_end(&v->use, status == OMPI_SUCCESS ? 0 : MPI_ERR_OTHER);
}

/** Applies whole elements that have come; none while another process has the lock. */
static int64_t apply(void *arg, uint64_t pos, const void *data, uint64_t n)
{
    moving_t *v = arg;
    const nicstride_module_t *m = v->use.m;
    onic_owned_lock_t *lock = &nicstride_ctl(m, m->node.me)->acc_lock;

    (void)pos;
    n -= n % v->op.apply.size;
    if (n == 0)
        return 0;
    if (!nicstride_ctl_try(m, lock))
        return nicstride_is_broken(m) ? -1 : 0;
    nicstride_apply(&v->op.apply, &v->cursor, v->use.base, data, NULL, n);
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
static int open_moving(const nicstride_incoming_t *in, moving_t **v_p, onic_mover_end_t *end_p)
{
    void *record;
    int error = nicstride_use_open(in, sizeof(moving_t), &record);

    if (error != 0)
        return error;
    moving_t *v = *v_p = record;
    const nicstride_use_t *u = &v->use;
    *end_p = (onic_mover_end_t){.at = u->at,
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
        nicstride_use_close(&v->use);
    return error;
}

void nicstride_throw_away_locked(onic_peer_t *from, const nicstride_msg_t *msg, const void *layout)
{
    if ((msg->flags & NICSTRIDE_MSG_SLOTS) == 0 || msg->type == NICSTRIDE_MSG_GET)
        return;
    const onic_ticket_t ticket = ticket_of(msg, layout);
    (void)onic_mover_receive_locked(from, &ticket, NULL);
}

void nicstride_on_move(const nicstride_incoming_t *in)
{
    const bool get = in->msg->type == NICSTRIDE_MSG_GET;
    const onic_ticket_t ticket = ticket_of(in->msg, in->layout);
    onic_mover_end_t end;
    moving_t *v;
    int error = open_moving(in, &v, &end);

    if (error == 0) {
        const int rc = get ? onic_mover_answer_locked(in->p->wire, &ticket, &end)
                           : onic_mover_receive_locked(in->p->wire, &ticket, &end);

        if (rc == OMPI_SUCCESS) {
            v->use.moves = true;
            if (is_accumulate(in->msg))
                in->p->served.accumulating++;
            return;
        }
        onic_layout_fini(&end.layout);
        nicstride_use_close(&v->use);
        error = MPI_ERR_OTHER;
    }
    if (get) {
        nicstride_reply_locked(in, NULL, in->msg->len, error);
        return;
    }
    nicstride_throw_away_locked(in->p->wire, in->msg, in->layout);
    nicstride_applied_locked(in->m, in->p, in->msg, error);
}
