/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What single copy may move without tearing elements of up to 8 bytes that others look at.
 *  The kernel promises nothing; it copies page by page, on x86-64 by 8-byte moves or `rep movsb`,
 *  with single bytes at an end that is no multiple of 8, and, before 6.4, at such a begin; later
 *  ones make 8-byte moves from wherever the destination begins. arm64 moves words likewise. So
 *  words stay whole where both sides begin at a word and whole words are moved, and there only.
 *  Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/layout/layout.h"

#define ONIC_WORD 8u

/** Are all pieces of a layout whole aligned words, where its offsets count from `base`? */
static inline bool onic_whole_words(const onic_layout_t *l, uint64_t base)
{
    uint64_t all = base + (uint64_t)l->offset;

    for (uint32_t i = 0; i < l->nlevels; i++)
        all |= (uint64_t)l->level[i].stride;
    if (l->nruns == 0)
        all |= l->block;
    for (uint32_t i = 0; i < l->nruns; i++) {
        const onic_run_t *run = &l->runs[i];

        all |= (uint64_t)run->offset | run->block;
        if (run->count > 1)
            all |= (uint64_t)run->stride;
    }
    return all % ONIC_WORD == 0;
}

/** The words that some bytes lie in: they are in the same pages. */
typedef struct onic_words {
    uint64_t at;
    uint64_t len;
    uint64_t before; /**< bytes of theirs before those that are meant */
} onic_words_t;

static inline onic_words_t onic_words_around(uint64_t at, uint64_t len)
{
    const uint64_t before = at % ONIC_WORD;
    const uint64_t after = (ONIC_WORD - (at + len) % ONIC_WORD) % ONIC_WORD;

    return (onic_words_t){.at = at - before, .len = before + len + after, .before = before};
}
