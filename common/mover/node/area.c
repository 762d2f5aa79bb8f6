/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE
#include "common/mover/node/area.h"

#include <stddef.h>
#include <string.h>

#include "common/node/segment.h"

#define MIB  ((size_t)1 << 20)
#define PAGE ((size_t)4096)
/* Mapped round a load, unless Linux was told otherwise. */
#define AROUND ((size_t)64 << 10)

/** What stands before the slots. */
typedef struct area_head {
    uint32_t nslots;
    uint32_t slot_bytes;
    onic_life_t life;
    /** A bit for each slot that has memory. */
    _Alignas(64) _Atomic uint64_t filled;
    onic_pool_words_t pool;
    onic_slot_words_t slot[ONIC_SLOTS_MAX];
} area_head_t;

#define HEAD_BYTES ((sizeof(area_head_t) + PAGE - 1) / PAGE * PAGE)

size_t onic_area_derived(void)
{
    const size_t l2 = onic_l2_size();
    return l2 <= MIB / 2 ? MIB : l2 >= 8 * MIB ? 16 * MIB : 2 * l2;
}

/** Maps what has memory: a load brings all pages round it, in a third of the time of populating. */
static void map_around(const char *from, size_t len)
{
    for (size_t at = 0; at < len; at += AROUND)
        (void)*(const volatile char *)(from + at);
    (void)*(const volatile char *)(from + len - 1);
}

/** The lowest bits of a mask that follow one another. */
static uint64_t first_row(uint64_t mask)
{
    const uint64_t first = mask & -mask;
    return mask & ~(mask + first);
}

uint64_t onic_area_prepare(onic_area_t *area, uint64_t slots, bool make)
{
    area_head_t *head = area->segment.base;
    const onic_mapped_t all = {area->segment.base, 0, area->segment.size};
    const uint64_t filled = atomic_load_explicit(&head->filled, memory_order_acquire);
    for (uint64_t left = slots & ~area->mapped, row; left != 0; left &= ~row) {
        row = first_row((left & filled) != 0 ? left & filled : left);
        char *at = onic_area_slot(area, (unsigned)__builtin_ctzll(row));
        const size_t len = (size_t)__builtin_popcountll(row) * area->slot_bytes;
        if ((row & filled) != 0)
            map_around(at, len);
        else if (!make || !onic_segment_fill(&all, &area->file,
                                             (size_t)(at - (char *)area->segment.base), len))
            continue;
        atomic_fetch_or_explicit(&head->filled, row, memory_order_release);
        area->mapped |= row;
    }
    return slots & area->mapped;
}

static void lay_out(onic_area_t *area, unsigned nslots, uint32_t slot_bytes)
{
    area_head_t *head = area->segment.base;
    area->pool = (onic_pool_t){&head->pool, head->slot, nslots};
    area->slots = (char *)area->segment.base + HEAD_BYTES;
    area->slot_bytes = slot_bytes;
    area->mapped = 0;
    area->owner = onic_owner_of(&area->life);
}

bool onic_area_make(size_t bytes, size_t slot, onic_area_t *area, onic_segment_key_t *key)
{
    const onic_pool_shape_t shape = onic_pool_cut(bytes, slot);
    const size_t total = HEAD_BYTES + (size_t)shape.nslots * shape.slot_bytes;
    if (!onic_segment_make(total, HEAD_BYTES, 1, ONIC_NAMELESS, key, &area->segment))
        return false;
    area->life = onic_life_mine();
    area->file = key->file;
    lay_out(area, shape.nslots, shape.slot_bytes);
    if (area->owner == 0) {
        onic_area_close(area, key);
        return false;
    }
    area_head_t *head = area->segment.base;
    head->nslots = shape.nslots;
    head->slot_bytes = shape.slot_bytes;
    head->life = area->life;
    onic_pool_init(&area->pool);
    return true;
}

/** Takes the sizes over, if they keep within the segment. */
static bool read_head(onic_area_t *area)
{
    area_head_t head;
    const onic_life_t mine = onic_life_mine();
    memcpy(&head, area->segment.base, offsetof(area_head_t, pool));
    if (head.nslots < 1 || head.nslots > ONIC_SLOTS_MAX || head.slot_bytes == 0 ||
        head.slot_bytes > ONIC_SLOT_MAX ||
        area->segment.size != HEAD_BYTES + (size_t)head.nslots * head.slot_bytes ||
        !onic_life_comparable(&mine, &head.life))
        return false;
    area->life = head.life;
    lay_out(area, head.nslots, head.slot_bytes);
    return area->owner != 0;
}

bool onic_area_map(const onic_segment_key_t *key, onic_area_t *area)
{
    if (key->size < HEAD_BYTES ||
        onic_segment_join(key, key->size, 1, &area->segment) != ONIC_JOINED)
        return false;
    if (!read_head(area)) {
        onic_segment_unmap(&area->segment);
        return false;
    }
    area->file = key->file;
    return true;
}

void onic_area_unmap(onic_area_t *area)
{
    onic_segment_unmap(&area->segment);
}

void onic_area_close(onic_area_t *area, onic_segment_key_t *key)
{
    onic_segment_withdraw(key);
    onic_segment_unmap(&area->segment);
}
