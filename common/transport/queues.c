/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Messages between processes of this job and node, through queues in shared memory
 *  (common/transport/shm): all but rendezvous. Where a queue cannot be had messages go by UCX from
 * the first one on, so that they stay in order. */
#include "common/ompi_compat.h"
#include "common/support/help.h"
#include "common/transport/internal.h"

#include <stdlib.h>

#include "ompi/constants.h"

/* ---- to others ------------------------------------------------------------------------------- */

static onic_queue_out_t *outs;
/** Messages that wait for room. */
static unsigned waiting;

bool onic_queue_can_open(const onic_peer_t *to)
{
    return !to->self && onic_outbox_can_open(&to->queues) && to->name >> 32 == onic_transport.job &&
           onic_same_place(&to->cma_id, &onic_transport.cma_id);
}

void onic_queue_open(onic_peer_t *to)
{
    onic_queue_out_t *out;

    to->queue_tried = true;
    if (!onic_queue_can_open(to) || !onic_peer_has_pipe(to) ||
        (out = calloc(1, sizeof(*out))) == NULL)
        return;
    if (!onic_outbox_open(&out->box, &to->queues, onic_transport_me(), to->presence,
                          &to->cma_id.wake)) {
        free(out);
        return;
    }
    out->to = to;
    out->box.far = onic_distance(to->name) == ONIC_FAR;
    STAILQ_INIT(&out->waiting);
    out->next = outs;
    outs = out;
    /* This process's address must fit into its first message. */
    to->queue =
        onic_outbox_most(&out->box, onic_address_record_size()) >= onic_address_record_size()
            ? out
            : NULL;
}

void onic_queue_wait(onic_queue_out_t *out, onic_send_t *s)
{
    onic_queue_counters.waited++;
    waiting++;
    s->starting = false;
    STAILQ_INSERT_TAIL(&out->waiting, s, next);
    /* Whether the thread serves one-sided operations is for their users to say. */
    if (s->am_id != ONIC_AM_OSC)
        onic_transport_need_help();
    onic_server_look_after();
}

/** Sends what has waited for room, or ends it where the receiver makes none any more. */
static int send_waiting(onic_queue_out_t *out)
{
    int n = 0;

    for (onic_send_t *s; (s = STAILQ_FIRST(&out->waiting)) != NULL; n++) {
        const onic_payload_t payload = {.base = s->base, .cursor = s->cursor, .len = s->len};
        const bool lost = out->to->failed != UCS_OK;

        if (!lost && !onic_outbox_put(&out->box, (uint8_t)s->am_id, s->header, s->header_len,
                                      &payload, s->am_id == ONIC_AM_OSC))
            break;
        STAILQ_REMOVE_HEAD(&out->waiting, next);
        waiting--;
        onic_send_end(s, lost ? OMPI_ERR_UNREACH : OMPI_SUCCESS);
    }
    return n;
}

int onic_queues_send(void)
{
    int n = 0;

    for (onic_queue_out_t *out = outs; out != NULL; out = out->next)
        n += send_waiting(out);
    return n;
}

bool onic_queues_have_waiting(void)
{
    return waiting > 0;
}

void onic_queues_out_stop(void)
{
    while (outs != NULL) {
        onic_queue_out_t *out = outs;

        outs = out->next;
        onic_outbox_close(&out->box);
        free(out);
    }
    waiting = 0;
}

/* ---- from others --------------------------------------------------------------------------- */

/** Messages of one queue in one progress, so that others have their turn. */
#define TURN 32

/** A handler has said so. Lock held. */
static bool turn_is_over;

void onic_transport_end_turn_locked(void)
{
    turn_is_over = true;
}

/** Nothing is taken from such a process any more, and what waits for it ends. */
static void give_up_owner(uint64_t owner)
{
    onic_peer_t *peer = onic_peer_named(owner);

    onic_say(
        "ompi-nic: the message queue of a process of this node is corrupt; nothing more is read "
        "from it");
    if (peer != NULL)
        onic_peer_give_up(peer);
}

static int take_messages(uint32_t i)
{
    onic_queue_receiver_t *r = &onic_inbox.receiver[i];
    onic_queue_message_t m;
    int n = 0;

    turn_is_over = false;
    while (n < TURN && !turn_is_over && onic_queue_look(r, &m)) {
        onic_am_arrived(m.id, m.header, m.header_len, m.payload, m.len, NULL);
        onic_queue_take(r);
        n++;
    }
    if (atomic_load_explicit(&r->broken, memory_order_relaxed))
        give_up_owner(onic_inbox.owner[i]);
    onic_queue_counters.received += (unsigned)n;
    return n;
}

int onic_queues_receive(void)
{
    const uint32_t n = onic_inbox_look();
    int events = 0;

    for (uint32_t i = 0; i < n; i++)
        if (onic_queue_has_message(&onic_inbox.receiver[i]))
            events += take_messages(i);
    return events;
}
