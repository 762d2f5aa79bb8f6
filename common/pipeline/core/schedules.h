/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Chooses the schedule (chunks.h) of a transfer's chunks by the numbers of a link;
 *  sections and equations are those of A. Denis (2011). Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/model/link.h"
#include "common/model/pipeline.h"
#include "common/pipeline/core/chunks.h"
#include "common/support/export.h"

typedef enum onic_schedule_kind {
    ONIC_SCHEDULE_BEST,      /**< one of the others: onic_schedule_best */
    ONIC_SCHEDULE_SUPERPIPE, /**< section 4: C0 = Bcopy 2 lambda, q = Bcopy / Bnet (equation 5) */
    ONIC_SCHEDULE_MEASURED, /**< the link's `chunk` and `growth`: the paper's 12 KiB and 1.5, unless
                               a file of costs has others */
    ONIC_SCHEDULE_CONSTANT, /**< each chunk fills a buffer */
    ONIC_SCHEDULES
} onic_schedule_kind_t;

/** The names of the kinds, ending with NULL: "best", "superpipe" and so on. */
ONIC_EXPORT extern const char *const onic_schedule_words[ONIC_SCHEDULES + 1];

/** The help text of a component's parameter `schedule`, whose values are onic_schedule_words. */
#define ONIC_SCHEDULE_HELP                                                                         \
    "Sizes of the chunks in which data goes through receive buffers: best, which is "              \
    "constant on a node and measured between hosts; superpipe, which grow as the numbers "         \
    "of the link say; measured, by the numbers chunk and growth of the link, 12 KiB and "          \
    "1.5 unless a file of costs has others; constant, full buffers. Where osc nicstride "          \
    "and pml superpipe are both used, that of the first to begin holds"

/** The kind that BEST stands for, on a node or between hosts; other kinds stand for themselves. On
 *  a node full buffers were never slower than growing chunks. */
static inline onic_schedule_kind_t onic_schedule_best(onic_schedule_kind_t kind, bool on_node)
{
    return kind != ONIC_SCHEDULE_BEST ? kind
           : on_node                  ? ONIC_SCHEDULE_CONSTANT
                                      : ONIC_SCHEDULE_MEASURED;
}

/** A kind other than BEST, and the numbers it uses. */
typedef struct onic_schedule_choice {
    onic_schedule_kind_t kind;
    onic_link_t link;
} onic_schedule_choice_t;

/** The chunks of a kind other than BEST in the model, for buffers of `most` bytes. */
ONIC_EXPORT onic_chunks_t onic_schedule_chunks(onic_schedule_kind_t kind, const onic_link_t *link,
                                               double most);

/** Bytes of a sub-block between hosts in a transfer of `bytes`, a multiple of 64. Each sub-block is
 *  a put and a message, so longer transfers have longer ones: about the length for which all gaps
 *  together take as long as one block, but not less than on a node. */
ONIC_EXPORT uint32_t onic_schedule_block(const onic_link_t *link, uint64_t bytes);

/** The schedule of a transfer through buffers of `buffer` bytes, in multiples of `unit` (1 ..
 *  buffer). */
ONIC_EXPORT void onic_schedule_make(onic_schedule_t *s, const onic_schedule_choice_t *choice,
                                    uint32_t unit, uint32_t buffer);
