/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Short messages that wait for others; see outbox.h. */
#include "osc_nicstride/outbox.h"

#include <stdlib.h>

#include "osc_nicstride/batch.h"
#include "osc_nicstride/component.h"
#include "osc_nicstride/module.h"
#include "osc_nicstride/stream.h"

enum { MARK_BYTES = 1 };

/** A batch on its way to the wire, which may keep it until the send is complete. */
typedef struct nicstride_parcel {
    struct nicstride_parcel *next;
    nicstride_peer_t *peer; /**< while the wire has it */
    nicstride_batch_t batch;
} parcel_t;

/* Parcels that are not in use. */
static parcel_t *spare;
static unsigned spares;
#define SPARES_MAX 64

/* Peers for whom something waits. */
static nicstride_peer_t *waiting;

bool nicstride_outboxes_collect;

static parcel_t *take(void)
{
    parcel_t *parcel = spare;

    if (parcel == NULL) {
        parcel = malloc(sizeof(*parcel));
    } else {
        spare = parcel->next;
        spares--;
    }
    if (parcel != NULL)
        parcel->batch.len = parcel->batch.messages = 0;
    return parcel;
}

static void give(parcel_t *parcel)
{
    if (spares == SPARES_MAX) {
        free(parcel);
        return;
    }
    parcel->next = spare;
    spare = parcel;
    spares++;
}

static void sent_cb(void *arg, int status)
{
    parcel_t *parcel = arg;

    (void)status; /* whoever waits for what was in it is told by the wire */
    parcel->peer->posting--;
    give(parcel);
}

static void enlist(nicstride_peer_t *p)
{
    p->outbox.next = waiting;
    p->outbox.link = &waiting;
    if (waiting != NULL)
        waiting->outbox.link = &p->outbox.next;
    waiting = p;
    onic_wire_defer(ONIC_AM_OSC);
}

/** Takes the parcel out of the outbox. */
static parcel_t *withdraw(nicstride_peer_t *p)
{
    parcel_t *parcel = p->outbox.parcel;

    *p->outbox.link = p->outbox.next;
    if (p->outbox.next != NULL)
        p->outbox.next->outbox.link = p->outbox.link;
    __atomic_store_n(&p->outbox.parcel, NULL, __ATOMIC_RELAXED);
    return parcel;
}

static void sent_alone_cb(void *arg, int status)
{
    nicstride_peer_t *p = arg;

    (void)status;
    p->posting--;
}

static void send_alone(nicstride_peer_t *p, const void *message, size_t len)
{
    const int rc = onic_peer_send(p->wire, ONIC_AM_OSC, message, len, NULL, 0, sent_alone_cb, p);

    if (rc == 0)
        p->posting++;
    else if (rc < 0)
        __atomic_store_n(&p->failed, true, __ATOMIC_RELAXED);
}

static void send_parcel(nicstride_peer_t *p, parcel_t *parcel)
{
    static const unsigned char mark[MARK_BYTES] = {NICSTRIDE_BATCH_MARK};
    const onic_payload_t payload = {.base = parcel->batch.bytes, .len = parcel->batch.len};

    nicstride_add(&nicstride_counters.batches, 1);
    parcel->peer = p;
    const int rc =
        onic_peer_send(p->wire, ONIC_AM_OSC, mark, sizeof(mark), &payload, 0, sent_cb, parcel);
    if (rc == 0)
        p->posting++;
    if (rc < 0)
        __atomic_store_n(&p->failed, true, __ATOMIC_RELAXED);
    if (rc != 0)
        give(parcel);
}

void nicstride_outbox_send_locked(nicstride_peer_t *p)
{
    size_t at = 0, len;
    const void *message;

    if (p->outbox.parcel == NULL)
        return;
    parcel_t *parcel = withdraw(p);
    const nicstride_batch_t *b = &parcel->batch;

    if (b->messages == 1 && nicstride_batch_next(b->bytes, b->len, &at, &message, &len)) {
        send_alone(p, message, len);
        give(parcel);
        return;
    }
    send_parcel(p, parcel);
}

int nicstride_outboxes_send_locked(void)
{
    int n = 0;

    for (; waiting != NULL; n++)
        nicstride_outbox_send_locked(waiting);
    return n;
}

static size_t batch_max(nicstride_peer_t *p)
{
    const size_t frag = nicstride_frag_max_locked(p) - MARK_BYTES;

    return frag < NICSTRIDE_BATCH_MAX ? frag : NICSTRIDE_BATCH_MAX;
}

/** False where memory is exhausted or the message is too long; nothing waits then. */
static bool add(nicstride_peer_t *p, const void *message, size_t len)
{
    const size_t max = batch_max(p);

    if (p->outbox.parcel != NULL &&
        !nicstride_batch_is_full(&p->outbox.parcel->batch, p->tx.window) &&
        nicstride_batch_add(&p->outbox.parcel->batch, max, message, len))
        return true;
    nicstride_outbox_send_locked(p);
    parcel_t *parcel = take();
    if (parcel == NULL)
        return false;
    if (!nicstride_batch_add(&parcel->batch, max, message, len)) {
        give(parcel);
        return false;
    }
    __atomic_store_n(&p->outbox.parcel, parcel, __ATOMIC_RELAXED);
    enlist(p);
    return true;
}

void nicstride_outbox_post_locked(nicstride_peer_t *p, const void *message, size_t len,
                                  bool may_wait)
{
    /* Not past what waits already. */
    if ((may_wait || p->outbox.parcel != NULL) && add(p, message, len)) {
        if (!may_wait)
            nicstride_outbox_send_locked(p);
        return;
    }
    send_alone(p, message, len);
}

bool nicstride_outbox_bundle_locked(nicstride_peer_t *p, const nicstride_piece_t *pieces,
                                    unsigned n)
{
    const size_t max = batch_max(p);
    parcel_t *parcel = take();
    bool fits = parcel != NULL;

    for (unsigned i = 0; i < n && fits; i++)
        fits = nicstride_batch_add(&parcel->batch, max, pieces[i].bytes, pieces[i].len);
    if (!fits) {
        if (parcel != NULL)
            give(parcel);
        return false;
    }
    nicstride_outbox_send_locked(p);
    send_parcel(p, parcel);
    return true;
}

void nicstride_outbox_drop_locked(nicstride_peer_t *p)
{
    if (p->outbox.parcel != NULL)
        give(withdraw(p));
}

void nicstride_outboxes_fini(void)
{
    while (spare != NULL) {
        parcel_t *parcel = spare;

        spare = parcel->next;
        free(parcel);
    }
    spares = 0;
}
