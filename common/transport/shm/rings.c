/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/ompi_compat.h"
#include "common/support/help.h"
#include "common/transport/row/row.h"
#include "common/transport/shm/inbox.h"
#include "common/transport/shm/neighbour.h"
#include "common/transport/shm/rings.h"

#include <stdlib.h>

#include "ompi/constants.h"

_Static_assert(ONIC_MESSAGE_LEAST == ONIC_OUTBOX_LEAST,
               "each ring takes the messages that all take");

onic_queue_counters_t onic_queue_counters;

/* ---- to others ------------------------------------------------------------------------------- */

/** This process's ring in the inbox of another one. */
typedef struct onic_ring_out {
    onic_outbox_t box;
    onic_peer_t *to;
    onic_request_list_t waiting; /**< messages for which there was no room, in order */
    struct onic_ring_out *next;
} onic_ring_out_t;

static onic_ring_out_t *outs;
/** Messages that wait for room. */
static unsigned waiting;

static bool can_open(const onic_peer_t *to)
{
    return !to->foreign && onic_inbox_has_queues(&to->queues) &&
           onic_same_place(&to->cma_id, &onic_here.id);
}

/** Opens the ring: some system calls. This process has one in its own inbox, too. */
static bool reaches(onic_peer_t *to)
{
    onic_inbox_head_t *head = to->self ? onic_inbox.segment.base : onic_peer_inbox(to);
    onic_ring_out_t *out;

    if (!can_open(to) || head == NULL || !(to->self || to->wakes) ||
        (out = calloc(1, sizeof(*out))) == NULL)
        return false;
    if (!onic_outbox_open(&out->box, &to->queues, head, onic_here.name, &to->cma_id.wake)) {
        free(out);
        return false;
    }
    out->to = to;
    out->box.far = onic_distance(to->name) == ONIC_FAR;
    STAILQ_INIT(&out->waiting);
    out->next = outs;
    outs = to->ring = out;
    return true;
}

static void describe(onic_address_t *mine)
{
    mine->queues = onic_inbox.key;
}

static int connect_ring(onic_peer_t *to)
{
    return to->ring != NULL ? OMPI_SUCCESS : OMPI_ERR_UNREACH;
}

static size_t message_max(onic_peer_t *to, size_t wanted)
{
    return onic_outbox_most(&to->ring->box, wanted);
}

static bool put(onic_ring_out_t *out, unsigned am_id, const void *header, size_t header_len,
                const onic_payload_t *payload)
{
    return onic_outbox_put(&out->box, (uint8_t)am_id, header, header_len, payload,
                           onic_am_is_served(am_id));
}

static bool send_now(onic_peer_t *to, unsigned am_id, const void *header, size_t header_len,
                     const onic_payload_t *payload)
{
    return STAILQ_EMPTY(&to->ring->waiting) && put(to->ring, am_id, header, header_len, payload);
}

/** The message may wait for room. */
static int send(onic_request_t *r, const onic_payload_t *payload, unsigned flags)
{
    onic_ring_out_t *out = r->peer->ring;

    (void)flags;
    if (r->header_len + r->len > onic_outbox_most(&out->box, r->header_len + r->len))
        return OMPI_ERR_BAD_PARAM; /* there would never be room */
    if (send_now(r->peer, r->am_id, r->header, r->header_len, payload))
        return 1;
    onic_queue_counters.waited++;
    waiting++;
    r->starting = false;
    STAILQ_INSERT_TAIL(&out->waiting, r, next);
    /* Whether one-sided operations get a server thread is a parameter of their component. */
    onic_row_calls.left(!onic_am_is_served(r->am_id));
    return 0;
}

/** Sends what has waited for room, or ends it where the receiver makes none any more. */
static int send_waiting(onic_ring_out_t *out)
{
    int n = 0;

    for (onic_request_t *r; (r = STAILQ_FIRST(&out->waiting)) != NULL; n++) {
        const onic_payload_t payload = {.base = r->base, .cursor = r->cursor, .len = r->len};
        const bool lost = out->to->failed != OMPI_SUCCESS;

        if (!lost && !put(out, r->am_id, r->header, r->header_len, &payload))
            break;
        STAILQ_REMOVE_HEAD(&out->waiting, next);
        waiting--;
        onic_request_end(r, lost ? OMPI_ERR_UNREACH : OMPI_SUCCESS);
    }
    return n;
}

static int send_all_waiting(void)
{
    int n = 0;

    for (onic_ring_out_t *out = waiting > 0 ? outs : NULL; out != NULL; out = out->next)
        n += send_waiting(out);
    return n;
}

static bool leaves_work(void)
{
    return waiting > 0;
}

static void close_all(void)
{
    while (outs != NULL) {
        onic_ring_out_t *out = outs;

        outs = out->next;
        onic_outbox_close(&out->box);
        free(out);
    }
    waiting = 0;
}

bool onic_peer_has_queue(const onic_peer_t *peer)
{
    return peer->messages == &onic_row_shm || (peer->messages == NULL && can_open(peer));
}

/* ---- from others --------------------------------------------------------------------------- */

/** Most messages of one ring in one progress, so that others are not held up. */
#define TURN 32

/** A handler has called onic_transport_end_turn_locked. Lock held. */
static bool turn_is_over;

void onic_transport_end_turn_locked(void)
{
    turn_is_over = true;
}

/* Not inline: most looks at the rings find nothing, and are short. */
static int __attribute__((noinline)) take_messages(onic_inbox_queue_t *from)
{
    onic_queue_receiver_t *r = &from->receiver;
    onic_queue_message_t m;
    int n = 0;

    turn_is_over = false;
    while (n < TURN && !turn_is_over && onic_queue_look(r, &m)) {
        onic_row_calls.arrived(m.id, m.header, m.header_len, m.payload, m.len, NULL, &from->sender);
        onic_queue_take(r);
        n++;
    }
    if (atomic_load_explicit(&r->broken, memory_order_relaxed))
        onic_row_calls.broken(from->owner);
    onic_queue_counters.received += (unsigned)n;
    return n;
}

static int poll_rings(void)
{
    const uint32_t n = onic_inbox_look();
    int events = 0;

    for (uint32_t i = 0; i < n; i++)
        if (onic_queue_has_message(&onic_inbox.queue[i].receiver))
            events += take_messages(&onic_inbox.queue[i]);
    return events;
}

static int progress(void)
{
    const int events = poll_rings();

    return events + send_all_waiting();
}

/* ---- the row --------------------------------------------------------------------------------- */

/** A sender that puts a message into a ring after that sees it; messages from before are seen by
 *  the next look. */
static bool arm(unsigned nap)
{
    onic_outbox_park(nap);
    return true;
}

static int start(const onic_transport_config_t *config)
{
    onic_inbox_open(config->queues);
    return OMPI_SUCCESS;
}

static void stop(void)
{
    close_all();
    onic_inbox_close();
}

const onic_row_t onic_row_shm = {
    .start = start,
    .stop = stop,
    .describe = describe,
    .reaches = reaches,
    .connect = connect_ring,
    .free_peer = onic_peer_close_files,
    .message_max = message_max,
    .send_now = send_now,
    .send = send,
    .progress = progress,
    .poll = poll_rings,
    .may_have = onic_inbox_has_messages,
    .leaves_work = leaves_work,
    .arm = arm,
};
