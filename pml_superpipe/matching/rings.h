/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A table of queues by key: each key has a ring of elements in insertion order. All calls
 * take constant time, since a bucket chains only the first element of each ring. Elements are links
 *  in the caller's structures. If there is no memory for the table to grow, it gets slower. Pure;
 *  the caller serialises. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Buckets that need no allocated memory: 2^this. */
#define SUPERPIPE_RINGS_OWN_BITS 4
/** A table longer than 2^this is freed when no key is left; shorter ones stay. */
#define SUPERPIPE_RINGS_KEPT_BITS 10
/** The longest table has 2^this buckets. */
#define SUPERPIPE_RINGS_MOST_BITS 30

/** The link of an element; zero at first and whenever it is in no ring. Must not move while it is
 *  in one. */
typedef struct superpipe_link {
    struct superpipe_link *next, *prev; /**< around the ring */
    struct superpipe_link *chain;       /**< of the first: the first of the next ring, or NULL */
    struct superpipe_link **back;       /**< of the first: the pointer to it; of others NULL */
    uint64_t key;
} superpipe_link_t;

/** A table of rings. Must not move, since it points into itself. */
typedef struct superpipe_rings {
    superpipe_link_t **bucket;
    unsigned bits;    /**< there are 2^bits buckets */
    uint64_t keys;    /**< number of rings */
    uint64_t grow_at; /**< number of keys at which the table grows */
    uint64_t steps;   /**< work done: searches, and elements looked at or moved */
    superpipe_link_t *own[1 << SUPERPIPE_RINGS_OWN_BITS];
} superpipe_rings_t;

void superpipe_rings_init(superpipe_rings_t *t);

/** Frees the table's own memory. Elements still in it are not touched. */
void superpipe_rings_fini(superpipe_rings_t *t);

/** Appends an element, which is in no ring, to the ring of that key. */
void superpipe_rings_append(superpipe_rings_t *t, superpipe_link_t *link, uint64_t key);

/** The first element with that key, or NULL. */
superpipe_link_t *superpipe_rings_first(superpipe_rings_t *t, uint64_t key);

/** Takes out an element of this table. */
void superpipe_rings_remove(superpipe_rings_t *t, superpipe_link_t *link);

/** The first element of some ring whose key equals `key` in the bits of `mask`, or NULL: used to
 *  take all of them out. `*cursor` is 0 at first; append nothing meanwhile. */
superpipe_link_t *superpipe_rings_some(const superpipe_rings_t *t, uint64_t key, uint64_t mask,
                                       size_t *cursor);

/** True if the element is in a ring. */
static inline bool superpipe_link_is_in(const superpipe_link_t *link)
{
    return link->next != NULL;
}
