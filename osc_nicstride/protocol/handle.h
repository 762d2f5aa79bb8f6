/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Handles: 64-bit names for our own objects that travel to a peer and come back in its replies.
 * A handle holds a slot and the slot's generation, so a reply to an object that is gone, or a
 * forged one, finds nothing.
 *
 * Pure; the caller serialises.
 */
#ifndef NICSTRIDE_HANDLE_H
#define NICSTRIDE_HANDLE_H

#include <stdbool.h>
#include <stdint.h>

/** Generations of a slot, 1 to this, then 1 again: so many operations later a reply that was lost
 *  for as long would be taken for another's. */
#define NICSTRIDE_GENERATION_MAX 0xffffffu

typedef struct nicstride_handle_slot {
    void *object; /**< NULL while free */
    uint32_t generation;
    uint32_t next_free; /**< slot + 1, or 0 */
} nicstride_handle_slot_t;

/** Zero-initialise. */
typedef struct nicstride_handles {
    nicstride_handle_slot_t *slot;
    uint32_t n;
    uint32_t free; /**< first free slot + 1, or 0 */
    uint32_t used;
} nicstride_handles_t;

/** A handle for `object` (not NULL), or 0 where memory is exhausted. 0 is never a valid handle. */
uint64_t nicstride_handle_new(nicstride_handles_t *t, void *object);
/** The object, or NULL where the handle is not (or no longer) valid. */
void *nicstride_handle_get(const nicstride_handles_t *t, uint64_t handle);
/** Frees the handle and returns its object, or NULL as above. */
void *nicstride_handle_free(nicstride_handles_t *t, uint64_t handle);
void nicstride_handles_fini(nicstride_handles_t *t);

/** A handle in 32 bits, its generation and eight bits of its slot, and back. Only for those whose
 *  slot is below NICSTRIDE_HANDLE_WORD_SLOTS. */
#define NICSTRIDE_HANDLE_WORD_SLOTS 256

static inline bool nicstride_handle_has_word(uint64_t handle)
{
    return (uint32_t)handle < NICSTRIDE_HANDLE_WORD_SLOTS;
}

static inline uint32_t nicstride_handle_word(uint64_t handle)
{
    return (uint32_t)(handle >> 24 | (uint32_t)handle);
}

static inline uint64_t nicstride_handle_of_word(uint32_t word)
{
    return (uint64_t)(word >> 8) << 32 | (word & UINT8_MAX);
}

#endif
