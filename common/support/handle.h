/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Handles: 64-bit names for our own objects that travel to a peer and come back in its
 *  replies: a slot and its generation, so that a reply to an object that is gone finds nothing.
 *  Pure; the caller serialises. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/support/export.h"

/** Generations of a slot, 1 to this: a reply lost for so many would be taken for another's. */
#define ONIC_GENERATION_MAX 0xffffffu

typedef struct onic_handle_slot {
    void *object; /**< NULL while free */
    uint32_t generation;
    uint32_t next_free; /**< slot + 1, or 0 */
} onic_handle_slot_t;

/** Zero-initialise. */
typedef struct onic_handles {
    onic_handle_slot_t *slot;
    uint32_t n;
    uint32_t free; /**< first free slot + 1, or 0 */
} onic_handles_t;

/** A handle for `object` (not NULL), or 0 where memory is exhausted. 0 is never a valid handle. */
ONIC_EXPORT uint64_t onic_handle_new(onic_handles_t *t, void *object);
/** The object, or NULL where the handle is not (or no longer) valid. */
ONIC_EXPORT void *onic_handle_get(const onic_handles_t *t, uint64_t handle);
/** Frees the handle and returns its object, or NULL as above. */
ONIC_EXPORT void *onic_handle_free(onic_handles_t *t, uint64_t handle);
ONIC_EXPORT void onic_handles_fini(onic_handles_t *t);

/** A handle in 32 bits, and back. Only for those whose slot is below ONIC_HANDLE_WORD_SLOTS. */
#define ONIC_HANDLE_WORD_SLOTS 256

static inline bool onic_handle_has_word(uint64_t handle)
{
    return (uint32_t)handle < ONIC_HANDLE_WORD_SLOTS;
}

static inline uint32_t onic_handle_word(uint64_t handle)
{
    return (uint32_t)(handle >> 24 | (uint32_t)handle);
}

static inline uint64_t onic_handle_of_word(uint32_t word)
{
    return (uint64_t)(word >> 8) << 32 | (word & UINT8_MAX);
}
