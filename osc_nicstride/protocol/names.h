/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Names of lists of blocks at a target, as the origin sees them. A long list that is used
 *  again crosses the wire once, in pieces: the first, and when that is answered some at a time;
 *  operations send their slices meanwhile. When the target says that it has the list, operations
 *  name it.
 *
 *  A name is never unknown where it is used: messages between two processes keep their order, and
 *  the target keeps a list until the origin gives its slot to another one. A target that has no
 *  room says so at the first piece.
 *
 *  The second use of a list begins that. Each time that it was in vain twice as many uses come
 *  before the next. One such table is for one target of one window. Pure; wire lock. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/layout/layout.h"
#include "osc_nicstride/protocol/message.h"

/** Names that one origin has at one target of a window. */
#define NICSTRIDE_NAMES 32
/** Shorter lists travel with each message: these are some 200 bytes. */
#define NICSTRIDE_NAMED_RUNS 64

/** Pieces that are under way at a time: a list of a million blocks has some 250. */
#define NICSTRIDE_PIECES 64

/** A name, as it travels. `number` is another one for each definition. */
typedef struct nicstride_name {
    uint32_t slot;
    uint32_t number;
} nicstride_name_t;

/** What the target says of a name. */
typedef enum nicstride_answer {
    NICSTRIDE_LIST_ON,  /**< the next piece, please */
    NICSTRIDE_LIST_HAD, /**< may be used */
    NICSTRIDE_LIST_NO   /**< will not be had */
} nicstride_answer_t;

typedef enum nicstride_name_state {
    NICSTRIDE_NAME_NONE, /**< nothing under way */
    NICSTRIDE_NAME_SENT, /**< the list is on its way */
    NICSTRIDE_NAME_KNOWN
} nicstride_name_state_t;

typedef struct nicstride_names_slot {
    nicstride_name_state_t state;
    uint64_t list; /**< its number (layout.h); 0: free */
    uint64_t last; /**< turn of its last use */
    uint32_t uses; /**< in its state */
    uint32_t lost; /**< definitions in vain, one after another */
    nicstride_name_t name;
} nicstride_names_slot_t;

/** Zero-initialise it. */
typedef struct nicstride_names {
    uint32_t numbers; /**< of definitions begun */
    uint64_t turn;    /**< of uses */
    nicstride_names_slot_t slot[NICSTRIDE_NAMES];
    bool sending;
    uint32_t sent;        /**< slot whose list is on its way */
    unsigned ahead;       /**< pieces that are not answered */
    onic_layout_t list;   /**< it, while `sending` */
    onic_cursor_t cursor; /**< what of it is still to be sent */
} nicstride_names_t;

/** A transfer uses the layout, whose list has a number. True where the list is to be sent: then
 *  nicstride_names_piece gives the first piece. */
bool nicstride_names_use(nicstride_names_t *n, const onic_layout_t *l);

/** The name of the layout's list, if it may be used now. */
bool nicstride_names_find(nicstride_names_t *n, const onic_layout_t *l, nicstride_name_t *name);

/** May the name still be used? */
bool nicstride_names_valid(const nicstride_names_t *n, const nicstride_name_t *name);

/** May the next piece be sent? Not before the first one is answered. */
bool nicstride_names_may_send(const nicstride_names_t *n);

/** Makes the next piece of the list on its way: a message, but for what nicstride_msg_init sets,
 * and the layout behind it, in `cap` >= 64 bytes. False where there is none. */
bool nicstride_names_piece(nicstride_names_t *n, nicstride_msg_t *msg, unsigned char *layout,
                           size_t cap);

/** The target says something, anything, of a name. Next pieces: while nicstride_names_may_send. */
void nicstride_names_answer(nicstride_names_t *n, const nicstride_msg_t *answer);

/** Frees what it holds: nothing is on its way any more. */
void nicstride_names_fini(nicstride_names_t *n);

/** Writes the name and what is around the list; returns the bytes. */
size_t nicstride_name_encode(const nicstride_name_t *name, const onic_layout_t *l,
                             unsigned char buf[ONIC_LAYOUT_ENCODED_MAX]);

/** The name at the begin of a layout of a message with NICSTRIDE_MSG_NAMED. */
nicstride_name_t nicstride_name_decode(const void *layout);

/* ---- at the target ------------------------------------------------------------------------------
 *
 * Lists of blocks that a process keeps for others, who name them. The bytes that they take up
 * are bounded: a list for which there is no room is refused, and comes again later. Pure; wire
 * lock. */

/** A list that is kept. */
typedef struct nicstride_list {
    unsigned held; /**< by its name, and by messages that wait */
    size_t bytes;
    onic_layout_t layout; /**< at offset 0, without levels */
} nicstride_list_t;

/** What is kept for one origin of a window. Zero-initialise it. */
typedef struct nicstride_listed {
    struct {
        nicstride_list_t *list; /**< NULL: there is none */
        uint32_t number;
    } slot[NICSTRIDE_NAMES];
    bool coming; /**< a list is on its way: */
    nicstride_name_t name;
    uint64_t size;    /**< its bytes of data */
    uint64_t here;    /**< those of what has come */
    size_t nruns;     /**< its runs, at most */
    onic_runs_t runs; /**< what has come */
} nicstride_listed_t;

/** All of a process. Zero-initialise it, but for `limit`. */
typedef struct nicstride_lists {
    size_t limit; /**< bytes */
    size_t bytes; /**< taken up, or kept free for what is on its way */
} nicstride_lists_t;

/** A piece of a list came; nothing that it says is believed. Returns what is to be answered. */
nicstride_answer_t nicstride_lists_piece(nicstride_lists_t *all, nicstride_listed_t *of,
                                         const nicstride_msg_t *msg, const void *layout);

/** The list of that name; NULL where there is none, as only a broken origin says. */
nicstride_list_t *nicstride_lists_find(const nicstride_listed_t *of, const nicstride_name_t *name);

/** A message that waits holds its list, whatever becomes of the name. */
void nicstride_lists_hold(nicstride_list_t *list);
void nicstride_lists_release(nicstride_lists_t *all, nicstride_list_t *list);

/** The origin goes, with its names. */
void nicstride_lists_leave(nicstride_lists_t *all, nicstride_listed_t *of);
