/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Answers: how an origin learns that its message has had its effect, and gets what it asked
 *  for: by a message, with a reply, or in the cache line that both share (credit.h). The line is
 *  worth a third of the time of a single put or get of 8 bytes on a node. */
#include <stdlib.h>

#include "common/pipeline/pipeline.h"
#include "common/support/handle.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/queue/wait.h"
#include "osc_nicstride/target/target.h"

/** Counts a message as applied. True: an acknowledgement is due, of `*count_p` and `*error_p`. */
static bool count_applied(nicstride_module_t *m, nicstride_peer_t *p, const nicstride_msg_t *msg,
                          int error, uint64_t *count_p, int *error_p)
{
    *count_p = 0;
    *error_p = 0;
    if (error != 0 && m->applied_error == 0 && (nicstride_is_active(m) || m->epoch.exposed))
        m->applied_error = error;
    if (!nicstride_rx_applied(&p->flow.rx, nicstride_msg_kept(msg), error))
        return false;
    nicstride_rx_ack(&p->flow.rx, count_p, error_p);
    return true;
}

static void acknowledge(nicstride_peer_t *p, uint64_t count, int error)
{
    nicstride_msg_t msg = nicstride_note(p, NICSTRIDE_MSG_ACK, 0, count);

    msg.disp = (int64_t)p->flow.rx.freed;
    msg.status = error;
    nicstride_send_header_locked(p, &msg);
}

/** In the reply line, where there is one and it takes the answer; else false. */
static bool answer_in_reply_line(nicstride_peer_t *p, const nicstride_msg_t *to, uint64_t count,
                                 const void *data, size_t len)
{
    _Alignas(uint64_t) unsigned char few[NICSTRIDE_REPLY_LINE_DATA];

    if (p->flow.reply_line_there == NULL || !nicstride_reply_line_takes(to->count, count, len) ||
        !onic_handle_has_word(to->handle))
        return false;
    /* UCX looks into a queue in shared memory only while it has an endpoint there, and leaves it to
     * a thread that has to be woken otherwise: the first answer is a message, which makes one. */
    if (!p->flow.reply_line_used) {
        p->flow.reply_line_used = true;
        return false;
    }
    /* Read once, and so that no element is torn: others may be writing there. */
    if (len > 0)
        onic_copy_bytes(few, data, len);
    nicstride_reply_line_answer(p->flow.reply_line_there, count,
                                len > 0 ? onic_handle_word(to->handle) : 0, few, len);
    return true;
}

void nicstride_applied_locked(nicstride_module_t *m, nicstride_peer_t *p,
                              const nicstride_msg_t *msg, int error)
{
    uint64_t count;

    if (count_applied(m, p, msg, error, &count, &error) &&
        (error != 0 || !answer_in_reply_line(p, msg, count, NULL, 0)))
        acknowledge(p, count, error);
}

void nicstride_reply_init(const nicstride_peer_t *p, const nicstride_msg_t *to,
                          nicstride_msg_t *msg, uint64_t len)
{
    nicstride_msg_init(
        msg, to->type < NICSTRIDE_MSG_ACC ? NICSTRIDE_MSG_GET_DATA : NICSTRIDE_MSG_ACC_DATA, p->win,
        p->me);
    msg->handle = to->handle;
    msg->offset = to->offset;
    msg->len = len;
}

void nicstride_reply_locked(const nicstride_incoming_t *in, const void *data, uint64_t len,
                            int error)
{
    const onic_payload_t payload = {.base = data, .len = error == 0 ? len : 0};
    nicstride_msg_t msg;
    uint64_t count;
    int earlier;

    /* The reply itself has its error. */
    (void)count_applied(in->m, in->p, in->msg, 0, &count, &earlier);
    if (error == 0 && earlier == 0 && answer_in_reply_line(in->p, in->msg, count, data, len))
        return;
    nicstride_reply_init(in->p, in->msg, &msg, len);
    msg.status = error;
    if (earlier == 0 && error == 0)
        msg.count = count;
    nicstride_send_inline_locked(in->p, &msg, &payload);
    if (count != 0 && msg.count == 0)
        acknowledge(in->p, count, earlier);
}

void nicstride_flush_asked_locked(nicstride_peer_t *p, uint64_t upto)
{
    uint64_t count;
    int error;

    if (!nicstride_rx_flush(&p->flow.rx, upto))
        return;
    nicstride_rx_ack(&p->flow.rx, &count, &error);
    acknowledge(p, count, error);
}

/* ---- the window's bytes -------------------------------------------------------------------------
 *
 * The bytes of the window that a message is about, and what uses them. */

/** Where the message begins in its layout. */
static uint64_t begin_of(const nicstride_msg_t *msg)
{
    return (msg->flags & NICSTRIDE_MSG_SLICE) ? 0 : msg->offset;
}

