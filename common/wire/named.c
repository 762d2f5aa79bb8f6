/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Messages that name their sender.
 *
 * They begin with its name, by which the receiver finds its record. A process that sends to one
 * that may not know it first sends its address: so it can be answered by a handler, which cannot
 * look up anything. A process that has sent such a message knows the receiver, and gets no address
 * of it.
 *
 * UCX keeps the order of messages of one fragment. An address that takes more than one may be
 * overtaken: what comes from a process that is not known yet waits for its address.
 */
#include "common/ompi_compat.h"
#include "common/layout/copy.h"
#include "common/support/say.h"
#include "common/wire/wire_internal.h"

#include <stdlib.h>
#include <string.h>

#include "ompi/constants.h"

int onic_wire_set_named_fn(unsigned am_id, onic_named_fn_t fn)
{
    if (!onic_am_is_named(am_id)) {
        return OMPI_ERR_BAD_PARAM;
    }
    onic_wire_lock();
    onic_wire.named_fn[am_id] = fn;
    onic_wire_unlock();
    return OMPI_SUCCESS;
}

bool onic_names_me(const void *header, size_t header_len)
{
    return header_len >= sizeof(onic_wire.self->name) &&
           memcmp(header, &onic_wire.self->name, sizeof(onic_wire.self->name)) == 0;
}

void onic_named_deliver(unsigned am_id, onic_peer_t *from, const void *header, size_t header_len,
                        const void *data, size_t len, onic_rndv_t *rndv)
{
    const onic_named_fn_t fn = onic_wire.named_fn[am_id];
    if (rndv != NULL) {
        rndv->from = from;
    }
    if (fn != NULL) {
        fn(from, header, header_len, data, len, rndv);
    }
}

/* ---- before the sender is known ------------------------------------------------------------- */

onic_kept_t *onic_kept_new(unsigned am_id, const void *header, size_t header_len,
                           const onic_payload_t *payload)
{
    const size_t data_at = (header_len + 15) & ~(size_t)15;
    onic_kept_t *m = malloc(sizeof(*m) + data_at + (payload != NULL ? payload->len : 0));
    if (m != NULL) {
        *m = (onic_kept_t){.am_id = am_id, .header_len = header_len, .data = m->bytes + data_at};
        memcpy(m->bytes, header, header_len);
        if (payload != NULL && payload->len > 0) {
            m->len = payload->len;
            onic_payload_copy(m->data, payload, false);
        }
    }
    return m;
}

static void append(onic_kept_t *m)
{
    onic_kept_t **at = &onic_wire.early;
    while (*at != NULL) {
        at = &(*at)->next;
    }
    *at = m;
}

static void deliver_early(const onic_kept_t *m, onic_peer_t *from)
{
    onic_rndv_t rndv = {.desc = m->desc, .len = m->len};
    const bool meets = m->desc != NULL;
    onic_named_deliver(m->am_id, from, m->bytes, m->header_len, meets ? NULL : m->data, m->len,
                       meets ? &rndv : NULL);
    if (meets && !rndv.taken) {
        ucp_am_data_release(onic_wire.worker, m->desc);
    }
}

static void deliver_all_early(onic_peer_t *from)
{
    for (onic_kept_t **at = &onic_wire.early; *at != NULL;) {
        onic_kept_t *m = *at;
        if (memcmp(m->bytes, &from->name, sizeof(from->name)) == 0) {
            *at = m->next;
            deliver_early(m, from);
            free(m);
        } else {
            at = &m->next;
        }
    }
}

/* ---- arrival --------------------------------------------------------------------------------- */

bool onic_named_arrived(unsigned am_id, const void *header, size_t header_len, const void *data,
                        size_t len, void *desc)
{
    const bool meets = desc != NULL;
    onic_rndv_t rndv = {.desc = desc, .len = len};
    uint64_t name;
    if (onic_wire.closing || onic_wire.named_fn[am_id] == NULL || header_len < sizeof(name)) {
        return false;
    }
    memcpy(&name, header, sizeof(name));
    onic_peer_t *from = onic_peer_named(name);
    if (from != NULL) {
        from->introduced = true;
        onic_named_deliver(am_id, from, header, header_len, meets || len == 0 ? NULL : data, len,
                           meets ? &rndv : NULL);
        return false;
    }
    const onic_payload_t payload = {.base = data, .len = len};
    onic_kept_t *m = onic_kept_new(am_id, header, header_len, meets ? NULL : &payload);
    if (m == NULL) {
        onic_say("ompi-nic: memory is exhausted: a message is lost");
        return false;
    }
    m->len = len;
    m->desc = desc;
    append(m);
    return meets;
}

void onic_address_arrived(const void *record, size_t len)
{
    onic_peer_t *from = onic_wire.closing ? NULL : onic_learn_peer(record, len);
    if (from == NULL) {
        if (!onic_wire.closing) {
            onic_say("ompi-nic: messages of a process with another version are dropped");
        }
        return;
    }
    from->introduced = true;
    deliver_all_early(from);
}

void onic_named_stop(void)
{
    while (onic_wire.early != NULL) {
        onic_kept_t *m = onic_wire.early;
        onic_wire.early = m->next;
        if (m->desc != NULL) {
            ucp_am_data_release(onic_wire.worker, m->desc);
        }
        free(m);
    }
}
