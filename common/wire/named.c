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

/** A message that waits for its sender's address. */
struct onic_early {
    onic_early_t *next;
    uint64_t name;
    unsigned am_id;
    size_t header_len;
    size_t len;
    void *desc;          /**< UCX's, of a rendezvous; else NULL */
    unsigned char *data; /**< in bytes[], behind the header */
    _Alignas(16) unsigned char bytes[];
};

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

static onic_early_t *new_early(const void *header, size_t header_len, const void *data, size_t len)
{
    const size_t data_at = (header_len + 15) & ~(size_t)15;
    onic_early_t *m = malloc(sizeof(*m) + data_at + len);
    if (m != NULL) {
        m->next = NULL;
        m->header_len = header_len;
        m->len = len;
        m->desc = NULL;
        m->data = m->bytes + data_at;
        memcpy(m->bytes, header, header_len);
        if (len > 0) {
            onic_copy_bytes(m->data, data, len);
        }
    }
    return m;
}

static void append(onic_early_t *m)
{
    onic_early_t **at = &onic_wire.early;
    while (*at != NULL) {
        at = &(*at)->next;
    }
    *at = m;
}

static void deliver_early(const onic_early_t *m, onic_peer_t *from)
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
    for (onic_early_t **at = &onic_wire.early; *at != NULL;) {
        onic_early_t *m = *at;
        if (m->name == from->name) {
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
        onic_wire.handles = true;
        onic_named_deliver(am_id, from, header, header_len, meets || len == 0 ? NULL : data, len,
                           meets ? &rndv : NULL);
        onic_wire.handles = false;
        return false;
    }
    onic_early_t *m = new_early(header, header_len, data, meets ? 0 : len);
    if (m == NULL) {
        onic_say("ompi-nic: memory is exhausted: a message is lost");
        return false;
    }
    m->name = name;
    m->am_id = am_id;
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
    onic_wire.handles = true;
    deliver_all_early(from);
    onic_wire.handles = false;
}

void onic_named_stop(void)
{
    while (onic_wire.early != NULL) {
        onic_early_t *m = onic_wire.early;
        onic_wire.early = m->next;
        if (m->desc != NULL) {
            ucp_am_data_release(onic_wire.worker, m->desc);
        }
        free(m);
    }
}
