/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The data of a message where it lies at its sender. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/layout/copy.h"
#include "common/layout/layout.h"
#include "common/layout/pack.h"

/** A payload that is gathered while it is sent: packed bytes [cursor, cursor + len) of a layout. */
typedef struct onic_payload {
    const void *base;     /**< base address of the layout, or of the contiguous bytes */
    onic_cursor_t cursor; /**< where to begin; cursor.layout NULL means contiguous from base */
    size_t len;           /**< bytes to send */
} onic_payload_t;

/** The address of a payload that is contiguous, or NULL where it must be gathered. */
static inline const void *onic_payload_bytes(const onic_payload_t *p)
{
    const onic_layout_t *l = p->cursor.layout;
    if (l == NULL)
        return p->base;
    if (!onic_layout_is_contig(l))
        return NULL;
    return (const char *)p->base + l->offset + p->cursor.pos;
}

/** Copies all of a payload; `streams`: to where another processor is to read it (copy.h). */
static inline void onic_payload_copy(void *dest, const onic_payload_t *p, bool streams)
{
    const void *bytes = onic_payload_bytes(p);
    if (bytes != NULL && !streams) {
        onic_copy_bytes(dest, bytes, p->len);
    } else if (bytes != NULL) {
        onic_copy_streaming(dest, bytes, p->len);
    } else {
        onic_cursor_t cursor = p->cursor;
        (void)(streams ? onic_pack_streaming : onic_pack)(&cursor, p->base, dest, p->len);
    }
}
