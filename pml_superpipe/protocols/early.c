/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The receiver of bytes that come before they were asked for: behind the announcement of their
 * message, in order, and paid for by credit. So the first chunk of a long message is under way with
 * the handshake (A. Denis 2011, section 4).
 */
#include "pml_superpipe/protocols/process.h"

#include <stdlib.h>
#include <string.h>

bool superpipe_early_begin_locked(superpipe_peer_t *from, uint64_t handle, uint64_t total,
                                  superpipe_request_t *r, superpipe_unexpected_t *m)
{
    superpipe_early_t *e = calloc(1, sizeof(*e));
    superpipe_early_t **at = &from->early;

    if (e == NULL)
        return false;
    while (*at != NULL)
        at = &(*at)->next;
    *at = e;
    e->handle = handle;
    e->total = total;
    e->receive = r;
    e->message = m;
    if (r != NULL)
        r->early = e;
    if (m != NULL)
        m->early = e;
    return true;
}

/** Nobody gets it any more. */
static void detach(superpipe_early_t *e)
{
    if (e->receive != NULL)
        e->receive->early = NULL;
    if (e->message != NULL)
        e->message->early = NULL;
}

/** A receive gets some of its first bytes. */
static void take(superpipe_request_t *r, uint64_t at, const void *data, uint64_t bytes)
{
    const uint64_t taken = superpipe_transfer_takes_early(&r->state, at, bytes);

    superpipe_place(r, at, data, taken);
    superpipe_transfer_took(&r->state, taken);
}

void superpipe_on_early_locked(superpipe_peer_t *p, const superpipe_incoming_t *in)
{
    superpipe_early_t **at = &p->early;
    superpipe_early_t *e;

    while (*at != NULL && (*at)->handle != in->handle)
        at = &(*at)->next;
    e = *at;
    if (e == NULL || in->value != e->came || in->bytes > e->total - e->came ||
        !superpipe_pool_arrived(&p->sender, in->bytes)) {
        superpipe_break_locked(p, "a process has sent data that it did not announce");
        return;
    }
    superpipe_request_t *r = e->receive;
    superpipe_unexpected_t *m = e->message;
    e->came += in->bytes;
    if (e->came == e->total) {
        *at = e->next;
        detach(e);
        free(e);
    }
    if (m != NULL) {
        superpipe_hold_locked(m, in->value, in->data, in->bytes);
        return;
    }
    if (r != NULL) {
        take(r, in->value, in->data, in->bytes);
        superpipe_settle_locked(r);
    }
    superpipe_freed_locked(p, in->bytes);
}

void superpipe_early_deliver_locked(superpipe_request_t *r, superpipe_unexpected_t *m)
{
    take(r, 0, m->data, m->held);
    r->early = m->early;
    m->early = NULL;
    if (r->early != NULL) {
        r->early->receive = r;
        r->early->message = NULL;
    }
}

void superpipe_early_drop_locked(superpipe_peer_t *p)
{
    for (superpipe_early_t *e = p->early, *next; e != NULL; e = next) {
        next = e->next;
        detach(e);
        free(e);
    }
    p->early = NULL;
}
