/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A table of queues by key: each key has a ring of elements in the order in which they came.
 *  All calls take constant time, since a bucket chains only the first of each ring. Elements are
 *  links in structures of the caller's. Where there is no memory for the table to grow it gets
 *  slower. Pure; the caller serialises. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Buckets that need no memory of their own: a power of two. */
#define SUPERPIPE_RINGS_OWN_BITS 4
/** A longer table than this is given back when no key is left; shorter ones stay. */
#define SUPERPIPE_RINGS_KEPT_BITS 10
/** No table is longer. */
#define SUPERPIPE_RINGS_MOST_BITS 30

/** Place of an element, zero at first and whenever it is in no ring. Must not move while it is. */
typedef struct superpipe_link {
    struct superpipe_link *next, *prev; /**< round the ring */
    struct superpipe_link *chain;       /**< of the first: the first of another ring, or NULL */
    struct superpipe_link **back;       /**< of the first: what points to it; of others NULL */
    uint64_t key;
} superpipe_link_t;

/** Must not move, since it points into itself. */
typedef struct superpipe_rings {
    superpipe_link_t **bucket;
    unsigned bits;    /**< there are 2^bits buckets */
    uint64_t keys;    /**< rings */
    uint64_t grow_at; /**< so many of them ask for a longer table */
    uint64_t steps;   /**< the work done: searches, and elements looked at or moved on their way */
    superpipe_link_t *own[1 << SUPERPIPE_RINGS_OWN_BITS];
} superpipe_rings_t;

void superpipe_rings_init(superpipe_rings_t *t);

/** Frees the table's own memory. What is still in it is not touched. */
void superpipe_rings_fini(superpipe_rings_t *t);

/** Puts an element, which is in no ring, behind all others of that key. */
void superpipe_rings_append(superpipe_rings_t *t, superpipe_link_t *link, uint64_t key);

/** The first of that key, or NULL. */
superpipe_link_t *superpipe_rings_first(superpipe_rings_t *t, uint64_t key);

/** Takes out an element of this table. */
void superpipe_rings_remove(superpipe_rings_t *t, superpipe_link_t *link);

/** The first of some ring whose key is equal to `key` in the bits of `mask`, or NULL: to take them
 *  all out. `*cursor` is 0 at first, and nothing is appended meanwhile. */
superpipe_link_t *superpipe_rings_some(const superpipe_rings_t *t, uint64_t key, uint64_t mask,
                                       size_t *cursor);

/** True if it is in a ring. */
static inline bool superpipe_link_is_in(const superpipe_link_t *link)
{
    return link->next != NULL;
}
