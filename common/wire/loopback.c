/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Active messages from this process to itself. They are queued and handled at the next progress, so
 * that no handler ever runs inside a send.
 */
#include "common/ompi_compat.h"
#include "common/wire/wire_internal.h"

#include <stdlib.h>
#include <string.h>

#include "ompi/constants.h"

void onic_loop_start(void)
{
    onic_wire.loop_head = NULL;
    onic_wire.loop_tail = &onic_wire.loop_head;
}

void onic_loop_stop(void)
{
    while (onic_wire.loop_head != NULL) {
        onic_loop_t *m = onic_wire.loop_head;
        onic_wire.loop_head = m->next;
        free(m);
    }
}

int onic_loop_send(unsigned am_id, const void *header, size_t header_len,
                   const onic_payload_t *payload, unsigned flags, onic_send_cb_t cb, void *arg)
{
    bool rndv = (flags & ONIC_SEND_RNDV) != 0;
    size_t data_at = (header_len + 15) & ~(size_t)15;
    size_t len = payload != NULL ? payload->len : 0;
    onic_loop_t *m = malloc(sizeof(*m) + data_at + (rndv ? 0 : len));
    if (m == NULL) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    *m = (onic_loop_t){.am_id = am_id, .header_len = header_len, .len = len, .cb = cb, .arg = arg};
    m->data = m->bytes + data_at;
    if (header_len > 0) {
        memcpy(m->bytes, header, header_len);
    }
    if (rndv) {
        m->rndv_base = onic_payload_bytes(payload);
    } else if (len > 0) {
        onic_payload_copy(m->data, payload, false);
    }
    *onic_wire.loop_tail = m;
    onic_wire.loop_tail = &m->next;
    return rndv ? 0 : 1;
}

static void call_handler(const onic_loop_t *m, const void *data, onic_rndv_t *rndv)
{
    const onic_am_fn_t fn = onic_wire.am_fn[m->am_id];
    if (onic_am_is_named(m->am_id)) {
        onic_named_deliver(m->am_id, onic_wire.self, m->bytes, m->header_len, data, m->len, rndv);
    } else if (fn != NULL) {
        fn(m->bytes, m->header_len, data, m->len, rndv);
    }
}

static void deliver_loop(const onic_loop_t *m)
{
    if (m->rndv_base == NULL) {
        call_handler(m, m->data, NULL);
        return;
    }
    onic_rndv_t rndv = {.loop = m, .len = m->len};
    call_handler(m, NULL, &rndv);
    if (m->cb != NULL) {
        m->cb(m->arg, OMPI_SUCCESS);
    }
}

int onic_loop_progress(void)
{
    int events = 0;
    onic_loop_t *m = onic_wire.loop_head;
    /* Handlers may send to this process again; that is for the next time. */
    onic_loop_start();
    while (m != NULL) {
        onic_loop_t *next = m->next;
        deliver_loop(m);
        free(m);
        m = next;
        events++;
    }
    return events;
}
