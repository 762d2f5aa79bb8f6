/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Sizes of the chunks into which a transfer is cut; sections are those of A. Denis (2011).
 *  common/model/pipeline.h derives them from the numbers of a link. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Packed bytes after which the receiver is notified (section 4, sub-blocking). Shorter transfers
 *  have nothing to overlap. */
#define ONIC_PIPELINE_BLOCK 16384
/** The size of a buffer in the models. */
#define ONIC_PIPELINE_RX_BUFFER 32768

/** The state of a schedule. It can be copied to look ahead. */
typedef struct onic_schedule {
    double next;          /**< bytes of the next chunk, before rounding */
    double q;             /**< factor from each chunk to the next */
    uint32_t unit;        /**< chunks are multiples of this */
    uint32_t highest;     /**< most bytes of a chunk */
    const uint32_t *size; /**< simulated ones: the sizes of the next `sizes` chunks */
    unsigned sizes;
} onic_schedule_t;

/** Chunks of c0 > 0, c0 * q, c0 * q^2 and so on, each a multiple of `unit` (1 .. buffer) and no
 *  longer than `buffer`. With q above 1 they grow until they fill a buffer; with 1 all have one
 *  size. */
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

/** Bytes of the next chunk. The last chunk of a transfer is instead what is left. */
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

/** True if the next `chunks` chunks hold `bytes`, even if each is cut short by less than `slack`.
 */
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
