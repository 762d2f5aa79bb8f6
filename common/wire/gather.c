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

const ucp_generic_dt_ops_t onic_gather_ops = {
    .start_pack = gather_start,
    .start_unpack = scatter_start,
    .packed_size = gather_size,
    .pack = gather,
    .unpack = scatter,
    .finish = gather_finish,
};
