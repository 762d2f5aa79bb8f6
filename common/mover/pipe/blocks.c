/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/mover/pipe/blocks.h"

#include <stdatomic.h>

static _Atomic uint64_t *word_of(const onic_blocks_t *b, const void *slot, uint32_t block)
{
    const char *end = (const char *)slot + (size_t)(block + 1) * b->bytes;

    return (_Atomic uint64_t *)(uintptr_t)(end - sizeof(uint64_t));
}

void onic_blocks_mark(const onic_blocks_t *b, void *slot, uint64_t word)
{
    const uint32_t bytes = onic_word_bytes(word);

    if (bytes > 0)
        atomic_store_explicit(word_of(b, slot, (bytes - 1) / b->data), word, memory_order_release);
}

uint64_t onic_blocks_look(const onic_blocks_t *b, const void *slot, uint32_t slot_bytes,
                          uint32_t round, uint32_t seen)
{
    uint64_t newest = (uint64_t)(round - 1) << 32;

    for (uint32_t k = seen / b->data; k < slot_bytes / b->bytes; k++) {
        const uint64_t word = atomic_load_explicit(word_of(b, slot, k), memory_order_acquire);

        if (onic_word_round(word) != round)
            break;
        newest = word;
        /* A block that is not full is the last one of its chunk. */
        if (onic_word_bytes(word) != (k + 1) * b->data)
            break;
    }
    return newest;
}

void onic_blocks_clear(const onic_blocks_t *b, void *slot, uint32_t slot_bytes)
{
    for (uint32_t k = 0; k < slot_bytes / b->bytes; k++)
        atomic_store_explicit(word_of(b, slot, k), 0, memory_order_relaxed);
}