/** True if the whole layout lies in the window (dynamic windows: only the bytes of this
 *  message). */
static bool target_holds(const nicstride_module_t *m, const nicstride_msg_t *msg,
                         const onic_layout_t *l)
{
    if (m->flavor == MPI_WIN_FLAVOR_DYNAMIC)
        return nicstride_regions_cover(&m->regions, (uint64_t)msg->disp, l, begin_of(msg),
                                       msg->len);
    return nicstride_layout_fits(l, msg->disp, nicstride_info(m, m->rank)->size);
}

/** What the message says of the bytes, or a list that it names. */
static bool decode(const nicstride_incoming_t *in, onic_layout_t *l)
{
    const nicstride_msg_t *msg = in->msg;
    size_t used = 0;

    const bool named = (msg->flags & NICSTRIDE_MSG_CACHED) != 0;
    const char *bytes = (const char *)in->layout + (named ? NICSTRIDE_LAYOUT_ID_BYTES : 0);
    const size_t len = msg->layout_len - (named ? NICSTRIDE_LAYOUT_ID_BYTES : 0);

    if (named && (msg->flags & NICSTRIDE_MSG_SLICE) == 0)
        return in->list != NULL &&
               onic_layout_decode_around(l, &in->list->layout, bytes, len) == ONIC_LAYOUT_OK;
    if (onic_layout_decode(l, bytes, len, &used) != ONIC_LAYOUT_OK)
        return false;
    if (used != len)
        onic_layout_fini(l);
    return used == len;
}

int nicstride_open_target(const nicstride_incoming_t *in, onic_layout_t *l, char **base_p,
                          uint64_t *at_p)
{
    nicstride_module_t *m = in->m;
    const nicstride_msg_t *msg = in->msg;
    bool right;

    if (msg->layout_len == 0) {
        if (onic_layout_contig(l, 0, msg->offset + msg->len) != ONIC_LAYOUT_OK)
            return MPI_ERR_RMA_RANGE;
    } else if (!decode(in, l))
        return MPI_ERR_OTHER;
    *at_p = begin_of(msg);
    right = *at_p <= l->size && msg->len <= l->size - *at_p;
    if (!right || !target_holds(m, msg, l)) {
        onic_layout_fini(l);
        return right ? MPI_ERR_RMA_RANGE : MPI_ERR_OTHER;
    }
    *base_p = (char *)((uintptr_t)m->base + (uintptr_t)msg->disp);
    return 0;
}

int nicstride_use_open(const nicstride_incoming_t *in, size_t size, void **use_p)
{
    nicstride_pending_access_t *u = malloc(size);
    const int error =
        u != NULL ? nicstride_open_target(in, &u->layout, &u->base, &u->at) : MPI_ERR_NO_MEM;

    if (error != 0) {
        free(u);
        return error;
    }
    u->m = in->m;
    u->p = in->p;
    u->msg = *in->msg;
    u->moves = u->cancelled = false;
    LIST_INSERT_HEAD(&u->m->accesses, u, of_window);
    *use_p = u;
    return 0;
}

void nicstride_pending_access_close(nicstride_pending_access_t *u)
{
    if (u->m != NULL)
        LIST_REMOVE(u, of_window);
    onic_layout_fini(&u->layout);
    free(u);
}

void nicstride_pending_access_end(nicstride_pending_access_t *u, int error)
{
    if (u->m != NULL)
        nicstride_applied_locked(u->m, u->p, &u->msg, error);
    nicstride_pending_access_close(u);
}

static bool is_in_window(const nicstride_pending_access_t *u)
{
    return target_holds(u->m, &u->msg, &u->layout);
}

/** The next one that is to be cancelled and was not yet. */
static nicstride_pending_access_t *next_to_cancel(const nicstride_module_t *m, bool all)
{
    nicstride_pending_access_t *u = LIST_FIRST(&m->accesses);

    while (u != NULL && (!u->moves || u->cancelled || (!all && is_in_window(u))))
        u = LIST_NEXT(u, of_window);
    return u;
}

bool nicstride_end_uses_locked(nicstride_module_t *m, bool all)
{
    nicstride_pending_access_t *u;

    LIST_FOREACH(u, &m->accesses, of_window)
        u->cancelled = false;
    /* From the begin each time: cancelling one may end it, and others. */
    while ((u = next_to_cancel(m, all)) != NULL) {
        u->cancelled = true;
        (void)onic_pipeline_cancel_locked(u);
    }
    LIST_FOREACH(u, &m->accesses, of_window)
        if (all ? u->moves : !is_in_window(u))
            return false;
    return true;
}

void nicstride_forget_uses_locked(nicstride_module_t *m)
{
    nicstride_pending_access_t *u;

    LIST_FOREACH(u, &m->accesses, of_window)
        u->m = NULL;
    LIST_INIT(&m->accesses);
}
