/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What single copy may move without tearing elements of up to 8 bytes that others look at. Pure.
 *
 * The kernel promises nothing. What it does (mm/process_vm_access.c): it copies page by page, each
 * as between the kernel and a user's buffer. That copy is, on x86-64, a loop of 8-byte moves or
 * `rep movsb`, with single bytes at an end that is no multiple of 8, and, in kernels before 6.4, at
 * a begin that is none; later ones make 8-byte moves from wherever the destination begins, which
 * then lie across two of its words. The microcode behind `rep movsb` moves 16 bytes or more at a
 * time, in step with one side. arm64 moves words likewise. So words stay whole where both sides
 * begin at a word and whole words are moved; nothing can be said of anything else, such as elements
 * of 4 bytes at the end of an odd number of them.
 */
#ifndef ONIC_WHOLE_WORDS_H
#define ONIC_WHOLE_WORDS_H

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

/** The words that some bytes lie in. They are in the same pages, so a process that may read the
 * bytes may read the words. */
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

#endif
