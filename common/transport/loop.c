/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/ompi_compat.h"
#include "common/layout/copy.h"
#include "common/transport/loop.h"

#include <stdlib.h>
#include <string.h>

#include "ompi/constants.h"

/** Longer ones are as well sent in pieces. */
#define MESSAGE_MAX 32768

typedef struct loop_message {
    STAILQ_ENTRY(loop_message) next;
    unsigned am_id;
    size_t header_len;
    size_t len;
    onic_request_t *meets; /**< of a rendezvous */
    const void *data;      /**< in bytes[], behind the header; or of the rendezvous */
    _Alignas(16) unsigned char bytes[];
} loop_message_t;

typedef STAILQ_HEAD(loop_messages, loop_message) loop_messages_t;

/** In the order in which they came. */
static loop_messages_t messages = STAILQ_HEAD_INITIALIZER(messages);

static bool reaches(onic_peer_t *peer)
{
    return peer->self;
}

static int connect_self(onic_peer_t *peer)
{
    (void)peer;
    return OMPI_SUCCESS;
}

static size_t message_max(onic_peer_t *peer, size_t wanted)
{
    (void)peer, (void)wanted;
    return MESSAGE_MAX;
}

static onic_sent_t send_now(onic_peer_t *peer, unsigned am_id, const void *header,
                            size_t header_len, const onic_payload_t *payload)
{
    (void)peer, (void)am_id, (void)header, (void)header_len, (void)payload;
    return ONIC_SENT_NOT;
}

static int send(onic_request_t *r, const onic_payload_t *payload, unsigned flags)
{
    const bool meets = (flags & ONIC_SEND_RNDV) != 0;
    const size_t data_at = (r->header_len + 15) & ~(size_t)15;
    loop_message_t *m = malloc(sizeof(*m) + data_at + (meets ? 0 : r->len));
    if (m == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    *m = (loop_message_t){.am_id = r->am_id,
                          .header_len = r->header_len,
                          .len = r->len,
                          .meets = meets ? r : NULL,
                          .data = meets ? onic_payload_bytes(payload) : m->bytes + data_at};
    memcpy(m->bytes, r->header, r->header_len);
    if (!meets && r->len > 0)
        onic_payload_copy(m->bytes + data_at, payload, false);
    if (meets)
        r->starting = false;
    STAILQ_INSERT_TAIL(&messages, m, next);
    return meets ? 0 : 1;
}

static void deliver(loop_message_t *m)
{
    onic_rndv_t rndv = {.row = &onic_row_loop, .desc = m, .len = m->len};
    onic_row_calls.arrived(m->am_id, m->bytes, m->header_len, m->meets != NULL ? NULL : m->data,
                           m->len, m->meets != NULL ? &rndv : NULL);
    if (m->meets != NULL)
        onic_request_end(m->meets, OMPI_SUCCESS);
    free(m);
}

static int receive(onic_request_t *r, const onic_rndv_t *rndv, void *buffer)
{
    (void)r;
    onic_copy_bytes(buffer, ((const loop_message_t *)rndv->desc)->data, rndv->len);
    return 1;
}

static int progress(void)
{
    int events = 0;
    /* Handlers may send to this process again; that is for the next time. */
    loop_messages_t now = STAILQ_HEAD_INITIALIZER(now);
    STAILQ_CONCAT(&now, &messages);
    for (loop_message_t *m; (m = STAILQ_FIRST(&now)) != NULL; events++) {
        STAILQ_REMOVE_HEAD(&now, next);
        deliver(m);
    }
    return events;
}

static bool leaves_work(void)
{
    return !STAILQ_EMPTY(&messages);
}

static int start(const onic_transport_config_t *config)
{
    (void)config;
    return OMPI_SUCCESS;
}

static void stop(void)
{
    for (loop_message_t *m; (m = STAILQ_FIRST(&messages)) != NULL;) {
        STAILQ_REMOVE_HEAD(&messages, next);
        free(m);
    }
}

const onic_row_t onic_row_loop = {
    .name = "self",
    .rendezvous = true,
    .start = start,
    .stop = stop,
    .reaches = reaches,
    .connect = connect_self,
    .message_max = message_max,
    .send_now = send_now,
    .send = send,
    .receive = receive,
    .progress = progress,
    .leaves_work = leaves_work,
};
