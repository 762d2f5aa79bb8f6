/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The layout cache: lists of blocks that a target keeps for its origins.
 *
 *  An origin that uses a list repeatedly, which has a number then (layout.h), sends it to the
 * target in messages of its own, with an id, and the target says whether it has it. From then on
 *  operations name the list by its id. A target without room refuses; then the list goes with the
 *  data each time.
 *
 *  An id is never unknown where it is used: messages between two processes keep their order, each
 *  time that a list is sent it gets another id, and the target keeps it until the origin sends
 *  another one for the same entry. Pure; transport lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/layout/layout.h"
#include "osc_nicstride/protocol/message.h"

/** The number of lists that one origin has at one target of a window; the entry of a list is its
 *  number, and its id, modulo this. */
#define NICSTRIDE_LAYOUT_CACHE_ENTRIES 32
/** Lists with fewer runs travel with each message; these have some 200 bytes. So do lists with more
 *  than MOST. */
#define NICSTRIDE_LAYOUT_CACHE_RUNS 64
#define NICSTRIDE_LAYOUT_CACHE_MOST 65536

/* ---- at the origin --------------------------------------------------------------------------- */

/** The lists that one target of a window was sent. Zero-initialise. */
typedef struct nicstride_sent_layouts {
    uint64_t sent; /**< how many so far */
    struct nicstride_sent_layout {
        uint64_t list; /**< its number; 0: free */
        uint64_t id;
        bool known; /**< the target has it */
    } entry[NICSTRIDE_LAYOUT_CACHE_ENTRIES];
} nicstride_sent_layouts_t;

/** Notes that the list is about to be sent, instead of the one that had its entry. Returns its id;
 * 0 if that happened before. */
uint64_t nicstride_layout_send(nicstride_sent_layouts_t *s, uint64_t list);

/** The id of the list if the target has it, else 0. */
uint64_t nicstride_layout_id(const nicstride_sent_layouts_t *s, uint64_t list);

/** Notes the target's answer, whether it has the list. Answers for ids that are no longer used have
 *  no effect. */
void nicstride_layout_answered(nicstride_sent_layouts_t *s, uint64_t id, bool had);

/* ---- at the target --------------------------------------------------------------------------- */

/** A cached list. */
typedef struct nicstride_cached_layout {
    uint64_t id;
    onic_layout_t layout; /**< at offset 0, without levels */
} nicstride_cached_layout_t;

/** What is cached for one origin of a window. Zero-initialise. */
typedef struct nicstride_layout_cache {
    nicstride_cached_layout_t *entry[NICSTRIDE_LAYOUT_CACHE_ENTRIES]; /**< NULL: there is none */
    uint64_t here; /**< data bytes described by the part of a list that has arrived */
    onic_runs_t runs;
    bool refused; /**< that list */
} nicstride_layout_cache_t;

/** Bytes of everything that a process caches. Zero-initialise, except `limit`. */
typedef struct nicstride_layout_room {
    size_t limit;
    size_t bytes;
} nicstride_layout_room_t;

/** Handles a slice of a list. With the last one `*had_p` says whether the list is cached. */
void nicstride_layout_slice(nicstride_layout_room_t *room, nicstride_layout_cache_t *k,
                            const nicstride_msg_t *msg, const void *layout, bool *had_p);

/** The list that a message with NICSTRIDE_MSG_CACHED names; NULL if there is none, which only a
 *  broken origin causes. */
nicstride_cached_layout_t *nicstride_layout_cached(const nicstride_layout_cache_t *k,
                                                   const void *layout);

/** Frees everything of an origin that leaves. */
void nicstride_layouts_leave(nicstride_layout_room_t *room, nicstride_layout_cache_t *k);
