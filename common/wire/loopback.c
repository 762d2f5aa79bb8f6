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

#include "ompi/constants.h"

void onic_loop_start(void)
{
    onic_wire.loop_head = NULL;
    onic_wire.loop_tail = &onic_wire.loop_head;
}

void onic_loop_stop(void)
{
    while (onic_wire.loop_head != NULL) {
        onic_kept_t *m = onic_wire.loop_head;
        onic_wire.loop_head = m->next;
        free(m);
    }
}

int onic_loop_send(unsigned am_id, const void *header, size_t header_len,
                   const onic_payload_t *payload, unsigned flags, onic_send_cb_t cb, void *arg)
{
    const bool rndv = (flags & ONIC_SEND_RNDV) != 0;
    onic_kept_t *m = onic_kept_new(am_id, header, header_len, rndv ? NULL : payload);
    if (m == NULL) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    if (rndv) {
        m->rndv_base = onic_payload_bytes(payload);
        m->len = payload->len;
        m->cb = cb;
        m->arg = arg;
    }
    m->next = NULL;
    *onic_wire.loop_tail = m;
    onic_wire.loop_tail = &m->next;
    return rndv ? 0 : 1;
}

static void call_handler(const onic_kept_t *m, const void *data, onic_rndv_t *rndv)
{
    const onic_am_fn_t fn = onic_wire.am_fn[m->am_id];
    if (onic_am_is_named(m->am_id)) {
        onic_named_deliver(m->am_id, onic_wire.self, m->bytes, m->header_len, data, m->len, rndv);
    } else if (fn != NULL) {
        fn(m->bytes, m->header_len, data, m->len, rndv);
    }
}

static void deliver_loop(const onic_kept_t *m)
{
    if (m->rndv_base == NULL) {
        call_handler(m, m->data, NULL);
        return;
    }
    onic_rndv_t rndv = {.base = m->rndv_base, .len = m->len};
    call_handler(m, NULL, &rndv);
    if (m->cb != NULL) {
        m->cb(m->arg, OMPI_SUCCESS);
    }
}

int onic_loop_progress(void)
{
    int events = 0;
    onic_kept_t *m = onic_wire.loop_head;
    /* Handlers may send to this process again; that is for the next time. */
    onic_loop_start();
    while (m != NULL) {
        onic_kept_t *next = m->next;
        deliver_loop(m);
        free(m);
        m = next;
        events++;
    }
    return events;
}
