/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A cache of layouts that were made of something long, beside what they were made of. They
 *  are found by those contents, compared in full: a number of 64 bits made of them only says where
 *  to look. What comes once only is not kept. The bytes are bounded, and the least recently used
 *  goes first. Pure; one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "common/layout/layout.h"

#define ONIC_LAYOUT_CACHE_BUCKETS 256
/** Most of them, so that a bucket has few. */
#define ONIC_LAYOUT_CACHE_MAX 1024
/** So many that came once are remembered. */
#define ONIC_LAYOUT_CACHE_SEEN 64

/** What a layout is made of. */
typedef struct onic_contents {
    const void *bytes;
    size_t len;
    uint64_t print; /**< made of the contents: equal ones have equal ones */
    /** True if these are the same. They have equal lengths and fingerprints. */
    bool (*same)(const void *a, const void *b, size_t len);
} onic_contents_t;

/** Zero-initialise it, but for `limit`. */
typedef struct onic_layout_cache {
    size_t limit; /**< most bytes; 0: nothing is kept */
    size_t bytes; /**< that are taken up */
    unsigned n;   /**< layouts */
    TAILQ_HEAD(onic_cached_by_use, onic_cached_layout) by_use;
    LIST_HEAD(, onic_cached_layout) bucket[ONIC_LAYOUT_CACHE_BUCKETS];
    uint64_t numbers;                      /**< given to lists so far */
    uint64_t seen[ONIC_LAYOUT_CACHE_SEEN]; /**< prints of what came last, in turn */
    unsigned turn;
    unsigned long long hits; /**< how often one was found */
} onic_layout_cache_t;

/** Makes `l` the layout that was made of these contents. False where it is not kept. */
ONIC_EXPORT bool onic_layout_cache_find(onic_layout_cache_t *c, const onic_contents_t *from,
                                        onic_layout_t *l);

/** A layout was made, which onic_layout_cache_find did not have: keeps it, and a copy of the
 * contents, where they come for the second time and the limit allows. A list gets a number then. */
ONIC_EXPORT void onic_layout_cache_add(onic_layout_cache_t *c, const onic_contents_t *from,
                                       onic_layout_t *l);

/** Frees all. */
ONIC_EXPORT void onic_layout_cache_fini(onic_layout_cache_t *c);
