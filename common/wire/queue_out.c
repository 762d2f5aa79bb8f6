/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Messages to processes of this job and node, through queues in shared memory
 * (common/node/outbox.h): those of one-sided operations and of the point-to-point layer, all but
 * rendezvous. What cannot be had, because /dev/shm is full or the processes must not open each
 * other's files, goes by UCX from the first message on: so the messages from one process to another
 * stay in order.
 */
#include "common/ompi_compat.h"
#include "common/wire/wire_internal.h"

#include <stdlib.h>

#include "common/node/inbox.h"
#include "ompi/constants.h"

static onic_queue_out_t *outs, *waiting;

bool onic_queue_can_open(const onic_peer_t *to)
{
    return !to->self && onic_outbox_can_open(&to->queues) && to->name >> 32 == onic_wire.job &&
           onic_same_place(&to->cma_id, &onic_wire.cma_id);
}

void onic_queue_open(onic_peer_t *to)
{
    onic_queue_out_t *out;

    to->queue_tried = true;
    if (!onic_queue_can_open(to) || !onic_peer_has_pipe(to) ||
        (out = calloc(1, sizeof(*out))) == NULL) {
        return;
    }
    if (!onic_outbox_open(&out->box, &to->queues, onic_wire_me(), to->presence, to->pipe)) {
        free(out);
        return;
    }
    out->to = to;
    out->wait_tail = &out->wait_head;
    out->next = outs;
    outs = out;
    /* This process's address must fit into its first message. */
    to->queue = onic_address_record_size() <= out->box.message_max ? out : NULL;
}

void onic_queue_wait(onic_queue_out_t *out, onic_send_t *s)
{
    onic_queue_counters.waited++;
    s->starting = false;
    s->next = NULL;
    *out->wait_tail = s;
    out->wait_tail = &s->next;
    if (!out->waits) {
        out->waits = true;
        out->next_waiting = waiting;
        waiting = out;
    }
    onic_server_look_after();
}

/** Sends what has waited for room, or ends it where the receiver makes none any more. */
static int send_waiting(onic_queue_out_t *out)
{
    int n = 0;

    while (out->wait_head != NULL) {
        onic_send_t *s = out->wait_head;
        const onic_payload_t payload = {.base = s->base, .cursor = s->cursor, .len = s->len};
        const bool lost = out->to->failed != UCS_OK;

        if (!lost && !onic_outbox_put(&out->box, (uint8_t)s->am_id, s->header, s->header_len,
                                      &payload, s->am_id == ONIC_AM_OSC)) {
            break;
        }
        out->wait_head = s->next;
        if (out->wait_head == NULL) {
            out->wait_tail = &out->wait_head;
        }
        onic_send_end(s, lost ? OMPI_ERR_UNREACH : OMPI_SUCCESS);
        n++;
    }
    return n;
}

int onic_queues_send(void)
{
    onic_queue_out_t *out = waiting;
    int n = 0;

    waiting = NULL;
    for (onic_queue_out_t *next; out != NULL; out = next) {
        next = out->next_waiting;
        out->waits = false;
        n += send_waiting(out);
        if (out->wait_head != NULL && !out->waits) {
            out->waits = true;
            out->next_waiting = waiting;
            waiting = out;
        }
    }
    return n;
}

bool onic_queues_have_waiting(void)
{
    return waiting != NULL;
}

void onic_queues_out_stop(void)
{
    while (outs != NULL) {
        onic_queue_out_t *out = outs;

        outs = out->next;
        onic_outbox_close(&out->box);
        free(out);
    }
    waiting = NULL;
}
