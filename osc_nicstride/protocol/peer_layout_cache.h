/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The layout cache: lists of blocks that a target keeps for its origins.
 *
 *  An origin that uses a list again, which has a number then (layout.h), sends it to the target in
 *  messages of its own, and operations name it by its number from then on. All lists of one origin
 *  at one target of a window have a bounded number of runs; what finds no room there goes with the
 *  data each time.
 *
 *  A number is never unknown where it is used: messages between two processes keep their order, and
 *  the target keeps a list until the origin sends another one for the same entry. If the target has
 *  no memory for a list, operations that name it fail. Pure; transport lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/layout/layout.h"
#include "osc_nicstride/protocol/message.h"

/** The number of lists that one origin has at one target of a window; the entry of a list is its
 *  number modulo this. */
#define NICSTRIDE_LAYOUT_CACHE_ENTRIES 32
/** Lists with fewer runs travel with each message; these have some 200 bytes. */
#define NICSTRIDE_LAYOUT_CACHE_RUNS 64
/** The most runs of all these lists, which take up 2.6 MB. */
#define NICSTRIDE_LAYOUT_CACHE_MOST 65536

/* ---- at the origin --------------------------------------------------------------------------- */

/** The lists that one target of a window was sent. Zero-initialise. */
typedef struct nicstride_sent_layouts {
    uint64_t nruns; /**< of those that the target keeps */
    struct nicstride_sent_layout {
        uint64_t list; /**< its number; 0: free */
        uint32_t nruns;
    } entry[NICSTRIDE_LAYOUT_CACHE_ENTRIES];
} nicstride_sent_layouts_t;

/** True if the list must be sent, which is noted: instead of the one that had its entry. False if
 *  that happened before, or there is no room for it. */
bool nicstride_layout_send(nicstride_sent_layouts_t *s, uint64_t list, uint32_t nruns);

/** True if the target has the list. */
bool nicstride_layout_is_sent(const nicstride_sent_layouts_t *s, uint64_t list);

/* ---- at the target --------------------------------------------------------------------------- */

/** What is cached for one origin of a window. Zero-initialise. */
typedef struct nicstride_layout_cache {
    struct nicstride_cached_layout {
        uint64_t list;        /**< its number */
        onic_layout_t layout; /**< at offset 0, without levels; empty: there is none */
    } entry[NICSTRIDE_LAYOUT_CACHE_ENTRIES];
    onic_runs_t runs; /**< of a list of which a part has arrived */
    bool broken;      /**< that list */
} nicstride_layout_cache_t;

/** Handles a slice of a list, which is cached with the last one. */
void nicstride_layout_slice(nicstride_layout_cache_t *k, const nicstride_msg_t *msg,
                            const void *layout);

/** The list that a message with NICSTRIDE_MSG_CACHED names; NULL if there is none, because there
 *  was no memory for it, or the origin is broken. */
const onic_layout_t *nicstride_layout_cached(const nicstride_layout_cache_t *k, const void *layout);

/** Frees everything of an origin that leaves. */
void nicstride_layouts_leave(nicstride_layout_cache_t *k);
