/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Handles; see handle.h. The upper half of a handle is the generation, never 0, which is why
 *  no handle is 0; the lower half is the slot. */
#include "common/support/handle.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#define FIRST_SLOTS 16u

/* Makes more slots; they are free, the lowest first. */
static bool grow(onic_handles_t *t)
{
    if (t->n > UINT32_MAX / 2)
        return false;

    const uint32_t n = t->n != 0 ? 2 * t->n : FIRST_SLOTS;
    onic_handle_slot_t *slot = reallocarray(t->slot, n, sizeof(*slot));
    if (slot == NULL)
        return false;

    for (uint32_t i = t->n; i < n; i++)
        slot[i] = (onic_handle_slot_t){.generation = 1, .next_free = i + 2};
    slot[n - 1].next_free = t->free;
    t->free = t->n + 1;
    t->slot = slot;
    t->n = n;
    return true;
}

uint64_t onic_handle_new(onic_handles_t *t, void *object)
{
    if (object == NULL || (t->free == 0 && !grow(t)))
        return 0;

    const uint32_t index = t->free - 1;
    onic_handle_slot_t *slot = &t->slot[index];
    t->free = slot->next_free;
    slot->object = object;
    slot->next_free = 0;
    return (uint64_t)slot->generation << 32 | index;
}

/* The slot that a handle names, or NULL where it is not valid now. */
static onic_handle_slot_t *find(const onic_handles_t *t, uint64_t handle)
{
    const uint32_t index = (uint32_t)handle;

    if (index >= t->n)
        return NULL;
    onic_handle_slot_t *slot = &t->slot[index];
    return slot->object != NULL && slot->generation == handle >> 32 ? slot : NULL;
}

void *onic_handle_get(const onic_handles_t *t, uint64_t handle)
{
    const onic_handle_slot_t *slot = find(t, handle);

    return slot != NULL ? slot->object : NULL;
}

void *onic_handle_free(onic_handles_t *t, uint64_t handle)
{
    onic_handle_slot_t *slot = find(t, handle);

    if (slot == NULL)
        return NULL;
    void *object = slot->object;
    slot->object = NULL;
    slot->generation = slot->generation % ONIC_GENERATION_MAX + 1;
    slot->next_free = t->free;
    t->free = (uint32_t)handle + 1;
    return object;
}

void onic_handles_fini(onic_handles_t *t)
{
    free(t->slot);
    *t = (onic_handles_t){0};
}
