/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/queue/send.h"

#include "ompi/constants.h"

#include <stdlib.h>
#include <string.h>

enum { MARK_BYTES = 1 };

typedef nicstride_sent_batch_t sent_batch_t;

_Static_assert(NICSTRIDE_PIECE_MAX <= ONIC_MESSAGE_LEAST,
               "what is inline goes through every queue");

/* The peers with waiting messages. */
static LIST_HEAD(, nicstride_peer) waiting = LIST_HEAD_INITIALIZER(waiting);

bool nicstride_collects;

size_t nicstride_frag_max_locked(nicstride_peer_t *p, size_t wanted)
{
    if (p->flow.frag_max == 0 || p->flow.frag_max < wanted)
        p->flow.frag_max = onic_peer_message_max(p->peer, wanted);
    /* Whatever the transport's limit is: it must itself cut smaller fragments. */
    return p->flow.frag_max > NICSTRIDE_FRAG_MIN ? p->flow.frag_max : NICSTRIDE_FRAG_MIN;
}

void nicstride_give_up_locked(nicstride_peer_t *p)
{
    __atomic_store_n(&p->failed, true, __ATOMIC_RELAXED);
    onic_peer_give_up(p->peer);
}

/* ---- batches --------------------------------------------------------------------------------- */

static sent_batch_t *take(void)
{
    sent_batch_t *b = malloc(sizeof(*b));

    if (b != NULL)
        b->batch.len = 0;
    return b;
}

static void sent_cb(void *arg, int status)
{
    nicstride_peer_t *p = arg;

    if (status != OMPI_SUCCESS)
        nicstride_give_up_locked(p);
    p->flow.posting--;
    if (p->queue.length > 0)
        onic_transport_ask(ONIC_AM_OSC, ONIC_LOCKED);
}

static void batch_sent_cb(void *arg, int status)
{
    sent_cb(((sent_batch_t *)arg)->peer, status);
    free(arg);
}

/** Hands a message to the transport; as nicstride_send_locked. */
static int give(nicstride_peer_t *p, const void *header, size_t len, const onic_payload_t *data,
                onic_send_cb_t cb, void *arg)
{
    const bool counts = cb == sent_cb || cb == batch_sent_cb;
    const int rc = onic_peer_send(p->peer, ONIC_AM_OSC, header, len, data, 0, cb, arg);

    p->flow.posting += rc == 0 && counts;
    if (rc < 0)
        nicstride_give_up_locked(p);
    return rc;
}

static void send_alone(nicstride_peer_t *p, const void *message, size_t len)
{
    (void)give(p, message, len, NULL, sent_cb, p);
}

static void send_batch(nicstride_peer_t *p, sent_batch_t *b)
{
    static const unsigned char mark[MARK_BYTES] = {NICSTRIDE_BATCH_MARK};
    const onic_payload_t payload = {.base = b->batch.bytes, .len = b->batch.len};

    b->peer = p;
    if (give(p, mark, sizeof(mark), &payload, batch_sent_cb, b) != 0)
        free(b);
}

/** Takes the waiting batch away from the peer. */
static sent_batch_t *withdraw(nicstride_peer_t *p)
{
    sent_batch_t *b = p->flow.batch;

    LIST_REMOVE(p, flow.waiting);
    p->flow.vector = 0;
    __atomic_store_n(&p->flow.batch, NULL, __ATOMIC_RELAXED);
    return b;
}

void nicstride_send_waiting_locked(nicstride_peer_t *p)
{
    size_t at = 0, len;
    const void *message;

    if (p->flow.batch == NULL)
        return;
    sent_batch_t *b = withdraw(p);

    if (nicstride_batch_next(b->batch.bytes, b->batch.len, &at, &message, &len) &&
        at == b->batch.len) {
        send_alone(p, message, len);
        free(b);
        return;
    }
    send_batch(p, b);
}

int nicstride_send_all_waiting_locked(void)
{
    int n = 0;

    for (; !LIST_EMPTY(&waiting); n++)
        nicstride_send_waiting_locked(LIST_FIRST(&waiting));
    return n;
}

size_t nicstride_batch_max_locked(nicstride_peer_t *p, size_t len)
{
    const size_t before = p->flow.batch != NULL ? p->flow.batch->batch.len : 0;
    const size_t wanted = MARK_BYTES + before + sizeof(uint16_t) + len;
    const size_t frag = nicstride_frag_max_locked(p, wanted) - MARK_BYTES;

    return frag < NICSTRIDE_BATCH_MAX ? frag : NICSTRIDE_BATCH_MAX;
}

