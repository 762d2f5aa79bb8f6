/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Records of sends and receives that are not complete: from a pool, since a header must outlive the
 * call that sends it, and what is called back when they are.
 */
#include "common/ompi_compat.h"
#include "common/wire/wire_internal.h"

#include <stdlib.h>
#include <string.h>

#include "ompi/constants.h"

#define POOL_BLOCK 64

struct onic_send_block {
    onic_send_block_t *next;
    onic_send_t send[POOL_BLOCK];
};

static bool grow_pool(void)
{
    onic_send_block_t *block = calloc(1, sizeof(*block));
    if (block == NULL) {
        return false;
    }
    block->next = onic_wire.send_blocks;
    onic_wire.send_blocks = block;
    for (int i = 0; i < POOL_BLOCK; i++) {
        block->send[i].next = onic_wire.send_pool;
        onic_wire.send_pool = &block->send[i];
    }
    return true;
}

onic_send_t *onic_send_get(onic_send_cb_t cb, void *arg)
{
    if (onic_wire.send_pool == NULL && !grow_pool()) {
        return NULL;
    }
    onic_send_t *s = onic_wire.send_pool;
    onic_wire.send_pool = s->next;
    atomic_store_explicit(&onic_wire.sends_out, onic_wire.sends_out + 1, memory_order_relaxed);
    s->cb = cb;
    s->arg = arg;
    s->peer = s->eager = NULL;
    s->out = s->starting = true;
    s->done = s->copied = false;
    return s;
}

void onic_send_put(onic_send_t *s)
{
    s->out = false;
    s->next = onic_wire.send_pool;
    onic_wire.send_pool = s;
    atomic_store_explicit(&onic_wire.sends_out, onic_wire.sends_out - 1, memory_order_relaxed);
}

bool onic_send_reserve_header(onic_send_t *s, size_t len)
{
    s->header = s->header_inline;
    if (len > ONIC_SEND_INLINE_HEADER) {
        if (len > s->header_big_cap) {
            void *big = realloc(s->header_big, len);
            if (big == NULL) {
                return false;
            }
            s->header_big = big;
            s->header_big_cap = len;
        }
        s->header = s->header_big;
    }
    return true;
}

bool onic_send_keep_header(onic_send_t *s, const void *header, size_t len)
{
    const bool room = onic_send_reserve_header(s, len);
    if (room && len > 0) {
        memcpy(s->header, header, len);
    }
    return room;
}

static void free_pool(void)
{
    onic_send_block_t *block = onic_wire.send_blocks;
    while (block != NULL) {
        onic_send_block_t *next = block->next;
        for (int i = 0; i < POOL_BLOCK; i++) {
            free(block->send[i].header_big);
        }
        free(block);
        block = next;
    }
    onic_wire.send_blocks = NULL;
    onic_wire.send_pool = NULL;
    atomic_store(&onic_wire.sends_out, 0);
}

/** A send or a receive is complete. The callback comes after UCX's progress and not within, since
 *  it may send: where UCX has just sent what was pending, its UD loses count of what a callback
 *  adds, and asserts (1.13; seen when packets are lost). */
void onic_send_finish(onic_send_t *s, ucs_status_t status)
{
    s->status = onic_ucs_error(status);
    s->done = true;
    if (!s->starting) {
        s->next = NULL;
        *onic_wire.done_tail = s;
        onic_wire.done_tail = &s->next;
    }
}

void onic_send_end(onic_send_t *s, int rc)
{
    const onic_send_cb_t cb = s->cb;
    void *arg = s->arg;
    if (rc != OMPI_SUCCESS && s->eager != NULL) {
        onic_peer_give_up(s->eager);
    }
    onic_send_put(s);
    if (cb != NULL && !onic_wire.closing) {
        cb(arg, rc);
    }
}

