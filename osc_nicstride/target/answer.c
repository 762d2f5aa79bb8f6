/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Answers: how an origin learns that its message took effect, and gets the data that it
 *  asked for: by an acknowledgement, by a reply, or in the cache line that both share
 *  (reply_line.h). */
#include "common/support/handle.h"
#include "osc_nicstride/check/check.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/target/target.h"

void nicstride_freed_locked(nicstride_peer_t *p, const nicstride_msg_t *msg)
{
    const uint64_t kept = nicstride_msg_kept(msg);

    if (kept > 0)
        onic_account_freed(p->peer, p->account, kept);
}

/** Counts a message as applied. True if an acknowledgement is due, of `*count_p` and `*error_p`. */
static bool count_applied(nicstride_module_t *m, nicstride_peer_t *p, const nicstride_msg_t *msg,
                          int error, uint64_t *count_p, int *error_p)
{
    *count_p = 0;
    *error_p = 0;
    if (error != 0 && m->applied_error == 0 && (nicstride_is_active(m) || m->epoch.exposed))
        m->applied_error = error;
    nicstride_freed_locked(p, msg);
    /* That is not reached before this message counts. */
    if (msg->count != 0)
        (void)nicstride_rx_flush(&p->flow.rx, msg->count);
    if (!nicstride_rx_applied(&p->flow.rx, error))
        return false;
    nicstride_rx_ack(&p->flow.rx, count_p, error_p);
    return true;
}

static void acknowledge(nicstride_peer_t *p, uint64_t count, int error)
{
    nicstride_msg_t msg = nicstride_note(p, NICSTRIDE_MSG_ACK, 0, count);

    msg.status = error;
    nicstride_send_header_locked(p, &msg);
}

/** Answers in the reply line. False if there is none, or it does not take the answer. */
static bool answer_in_reply_line(nicstride_peer_t *p, const nicstride_msg_t *to, uint64_t count,
                                 const void *data, size_t len)
{
    _Alignas(uint64_t) unsigned char few[NICSTRIDE_REPLY_LINE_DATA];

    if (p->flow.reply_line_there == NULL || !nicstride_reply_line_takes(to->count, count, len) ||
        !onic_handle_has_word(to->handle))
        return false;
    /* Read only once and without tearing elements, as others may be writing there. */
    if (len > 0)
        onic_copy_out(few, data, len);
    nicstride_reply_line_answer(p->flow.reply_line_there, count,
                                len > 0 ? onic_handle_word(to->handle) : 0, few, len);
    return true;
}

void nicstride_applied_locked(nicstride_module_t *m, nicstride_peer_t *p,
                              const nicstride_msg_t *msg, int error)
{
    uint64_t count;

    nicstride_check_refused_locked(m, p, msg, error);
    if (count_applied(m, p, msg, error, &count, &error) &&
        (error != 0 || !answer_in_reply_line(p, msg, count, NULL, 0)))
        acknowledge(p, count, error);
}

void nicstride_reply_init(const nicstride_peer_t *p, const nicstride_msg_t *to,
                          nicstride_msg_t *msg, uint64_t len)
{
    nicstride_msg_init(msg, NICSTRIDE_MSG_REPLY, p->win, p->me);
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

    nicstride_check_refused_locked(in->m, in->p, in->msg, error);
    /* The reply itself carries its error. */
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
