/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A landing area: slots and their words in memory that the processes of a node share, and
 *  without a name. It is larger than one L2: a line that still sits in the receiver's L2 costs an
 * invalidation when a sender writes it again.
 *
 *  At first only the words have memory. A slot gets its own from the first process that leases it,
 *  and is mapped by each of the two sides when that first has to do with it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/mover/pipe/pool.h"
#include "common/node/node.h"
#include "common/support/life.h"

/** An area as this process has it mapped. */
typedef struct onic_area {
    onic_segment_t segment;
    onic_pool_t pool;
    char *slots;
    uint32_t slot_bytes;
    uint64_t mapped;      /**< slots that have memory, and are mapped here; wire lock */
    onic_file_key_t file; /**< that of the segment; its maker has it open */
    bool far;             /**< its owner shares no cache and no package with this process */
    onic_life_t life;     /**< whose it is */
    uint64_t owner;       /**< the same process as an owner of slots elsewhere; not 0 */
} onic_area_t;

/** Bytes of an area where nobody says how many: two L2 caches, 1 .. 16 MiB. */
size_t onic_area_derived(void);

/** Makes this process's area, whose slots have no memory yet. False where it cannot be had;
 *  otherwise onic_area_close must follow. Prints nothing. */
bool onic_area_make(size_t bytes, size_t slot, onic_area_t *area, onic_segment_key_t *key);

/** Maps another process's area. False also where we could not know whether it is dead. */
bool onic_area_map(const onic_segment_key_t *key, onic_area_t *area);

/** Has those of `slots` ready for use that can be: with memory, made if `make`, and mapped here.
 *  Returns which. The wire lock is held. */
ONIC_EXPORT uint64_t onic_area_prepare(onic_area_t *area, uint64_t slots, bool make);

/** The same where that has been done before, at the cost of a comparison. */
static inline uint64_t onic_area_have(onic_area_t *area, uint64_t slots, bool make)
{
    return (slots & ~area->mapped) == 0 ? slots : onic_area_prepare(area, slots, make);
}

/** Unmaps it. */
void onic_area_unmap(onic_area_t *area);

/** By its maker: nobody can map it from then on; a process that has it keeps the memory. */
void onic_area_close(onic_area_t *area, onic_segment_key_t *key);

static inline char *onic_area_slot(const onic_area_t *area, unsigned slot)
{
    return area->slots + (size_t)slot * area->slot_bytes;
}
