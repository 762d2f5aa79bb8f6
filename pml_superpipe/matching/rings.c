/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Queues by key; see rings.h. */
#include "pml_superpipe/matching/rings.h"

#include <stdlib.h>
#include <string.h>

static uint64_t buckets(unsigned bits)
{
    return UINT64_C(1) << bits;
}

/* Keys may be consecutive numbers, in either half or both, or have any stride: a single
 * multiplication would map some of them to the same bucket. */
static superpipe_link_t **bucket_of(const superpipe_rings_t *t, uint64_t key)
{
    key = (key ^ key >> 32) * UINT64_C(0x9e3779b97f4a7c15);
    key = (key ^ key >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    return &t->bucket[key >> (64 - t->bits)];
}

static void use_own(superpipe_rings_t *t)
{
    memset(t->own, 0, sizeof(t->own));
    t->bucket = t->own;
    t->bits = SUPERPIPE_RINGS_OWN_BITS;
    t->grow_at = buckets(t->bits);
}

void superpipe_rings_init(superpipe_rings_t *t)
{
    t->keys = t->steps = 0;
    use_own(t);
}

void superpipe_rings_fini(superpipe_rings_t *t)
{
    if (t->bucket != t->own)
        free(t->bucket);
    superpipe_rings_init(t);
}

/* ---- chains ---------------------------------------------------------------------------------- */

static void chain(superpipe_link_t **bucket, superpipe_link_t *first)
{
    first->chain = *bucket;
    first->back = bucket;
    if (first->chain != NULL)
        first->chain->back = &first->chain;
    *bucket = first;
}

/** Replaces the first element of a ring by `other`, or, if that is NULL, removes it from the chain.
 */
static void replace(superpipe_link_t *first, superpipe_link_t *other)
{
    superpipe_link_t *rest = first->chain;

    if (other != NULL) {
        other->chain = rest;
        other->back = first->back;
        if (rest != NULL)
            rest->back = &other->chain;
        rest = other;
    } else if (rest != NULL) {
        rest->back = first->back;
    }
    *first->back = rest;
}

static void grow(superpipe_rings_t *t)
{
    superpipe_link_t **const old = t->bucket;
    const uint64_t n = buckets(t->bits);
    superpipe_link_t **longer =
        t->bits < SUPERPIPE_RINGS_MOST_BITS ? calloc(2 * n, sizeof(superpipe_link_t *)) : NULL;

    t->grow_at *= 2;
    if (longer == NULL)
        return;
    t->bucket = longer;
    t->bits++;
    for (uint64_t i = 0; i < n; i++) {
        for (superpipe_link_t *next, *first = old[i]; first != NULL; first = next) {
            next = first->chain;
            chain(bucket_of(t, first->key), first);
            t->steps++;
        }
    }
    if (old != t->own)
        free(old);
}

static void shrink(superpipe_rings_t *t)
{
    if (t->bits > SUPERPIPE_RINGS_KEPT_BITS) {
        free(t->bucket);
        use_own(t);
    }
}

/* ---- rings ----------------------------------------------------------------------------------- */

superpipe_link_t *superpipe_rings_first(superpipe_rings_t *t, uint64_t key)
{
    superpipe_link_t *first = *bucket_of(t, key);

    t->steps++;
    for (; first != NULL && first->key != key; first = first->chain)
        t->steps++;
    return first;
}

void superpipe_rings_append(superpipe_rings_t *t, superpipe_link_t *link, uint64_t key)
{
    superpipe_link_t *first = superpipe_rings_first(t, key);

    link->key = key;
    if (first != NULL) {
        link->chain = NULL;
        link->back = NULL;
        link->next = first;
        link->prev = first->prev;
        first->prev->next = link;
        first->prev = link;
        return;
    }
    link->next = link->prev = link;
    if (t->keys++ >= t->grow_at)
        grow(t);
    chain(bucket_of(t, key), link);
}

void superpipe_rings_remove(superpipe_rings_t *t, superpipe_link_t *link)
{
    superpipe_link_t *next = link->next != link ? link->next : NULL;

    if (link->back != NULL)
        replace(link, next);
    link->prev->next = link->next;
    link->next->prev = link->prev;
    link->next = NULL;
    if (next == NULL && --t->keys == 0)
        shrink(t);
}

superpipe_link_t *superpipe_rings_some(const superpipe_rings_t *t, uint64_t key, uint64_t mask,
                                       size_t *cursor)
{
    for (; *cursor < buckets(t->bits); ++*cursor)
        for (superpipe_link_t *first = t->bucket[*cursor]; first != NULL; first = first->chain)
            if (((first->key ^ key) & mask) == 0)
                return first;
    return NULL;
}