int onic_send_started(onic_send_t *s, ucs_status_ptr_t answer)
{
    if (UCS_PTR_IS_PTR(answer) && !s->done) {
        s->starting = false;
        onic_server_look_after();
        return 0;
    }
    int rc = UCS_PTR_IS_PTR(answer) ? s->status : onic_ucs_error(UCS_PTR_STATUS(answer));
    return rc == OMPI_SUCCESS ? 1 : rc;
}

int onic_send_put_if_over(onic_send_t *s, int rc)
{
    if (rc != 0) {
        onic_send_put(s);
    }
    return rc;
}

/** Tells the caller of a send that it has failed, and nothing any more. */
static void abandon(onic_send_t *s)
{
    const onic_send_cb_t cb = s->cb;
    s->cb = NULL;
    if (cb != NULL && !onic_wire.closing) {
        cb(s->arg, OMPI_ERR_UNREACH);
    }
}

/* UCX, which need not know of a death, keeps what a full queue does not take. Without its detection
 * of errors it also keeps each rendezvous that has begun, of senders and receivers, though it knows
 * that the connection is lost. It will not touch their memory any more: no process makes room in
 * that queue, or sends what a rendezvous goes on with. */
void onic_sends_abandon(void)
{
    for (onic_send_block_t *block = onic_wire.send_blocks; block != NULL; block = block->next) {
        for (int i = 0; i < POOL_BLOCK; i++) {
            onic_send_t *s = &block->send[i];
            if (s->out && s->peer != NULL && s->peer->gone && !s->starting && !s->done) {
                abandon(s);
            }
        }
    }
}

bool onic_sends_name(const onic_peer_t *peer)
{
    for (onic_send_block_t *block = onic_wire.send_blocks; block != NULL; block = block->next) {
        for (int i = 0; i < POOL_BLOCK; i++) {
            const onic_send_t *s = &block->send[i];
            if (s->out && (s->peer == peer || s->eager == peer)) {
                return true;
            }
        }
    }
    return false;
}

unsigned onic_wire_outstanding(void)
{
    return onic_wire.sends_out;
}

/* ---- how UCX packs a payload with a layout: its buffer is the record of the send --------------
 */

static void *gather_start(void *context, const void *buffer, size_t count)
{
    (void)context;
    (void)count;
    return (void *)(uintptr_t)buffer;
}

static void *scatter_start(void *context, void *buffer, size_t count)
{
    (void)context;
    (void)count;
    return buffer;
}

static size_t gather_size(void *state)
{
    const onic_send_t *s = state;
    return s->len;
}

/** UCX may ask for the same bytes again after it found no room for them. */
static size_t gather(void *state, size_t offset, void *dest, size_t max)
{
    onic_send_t *s = state;
    const size_t n = max < s->len - offset ? max : s->len - offset;
    if (s->cursor.pos != s->start + offset) {
        onic_cursor_init(&s->cursor, s->cursor.layout, s->start + offset);
    }
    return onic_pack(&s->cursor, s->base, dest, n);
}

static ucs_status_t scatter(void *state, size_t offset, const void *src, size_t len)
{
    (void)state;
    (void)offset;
    (void)src;
    (void)len;
    return UCS_ERR_UNSUPPORTED;
}

static void gather_finish(void *state)
{
    (void)state;
}

static const ucp_generic_dt_ops_t gather_ops = {
    .start_pack = gather_start,
    .start_unpack = scatter_start,
    .packed_size = gather_size,
    .pack = gather,
    .unpack = scatter,
    .finish = gather_finish,
};

/* ---- start and stop ------------------------------------------------------------------------- */

static void empty_lists(void)
{
    onic_wire.done_head = NULL;
    onic_wire.done_tail = &onic_wire.done_head;
}

int onic_sends_start(void)
{
    empty_lists();
    onic_wire.drain = (onic_drain_t){0};
    return onic_ucs_error(ucp_dt_create_generic(&gather_ops, NULL, &onic_wire.gather_dt));
}

void onic_sends_stop(void)
{
    ucp_dt_destroy(onic_wire.gather_dt);
    empty_lists();
    free_pool();
}
