/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Peers of this node: the receiver's area is mapped at the sender.
 */
#include "common/mover/pipe/schedule.h"
#include "common/mover/transfer_internal.h"

static onic_slot_words_t *words(const onic_transfer_t *t, unsigned slot)
{
    return &t->area->pool.slot[slot];
}

static char *at(onic_transfer_t *t, unsigned slot, uint32_t offset, uint32_t *len_p)
{
    (void)len_p;
    return onic_area_slot(t->area, slot) + offset;
}

static void publish(onic_transfer_t *t, unsigned slot, uint64_t word)
{
    atomic_store_explicit(&words(t, slot)->word, word, memory_order_release);
}

static uint64_t word(onic_transfer_t *t, unsigned slot)
{
    return atomic_load_explicit(&words(t, slot)->word, memory_order_acquire);
}

static void acknowledge(onic_transfer_t *t, unsigned slot, uint64_t rounds)
{
    atomic_store_explicit(&words(t, slot)->acknowledged, rounds, memory_order_release);
}

static uint64_t acknowledged(onic_transfer_t *t, unsigned slot)
{
    return atomic_load_explicit(&words(t, slot)->acknowledged, memory_order_acquire);
}

static void give_back(onic_transfer_t *t, uint64_t slots)
{
    const unsigned in_use = onic_pool_give(&t->area->pool, t->owner, slots);
    if (t->role == ONIC_RECEIVES) {
        onic_mover_count_slots(in_use);
    }
}

static bool is_dead(const onic_transfer_t *t)
{
    return onic_life_is_dead(&t->other);
}

const onic_carrier_t onic_carrier_node = {
    .name = "node",
    .block = ONIC_MOVER_BLOCK,
    .best = ONIC_POLICY_SLOT,
    .at = at,
    .publish = publish,
    .word = word,
    .acknowledge = acknowledge,
    .acknowledged = acknowledged,
    .give_back = give_back,
    .is_dead = is_dead,
};
