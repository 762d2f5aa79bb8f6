/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Peers' puts and gets by message. A short get has one reply; others are answered fragment
 *  by fragment. */
#include "common/layout/copy.h"
#include "common/layout/pack.h"
#include "osc_nicstride/methods/pack/parts.h"
#include "osc_nicstride/protocol/vector.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/target/target.h"

typedef nicstride_answering_t answer_t;

_Static_assert(sizeof(answer_t) <= NICSTRIDE_KEPT_USE, "what is counted for it");

static void answer_more(answer_t *a);

static void answered_cb(void *arg, int status)
{
    answer_t *a = arg;

    /* The origin lacks data, and nothing else would tell it. */
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

/** Ends an answer that cannot be given in full, so that the origin does not wait for the rest. */
static void answer_failed(answer_t *a)
{
    nicstride_msg_t msg;

    nicstride_reply_init(a->access.p, &a->access.msg, &msg, a->left);
    msg.offset = a->offset;
    msg.status = MPI_ERR_OTHER;
    nicstride_send_header_locked(a->access.p, &msg);
    a->left = 0;
}

/** Sends more fragments. After the last one, ends the answer and counts the get as applied. */
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
    nicstride_access_end(&a->access, 0);
}

static void answer(answer_t *a)
{
    a->offset = a->access.msg.offset;
    a->left = a->access.msg.len;
    a->in_flight = 0;
    answer_more(a);
}

static void answer_in_fragments(const nicstride_incoming_t *in)
{
    void *record;
    const int error = nicstride_access_open(in, sizeof(answer_t), &record);

    if (error != 0)
        nicstride_reply_locked(in, NULL, in->msg->len, error);
    else
        answer(record);
}

void nicstride_answer_opened(nicstride_pending_access_t *access)
{
    access->cancel = NULL;
    answer((answer_t *)access);
}

/** Packs or unpacks the bytes of a short message; returns an error class, or 0. */
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
        answer_in_fragments(in);
}

/* ---- puts ------------------------------------------------------------------------------------ */

void nicstride_on_put(const nicstride_incoming_t *in)
{
    char *at = nicstride_contiguous_target(in, in->len);
    int error = 0;

    if (at != NULL)
        onic_copy_bytes(at, in->data, in->len);
    else
        error = move_short(in, NULL, in->data);
    nicstride_applied_locked(in->m, in->p, in->msg, error);
}

/* ---- vectors --------------------------------------------------------------------------------- */

/** Applies every put that is possible, whatever happens to others: each is an operation of its
 *  own. */
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

/** Replies with the bytes of all gets, in order, or with none if one of them fails. */
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
