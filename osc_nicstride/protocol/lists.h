/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Lists of blocks that a process keeps for others, who name them (names.h). The bytes that
 *  they take up are bounded: a list for which there is no room is refused, and comes again later.
 *  Lists of different origins with the same blocks are one. Pure; wire lock. */
#ifndef NICSTRIDE_LISTS_H
#define NICSTRIDE_LISTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/layout/layout.h"
#include "osc_nicstride/protocol/message.h"
#include "osc_nicstride/protocol/names.h"

/** Most of them. */
#define NICSTRIDE_LISTS_MAX 1024

/** A list that is kept. */
typedef struct nicstride_list {
    struct nicstride_list *next;
    struct nicstride_named *names;
    unsigned held; /**< times that it is held beside */
    uint64_t hash;
    size_t bytes;
    onic_layout_t layout; /**< at offset 0, without levels */
} nicstride_list_t;

/** One name of a list. */
typedef struct nicstride_named {
    nicstride_list_t *list; /**< NULL: there is none of this slot */
    struct nicstride_named *next;
    nicstride_name_t name;
} nicstride_named_t;

/** What is kept for one origin of a window. Zero-initialise it. */
typedef struct nicstride_listed {
    nicstride_named_t slot[NICSTRIDE_NAMES];
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
    unsigned n;
    nicstride_list_t *first;
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

#endif
