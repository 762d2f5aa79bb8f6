/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file How a slot is laid out that an adapter puts into: blocks of data with a word behind each,
 *  so that one put carries a whole chunk and the receiver still takes block after block as they
 *  come (A. Denis 2011, section 4, "sub-blocking": 4 KiB with the flag). Pure.
 *
 *  The words are those of the machines (pipe.h) and stand where no data ever stands, also behind a
 *  last block that is not full. They are 0 when a lease begins; rounds distinguish them from older
 *  ones. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "common/mover/pipe/pipe.h"

/** Bytes of a block with its word. Slots are multiples of it. */
#define ONIC_BLOCK_BYTES 4096

/** How a transfer uses its slots. */
typedef struct onic_blocks {
    uint32_t bytes; /**< of a block, the last 8 of which are the word; or of a slot without words */
    uint32_t data;  /**< most bytes of data in each */
} onic_blocks_t;

/** Blocks for elements of `granule` bytes, an eighth of a block at most (0 and 1: any). */
static inline onic_blocks_t onic_blocks_cut(uint32_t granule)
{
    const uint32_t most = ONIC_BLOCK_BYTES - 8;

    return (onic_blocks_t){ONIC_BLOCK_BYTES, granule > 1 ? most - most % granule : most};
}

/** Slots of `slot_bytes` without words. `data` is 0 where an element is longer. */
static inline onic_blocks_t onic_blocks_none(uint32_t slot_bytes, uint32_t granule)
{
    return (onic_blocks_t){slot_bytes,
                           granule > 1 ? slot_bytes - slot_bytes % granule : slot_bytes};
}

/** Bytes of data in a slot. */
static inline uint32_t onic_blocks_room(const onic_blocks_t *b, uint32_t slot_bytes)
{
    return slot_bytes / b->bytes * b->data;
}

/** Where byte `offset` of a chunk stands in its slot. */
static inline size_t onic_blocks_at(const onic_blocks_t *b, uint32_t offset)
{
    return (size_t)(offset / b->data) * b->bytes + offset % b->data;
}

/** How many bytes of a chunk stand behind one another from byte `offset` on. */
static inline uint32_t onic_blocks_run(const onic_blocks_t *b, uint32_t offset)
{
    return b->data - offset % b->data;
}

/** Blocks that hold `bytes` of a chunk. */
static inline uint32_t onic_blocks_of(const onic_blocks_t *b, uint32_t bytes)
{
    return (bytes + b->data - 1) / b->data;
}

/** The word behind a block. */
static inline _Atomic uint64_t *onic_blocks_word(const onic_blocks_t *b, const void *slot,
                                                 uint32_t block)
{
    const char *end = (const char *)slot + (size_t)(block + 1) * b->bytes;

    return (_Atomic uint64_t *)(uintptr_t)(end - sizeof(uint64_t));
}

/** Writes the word of the sender's machine behind the last block that it counts. */
static inline void onic_blocks_mark(const onic_blocks_t *b, void *slot, uint64_t word)
{
    const uint32_t bytes = onic_word_bytes(word);

    if (bytes > 0)
        atomic_store_explicit(onic_blocks_word(b, slot, (bytes - 1) / b->data), word,
                              memory_order_release);
}

/** The word for the receiver's machine: the last one that has come, behind block after block, for
 *  `round`, of which `seen` bytes are known to be there; or one that says nothing new. A slot may
 *  hold anything. */
static inline uint64_t onic_blocks_look(const onic_blocks_t *b, const void *slot,
                                        uint32_t slot_bytes, uint32_t round, uint32_t seen)
{
    uint64_t newest = (uint64_t)(round - 1) << 32;

    for (uint32_t k = seen / b->data; k < slot_bytes / b->bytes; k++) {
        const uint64_t word =
            atomic_load_explicit(onic_blocks_word(b, slot, k), memory_order_acquire);

        if (onic_word_round(word) != round)
            break;
        newest = word;
        /* A block that is not full is the last one of its chunk. */
        if (onic_word_bytes(word) != (k + 1) * b->data)
            break;
    }
    return newest;
}

/** No word has come: before a lease. */
static inline void onic_blocks_clear(const onic_blocks_t *b, void *slot, uint32_t slot_bytes)
{
    for (uint32_t k = 0; k < slot_bytes / b->bytes; k++)
        atomic_store_explicit(onic_blocks_word(b, slot, k), 0, memory_order_relaxed);
}
