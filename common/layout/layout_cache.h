/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A cache of layouts that were made from long contents, with these contents. A layout is
 * found by comparing contents in full: their 64-bit fingerprint only says where to look. Contents
 * that occur only once are not kept. The number of bytes is bounded, and the least recently used
 * layout is dropped first. Pure; one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "common/layout/layout.h"

#define ONIC_LAYOUT_CACHE_BUCKETS 256
/** Most layouts, so that a bucket has few. */
#define ONIC_LAYOUT_CACHE_MAX 1024
/** Number of fingerprints remembered that came once. */
#define ONIC_LAYOUT_CACHE_SEEN 64

/** The contents that a layout is made from. */
typedef struct onic_contents {
    const void *bytes;
    size_t len;
    uint64_t print; /**< a fingerprint: equal contents have equal ones */
    /** True if the contents are equal. Their lengths and fingerprints are. */
    bool (*same)(const void *a, const void *b, size_t len);
} onic_contents_t;

/** Zero-initialise it, except `limit`. */
typedef struct onic_layout_cache {
    size_t limit; /**< most bytes; 0: nothing is kept */
    size_t bytes; /**< bytes used */
    unsigned n;   /**< number of layouts */
    TAILQ_HEAD(onic_cached_by_use, onic_cached_layout) by_use;
    LIST_HEAD(, onic_cached_layout) bucket[ONIC_LAYOUT_CACHE_BUCKETS];
    uint64_t numbers;                      /**< numbers given to lists so far */
    uint64_t seen[ONIC_LAYOUT_CACHE_SEEN]; /**< fingerprints of the latest contents, a ring */
    unsigned turn;
    unsigned long long hits; /**< number of successful lookups */
} onic_layout_cache_t;

/** Makes `l` the layout that was made from these contents. False if it is not in the cache. */
ONIC_EXPORT bool onic_layout_cache_find(onic_layout_cache_t *c, const onic_contents_t *from,
                                        onic_layout_t *l);

/** A layout was made that onic_layout_cache_find did not have: keeps it, with a copy of the
 *  contents, if they come for the second time and the limit allows. A list then gets a number. */
ONIC_EXPORT void onic_layout_cache_add(onic_layout_cache_t *c, const onic_contents_t *from,
                                       onic_layout_t *l);

/** Frees everything. */
ONIC_EXPORT void onic_layout_cache_fini(onic_layout_cache_t *c);
