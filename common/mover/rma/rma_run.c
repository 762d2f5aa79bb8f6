/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The carrier between hosts: doing what was posted. The wire lock is held. */
#include "common/mover/rma/carrier_rma.h"

#include <stdlib.h>

static void forget(onic_rma_work_t *e)
{
    onic_rma_t *r = e->r;
    if (e != &r->close)
        free(e);
    atomic_fetch_sub(&r->refs, 1);
    onic_rma_drop(r);
}

/** Can nothing be sent to its peer any more? */
static bool is_off(const onic_rma_t *r)
{
    return r->peer->lost || atomic_load(&r->peer->failed);
}

static void send_message(onic_rma_t *r, const onic_rma_message_t *message)
{
    onic_rma_message_t m = *message;
    m.to = r->other;
    m.from = r->name;
    if (!is_off(r) &&
        onic_peer_send(r->peer->peer, ONIC_AM_MOVER, &m, sizeof(m), NULL, 0, NULL, NULL) < 0)
        onic_rma_fail(r->peer);
}

/** UCX is done with a put, or with what a message waits for. */
static void completed(void *arg, int status)
{
    onic_rma_work_t *e = arg;
    if (status < 0)
        onic_rma_fail(e->r->peer);
    if (e->what == ONIC_RMA_SEND)
        send_message(e->r, &e->message);
    forget(e);
}

/** The work is UCX's now, unless that is done with it. */
static void started(onic_rma_work_t *e, int rc)
{
    if (rc != 0) {
        completed(e, rc);
    } /* else it is called when UCX is done */
}

/** One put for a chunk, with its words where the receiver looks at them. Takes the work over. */
static void write_chunk(onic_rma_work_t *e)
{
    const onic_rma_t *r = e->r;
    const uint32_t bytes = onic_word_bytes(e->word);
    const size_t len =
        r->ordered ? (size_t)onic_blocks_of(&r->blocks, bytes) * r->blocks.bytes : bytes;
    started(e, onic_remote_put(r->peer->remote, (size_t)e->slot * r->peer->slot_bytes,
                               onic_rma_bounce(r, e->slot), len, onic_rma_state.bounce_region,
                               completed, e));
}

/** A message that follows when all puts so far can be seen. */
static void announce(onic_rma_t *r, const onic_rma_message_t *m)
{
    onic_rma_work_t *e = malloc(sizeof(*e));
    if (e == NULL) {
        onic_rma_fail(r->peer);
        return;
    }
    *e = (onic_rma_work_t){.what = ONIC_RMA_SEND, .r = r, .message = *m};
    atomic_fetch_add(&r->refs, 1);
    started(e, onic_peer_settle(r->peer->peer, completed, e));
}

/** Is this the last chunk before the sender waits, or ends? */
static bool is_last(const onic_rma_t *r, unsigned slot)
{
    return r->put == r->len || (slot < 63 ? r->terms.lease >> (slot + 1) : 0) == 0;
}

static void put(onic_rma_work_t *e)
{
    onic_rma_t *r = e->r;
    const unsigned slot = e->slot;
    const bool fails = onic_word_fails(e->word), ordered = r->ordered && !fails;
    const onic_rma_message_t word = {
        .type = ONIC_RMA_WORD, .slot = (uint16_t)slot, .value = e->word};
    const onic_rma_message_t wake = {.type = ONIC_RMA_WAKE};
    if (is_off(r)) {
        forget(e);
        return;
    }
    atomic_fetch_add(&r->refs, 1);
    if (fails) {
        forget(e);
    } else {
        r->put += onic_word_bytes(e->word);
        write_chunk(e);
    }
    if (!ordered)
        announce(r, &word);
    else if (is_last(r, slot))
        send_message(r, &wake);
    atomic_fetch_sub(&r->refs, 1);
    onic_rma_drop(r);
}

static void close_record(onic_rma_work_t *e)
{
    onic_rma_t *r = e->r;
    const bool waited = r->terms.waits;
    const onic_closing_t closing = onic_terms_close(&r->terms, e->word != 0);
    if (r->terms.sends)
        r->peer->requests -= waited && !r->terms.waits;
    if (closing.commit)
        onic_rma_commit(r, &r->sender);
    if (closing.release != 0)
        onic_rma_released(r->peer, closing.release);
    forget(e);
}

int onic_rma_run(void)
{
    int done = 0;
    for (onic_rma_work_t *e; (e = onic_rma_next_work()) != NULL; done++) {
        switch (e->what) {
        case ONIC_RMA_PUT:
            put(e);
            break;
        case ONIC_RMA_SEND:
            send_message(e->r, &e->message);
            forget(e);
            break;
        case ONIC_RMA_RELEASE:
            e->r->terms.lease &= ~e->word;
            onic_rma_released(e->r->peer, e->word);
            forget(e);
            break;
        default:
            close_record(e);
        }
    }
    return done;
}

void onic_rma_run_soon(void)
{
    if (onic_wire_trylock()) {
        (void)onic_rma_run();
        onic_wire_unlock();
    }
}