unsigned char *nicstride_message_room_locked(nicstride_peer_t *p, size_t len)
{
    const size_t max = nicstride_batch_max_locked(p, len);
    unsigned char *at = NULL;

    p->flow.vector = 0;
    if (p->flow.batch != NULL)
        at = nicstride_batch_room(&p->flow.batch->batch, max, len);
    if (at != NULL)
        return at;
    nicstride_send_waiting_locked(p);
    sent_batch_t *b = take();
    if (b == NULL)
        return NULL;
    at = nicstride_batch_room(&b->batch, max, len);
    if (at == NULL) {
        free(b);
        return NULL;
    }
    __atomic_store_n(&p->flow.batch, b, __ATOMIC_RELAXED);
    LIST_INSERT_HEAD(&waiting, p, flow.waiting);
    onic_transport_ask(ONIC_AM_OSC, ONIC_LOCKED);
    return at;
}

void nicstride_drop_waiting_locked(nicstride_peer_t *p)
{
    if (p->flow.batch != NULL)
        free(withdraw(p));
}

/* ---- messages -------------------------------------------------------------------------------- */

void nicstride_post_locked(nicstride_peer_t *p, const void *message, size_t len, bool may_wait)
{
    unsigned char *at = NULL;

    may_wait = may_wait || nicstride_collects;
    /* Not past messages that wait already. */
    if (may_wait || p->flow.batch != NULL)
        at = nicstride_message_room_locked(p, len);
    if (at == NULL) {
        send_alone(p, message, len);
        return;
    }
    memcpy(at, message, len);
    if (!may_wait)
        nicstride_send_waiting_locked(p);
}

/** Puts header, layout and data into one piece. Eight bytes of data are by far the most
 *  frequent. */
size_t nicstride_compose(unsigned char *bytes, nicstride_msg_t *msg, const onic_payload_t *data)
{
    const size_t len = data != NULL ? data->len : 0;

    if (len > 0 && !nicstride_msg_has_ticket(msg->type))
        msg->flags |= NICSTRIDE_MSG_INLINE;
    const size_t header = sizeof(*msg) + msg->layout_len;
    unsigned char *end = bytes + header;
    memcpy(bytes, msg, header);
    if (len == 0)
        return (size_t)(end - bytes);
    if (data->cursor.layout == NULL) {
        onic_copy_out(end, data->base, len); /* may be window memory to which others write */
    } else {
        onic_cursor_t from = data->cursor;

        onic_pack(&from, data->base, end, len);
    }
    return (size_t)(end - bytes) + len;
}

void nicstride_send_inline_locked(nicstride_peer_t *p, nicstride_msg_t *msg,
                                  const onic_payload_t *data)
{
    unsigned char bytes[NICSTRIDE_PIECE_MAX];
    const size_t len = nicstride_compose(bytes, msg, data);

    nicstride_post_locked(p, bytes, len, false);
}

int nicstride_send_locked(nicstride_peer_t *p, nicstride_msg_t *msg, const onic_payload_t *data,
                          onic_send_cb_t cb, void *arg)
{
    const size_t header = sizeof(*msg) + msg->layout_len;

    if ((data == NULL || data->len == 0) && msg->layout_len <= NICSTRIDE_INLINE_LAYOUT) {
        nicstride_send_inline_locked(p, msg, data);
        return 1;
    }
    nicstride_send_waiting_locked(p);
    return give(p, msg, header, data, cb != NULL ? cb : sent_cb, cb != NULL ? arg : p);
}

void nicstride_set_payload(onic_payload_t *p, const onic_layout_t *l, const char *base, uint64_t at,
                           uint64_t len)
{
    p->len = len;
    p->base = base;
    if (!onic_layout_is_contig(l)) {
        onic_cursor_init(&p->cursor, l, at);
        return;
    }
    p->cursor.layout = NULL;
    p->base = base + l->offset + (int64_t)at;
}

void nicstride_send_header_locked(nicstride_peer_t *p, nicstride_msg_t *msg)
{
    (void)nicstride_send_locked(p, msg, NULL, NULL, NULL);
}

void nicstride_send_note_locked(nicstride_peer_t *p, nicstride_msg_type_t type, unsigned op,
                                uint64_t count)
{
    nicstride_msg_t msg = nicstride_note(p, type, op, count);

    nicstride_send_header_locked(p, &msg);
}

bool nicstride_send_note(nicstride_peer_t *p, nicstride_msg_type_t type, unsigned op,
                         uint64_t count)
{
    bool reached;

    onic_transport_lock();
    nicstride_send_note_locked(p, type, op, count);
    reached = !nicstride_peer_failed_locked(p);
    onic_transport_unlock();
    return reached;
}
