/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A cache of layouts that were made from long contents, with these contents. A layout is
 * found by comparing contents in full: their 64-bit fingerprint only says where to look. Contents
 * that occur only once are not kept. Others take the place of what has the same entry; where there
 * is no room everything goes. Pure; one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/layout/layout.h"

#define ONIC_LAYOUT_CACHE_ENTRIES 256

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
    struct {
        uint64_t seen; /**< the fingerprint of the last contents that were not found */
        struct onic_cached_layout *kept;
    } entry[ONIC_LAYOUT_CACHE_ENTRIES];
    uint64_t numbers;        /**< numbers given to lists so far */
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
