/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Payloads that are gathered by their layout while they are sent.
 */
#include "common/wire/wire_internal.h"

#include "common/layout/pack.h"

/** Pieces of this length are packed in memory of ours and copied from there. The place
 *  was read last by another core: a long copy takes its lines over without fetching what they hold,
 *  which the stores of a pack kernel do not. Longer ones are of TCP, whose buffers are private. */
#define STAGE_MIN 2048
#define STAGE_MAX 32768

const void *onic_payload_bytes(const onic_payload_t *p)
{
    const onic_layout_t *l = p->cursor.layout;
    if (l == NULL) {
        return p->base;
    }
    if (!onic_layout_is_contig(l)) {
        return NULL;
    }
    return (const char *)p->base + l->offset + p->cursor.pos;
}

/** Packs the next `n` bytes. */
static size_t pack_next(onic_cursor_t *cursor, const void *base, void *dest, size_t n)
{
    /* One for the process: the lock is held. */
    static _Alignas(64) unsigned char stage[STAGE_MAX];
    if (n < STAGE_MIN || n > STAGE_MAX) {
        return onic_pack(cursor, base, dest, n);
    }
    n = onic_pack(cursor, base, stage, n);
    onic_copy_bytes(dest, stage, n);
    return n;
}

void onic_payload_copy(void *dest, const onic_payload_t *p)
{
    const void *bytes = onic_payload_bytes(p);
    if (bytes != NULL) {
        onic_copy_bytes(dest, bytes, p->len);
    } else {
        onic_cursor_t cursor = p->cursor;
        (void)pack_next(&cursor, p->base, dest, p->len);
    }
}

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
    return pack_next(&s->cursor, s->base, dest, n);
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

const ucp_generic_dt_ops_t onic_gather_ops = {
    .start_pack = gather_start,
    .start_unpack = scatter_start,
    .packed_size = gather_size,
    .pack = gather,
    .unpack = scatter,
    .finish = gather_finish,
};
