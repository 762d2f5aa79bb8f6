/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Sizes of the chunks into which a transfer is cut; sections are those of A. Denis (2011).
 *  What the numbers of a link make of them: common/model/pipeline.h. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes after which what has been packed is shown to the receiver (section 4, sub-blocking).
 *  Shorter transfers have nothing that could overlap. */
#define ONIC_PIPELINE_BLOCK 16384
/** What models take a buffer for. */
#define ONIC_PIPELINE_RX_BUFFER 32768

/** What comes next. Copied to look ahead. */
typedef struct onic_schedule {
    double next;          /**< bytes of the next chunk, before they are rounded */
    double q;             /**< what it is multiplied by after each chunk */
    uint32_t unit;        /**< chunks are multiples of this */
    uint32_t highest;     /**< most bytes of a chunk */
    const uint32_t *size; /**< of the `sizes` chunks behind it; then q counts */
    unsigned sizes;
} onic_schedule_t;

/** Chunks of c0 > 0, c0 * q, c0 * q^2 and so on, each a multiple of `unit` (1 .. buffer) and no
 *  longer than `buffer`. q above 1: they grow until they fill a buffer; 1: all are of one size. */
static inline void onic_schedule_growing(onic_schedule_t *s, double c0, double q, uint32_t unit,
                                         uint32_t buffer)
{
    s->unit = unit;
    s->highest = buffer - buffer % unit;
    s->next = c0 < s->highest ? c0 : s->highest;
    s->q = q;
    s->size = NULL;
    s->sizes = 0;
}

/** Chunks of these sizes, `sizes` >= 1 of them, which stay where they are, each rounded and bounded
 *  as above; all others are as the last. */
static inline void onic_schedule_listed(onic_schedule_t *s, const uint32_t *size, unsigned sizes,
                                        uint32_t unit, uint32_t buffer)
{
    onic_schedule_growing(s, size[0], 1, unit, buffer);
    s->size = size + 1;
    s->sizes = sizes - 1;
}

/** Bytes of the next chunk, but for the last one of a transfer, which is what is left. */
static inline uint32_t onic_schedule_next(onic_schedule_t *s)
{
    uint32_t bytes = (uint32_t)s->next;

    bytes -= bytes % s->unit;
    if (bytes < s->unit)
        bytes = s->unit;
    if (s->sizes > 0) {
        s->next = *s->size++;
        s->sizes--;
    } else {
        s->next *= s->q;
    }
    if (s->next > s->highest)
        s->next = s->highest;
    return bytes;
}

/** True if the next `chunks` hold `bytes`, even where each is cut short by less than `slack`. */
static inline bool onic_schedule_holds(const onic_schedule_t *s, unsigned chunks, uint64_t bytes,
                                       uint32_t slack)
{
    onic_schedule_t ahead = *s;

    for (; chunks > 0 && bytes > 0; chunks--) {
        uint32_t chunk = onic_schedule_next(&ahead);
        uint32_t sure = chunk > slack ? chunk - slack : 0;

        bytes -= sure < bytes ? sure : bytes;
    }
    return bytes == 0;
}
