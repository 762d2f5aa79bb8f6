/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The layout cache: lists of blocks that a target keeps for its origins.
 *
 *  The second operation with a long list gives it a number, its id: its slices, which travel
 *  in any case, carry that id, and the target puts them together. Later operations send the id.
 *  A target that has no room says so; each time that this happens, twice as many uses pass before
 *  the next attempt.
 *
 *  An id is never unknown where it is used: messages between two processes keep their order, the
 *  target says when it has the list, and keeps it until the origin gives its entry to another one.
 *  Pure; transport lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/layout/layout.h"
#include "osc_nicstride/protocol/message.h"

/** Lists that one origin has at one target of a window. */
#define NICSTRIDE_LAYOUT_CACHE_ENTRIES 32
/** Shorter lists travel with each message: these are some 200 bytes. */
#define NICSTRIDE_LAYOUT_CACHE_RUNS 64

/** What stands before the layout of a message with NICSTRIDE_MSG_CACHED. */
typedef struct nicstride_layout_id {
    uint32_t number; /**< never 0; modulo NICSTRIDE_LAYOUT_CACHE_ENTRIES its entry */
    uint32_t last;   /**< of a slice: 1 where the list ends with it, else 0 */
} nicstride_layout_id_t;

_Static_assert(sizeof(nicstride_layout_id_t) == NICSTRIDE_LAYOUT_ID_BYTES, "as it travels");

/* ---- at the origin --------------------------------------------------------------------------- */

typedef enum nicstride_sent_state {
    NICSTRIDE_LAYOUT_UNSENT,
    NICSTRIDE_LAYOUT_SENT, /**< an operation sends it, or the target has not answered */
    NICSTRIDE_LAYOUT_KNOWN
} nicstride_sent_state_t;

/** What one target of a window was sent. Zero-initialise it. */
typedef struct nicstride_sent_layouts {
    uint32_t ids; /**< given so far */
    struct nicstride_sent_layout {
        uint64_t list; /**< its number (layout.h); 0: free */
        nicstride_sent_state_t state;
        uint32_t id;
        uint32_t uses; /**< since the last attempt */
        uint32_t lost; /**< attempts in vain, one after another */
    } entry[NICSTRIDE_LAYOUT_CACHE_ENTRIES];
} nicstride_sent_layouts_t;

/** True if the next use is the one that gives the list an id. */
bool nicstride_layout_is_due(const nicstride_sent_layouts_t *s, uint64_t list);

/** An operation with that list is started. Returns the id that its slices are to carry; 0: none.
 *  A list that had the entry before loses its id. */
uint32_t nicstride_layout_used(nicstride_sent_layouts_t *s, uint64_t list);

/** The id under which the target has the list; 0 where it does not. */
uint32_t nicstride_layout_find(const nicstride_sent_layouts_t *s, uint64_t list);

/** True if this is the id of a list in that state. */
bool nicstride_layout_is(const nicstride_sent_layouts_t *s, uint32_t id,
                         nicstride_sent_state_t state);

/** The target says whether it has the list. Answers for ids that are not used any more have no
 *  effect. */
void nicstride_layout_answered(nicstride_sent_layouts_t *s, uint32_t id, bool had);

/* ---- at the target --------------------------------------------------------------------------- */

/** A list that is kept. */
typedef struct nicstride_cached_layout {
    unsigned held; /**< by its id, and by messages that wait */
    uint32_t id;
    size_t bytes;
    onic_layout_t layout; /**< at offset 0, without levels */
} nicstride_cached_layout_t;

/** What is kept for one origin of a window. Zero-initialise it. */
typedef struct nicstride_layout_cache {
    nicstride_cached_layout_t *entry[NICSTRIDE_LAYOUT_CACHE_ENTRIES]; /**< NULL: there is none */
    uint32_t coming; /**< id of a list on its way; 0: none */
    uint64_t here;   /**< data bytes of what has come */
    size_t bytes;    /**< that it takes up */
    onic_runs_t runs;
} nicstride_layout_cache_t;

/** Bytes of all that a process keeps. Zero-initialise it, but for `limit`. */
typedef struct nicstride_layout_room {
    size_t limit;
    size_t bytes;
} nicstride_layout_room_t;

/** What the origin is to be told. */
typedef enum nicstride_layout_answer {
    NICSTRIDE_LAYOUT_MORE, /**< nothing yet, or nothing more */
    NICSTRIDE_LAYOUT_HAD,
    NICSTRIDE_LAYOUT_REFUSED
} nicstride_layout_answer_t;

/** A message with a slice of a list with an id came. */
nicstride_layout_answer_t nicstride_layout_slice(nicstride_layout_room_t *room,
                                                 nicstride_layout_cache_t *k,
                                                 const nicstride_msg_t *msg, const void *layout);

/** The list that a message with NICSTRIDE_MSG_CACHED and no slice means; NULL where there is none,
 *  as only a broken origin says. */
nicstride_cached_layout_t *nicstride_layout_cached(const nicstride_layout_cache_t *k,
                                                   const void *layout);

/** A message that waits holds its list, whatever becomes of the id. */
void nicstride_layout_hold(nicstride_cached_layout_t *l);
void nicstride_layout_release(nicstride_layout_room_t *room, nicstride_cached_layout_t *l);

/** The origin goes, with its ids. */
void nicstride_layouts_leave(nicstride_layout_room_t *room, nicstride_layout_cache_t *k);
