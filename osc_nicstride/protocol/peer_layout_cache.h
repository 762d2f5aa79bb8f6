/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The layout cache: lists of blocks that a target keeps for its origins.
 *
 *  The second operation with a long list gives the list a number, its id. The list's slices, which
 *  must travel anyway, carry that id, and the target puts them together. Later operations send only
 *  the id. A target without room says so; each time that happens, twice as many uses pass before
 *  the next attempt.
 *
 *  An id is never unknown where it is used: messages between two processes keep their order, the
 *  target says when it has the list, and it keeps the list until the origin gives the entry to
 *  another one. Pure; transport lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/layout/layout.h"
#include "osc_nicstride/protocol/message.h"

/** The number of lists that one origin has at one target of a window. */
#define NICSTRIDE_LAYOUT_CACHE_ENTRIES 32
/** Lists with fewer runs travel with each message; these have some 200 bytes. */
#define NICSTRIDE_LAYOUT_CACHE_RUNS 64

/** What precedes the layout in a message with NICSTRIDE_MSG_CACHED. */
typedef struct nicstride_layout_id {
    uint32_t number; /**< never 0; its entry is this modulo NICSTRIDE_LAYOUT_CACHE_ENTRIES */
    uint32_t last;   /**< in slices: 1 if the list ends with this one, else 0 */
} nicstride_layout_id_t;

_Static_assert(sizeof(nicstride_layout_id_t) == NICSTRIDE_LAYOUT_ID_BYTES, "as it travels");

/* ---- at the origin --------------------------------------------------------------------------- */

typedef enum nicstride_sent_state {
    NICSTRIDE_LAYOUT_UNSENT,
    NICSTRIDE_LAYOUT_SENT, /**< an operation is sending it, or the target has not answered yet */
    NICSTRIDE_LAYOUT_KNOWN
} nicstride_sent_state_t;

/** The lists that one target of a window was sent. Zero-initialise. */
typedef struct nicstride_sent_layouts {
    uint32_t ids; /**< ids given so far */
    struct nicstride_sent_layout {
        uint64_t list; /**< its number (layout.h); 0: free */
        nicstride_sent_state_t state;
        uint32_t id;
        uint32_t uses; /**< uses since the last attempt */
        uint32_t lost; /**< consecutive failed attempts */
    } entry[NICSTRIDE_LAYOUT_CACHE_ENTRIES];
} nicstride_sent_layouts_t;

/** True if the next use will give the list an id. */
bool nicstride_layout_is_due(const nicstride_sent_layouts_t *s, uint64_t list);

/** Notes that an operation with that list starts. Returns the id that its slices must carry; 0:
 *  none. A list that had the entry before loses its id. */
uint32_t nicstride_layout_used(nicstride_sent_layouts_t *s, uint64_t list);

/** The id under which the target has the list; 0: it does not have it. */
uint32_t nicstride_layout_find(const nicstride_sent_layouts_t *s, uint64_t list);

/** True if this is the id of a list in that state. */
bool nicstride_layout_is(const nicstride_sent_layouts_t *s, uint32_t id,
                         nicstride_sent_state_t state);

/** Notes the target's answer, whether it has the list. Answers for ids that are no longer used have
 *  no effect. */
void nicstride_layout_answered(nicstride_sent_layouts_t *s, uint32_t id, bool had);

/* ---- at the target --------------------------------------------------------------------------- */

/** A cached list. */
typedef struct nicstride_cached_layout {
    uint32_t id;
    size_t bytes;
    onic_layout_t layout; /**< at offset 0, without levels */
} nicstride_cached_layout_t;

/** What is cached for one origin of a window. Zero-initialise. */
typedef struct nicstride_layout_cache {
    nicstride_cached_layout_t *entry[NICSTRIDE_LAYOUT_CACHE_ENTRIES]; /**< NULL: there is none */
    uint32_t coming; /**< id of a list that is arriving; 0: none */
    uint64_t here;   /**< data bytes described by the part that has arrived */
    size_t bytes;    /**< bytes that this part takes up */
    onic_runs_t runs;
} nicstride_layout_cache_t;

/** Bytes of everything that a process caches. Zero-initialise, except `limit`. */
typedef struct nicstride_layout_room {
    size_t limit;
    size_t bytes;
} nicstride_layout_room_t;

/** What the origin must be told. */
typedef enum nicstride_layout_answer {
    NICSTRIDE_LAYOUT_MORE, /**< nothing, for now or for good */
    NICSTRIDE_LAYOUT_HAD,
    NICSTRIDE_LAYOUT_REFUSED
} nicstride_layout_answer_t;

/** Handles a message with a slice of a list that has an id. */
nicstride_layout_answer_t nicstride_layout_slice(nicstride_layout_room_t *room,
                                                 nicstride_layout_cache_t *k,
                                                 const nicstride_msg_t *msg, const void *layout);

/** The list to which a message with NICSTRIDE_MSG_CACHED and without a slice refers; NULL if there
 *  is none, which only a broken origin causes. */
nicstride_cached_layout_t *nicstride_layout_cached(const nicstride_layout_cache_t *k,
                                                   const void *layout);

/** Frees everything of an origin that leaves. */
void nicstride_layouts_leave(nicstride_layout_room_t *room, nicstride_layout_cache_t *k);
