/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The backlog of a sender: messages to one receiver for which there is no credit, not even for
 * their header.
 *
 * They are sent in order when there is credit. But a receive must also find a message that stands
 * behind a million which nobody receives yet. So the sender sends the envelope of each (BACKLOG),
 * which the receiver need not remember, a few at a time; the receiver pulls the message where a
 * receive is posted that matches (PULL). Where a receive is posted later, or a probe is made, the
 * receiver asks the senders that have a backlog for what it names (QUERY). Either way the header is
 * sent without credit, and before it those that it must not overtake: of the same communicator, the
 * user's or the library's own. Whenever a receive and a message of a backlog match, one of the
 * three is under way, or the message has been pulled.
 *
 * Pure. Peers' values are not trusted. The caller serialises.
 */
#ifndef SUPERPIPE_BACKLOG_H
#define SUPERPIPE_BACKLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A message in a backlog. The caller's record; must stay where it is meanwhile. */
typedef struct superpipe_entry {
    struct superpipe_entry *next;
    uint64_t number;  /**< those of a backlog are counted from 1 */
    uint32_t context; /**< the envelope */
    int32_t source;
    int32_t tag;
    bool pulled; /**< its header may be sent without credit */
} superpipe_entry_t;

/** All for one receiver. Zero at first. */
typedef struct superpipe_backlog {
    superpipe_entry_t *head, *tail;
    superpipe_entry_t *unsent; /**< the first whose envelope was not sent; NULL: none */
    uint64_t number;           /**< of the last one that was added */
    uint64_t npulled;          /**< entries that are pulled */
    unsigned unanswered;       /**< envelopes that were not answered yet */
} superpipe_backlog_t;

static inline bool superpipe_backlog_is_empty(const superpipe_backlog_t *b)
{
    return b->head == NULL;
}

/** Adds a message at the end. */
void superpipe_backlog_add(superpipe_backlog_t *b, superpipe_entry_t *k, uint32_t context,
                           int32_t source, int32_t tag);

/** The next one whose envelope is to be sent now; NULL where there is none, or the receiver has to
 *  answer first. To be called until NULL when one was added, and when one was answered. */
const superpipe_entry_t *superpipe_backlog_announce(superpipe_backlog_t *b);

/** An envelope was answered: the receiver pulls the message of that number; 0: none. */
void superpipe_backlog_answered(superpipe_backlog_t *b, uint64_t number);

/** A receive or probe names a communicator, a source and a tag, or wildcards. False where none of
 *  these messages matches; else the first one that does is pulled. */
bool superpipe_backlog_query(superpipe_backlog_t *b, uint32_t context, int32_t source, int32_t tag);

/** Takes out the first one. To be called while there is credit for it. */
superpipe_entry_t *superpipe_backlog_take(superpipe_backlog_t *b);

/** Takes out the first one that is pulled; NULL where there is none. */
superpipe_entry_t *superpipe_backlog_take_pulled(superpipe_backlog_t *b);

/** What a receiver knows of the backlog of one sender. Zero at first. Messages about it may
 * overtake each other. */
typedef struct superpipe_remote {
    uint64_t number;  /**< the highest that was seen */
    uint64_t emptied; /**< up to this one none is left */
    bool pulled;      /**< one was ever pulled or asked for: headers without credit may come */
    bool probed;      /**< a probe asked, and was not answered yet */
} superpipe_remote_t;

/** May it hold a message? */
static inline bool superpipe_remote_may_hold(const superpipe_remote_t *r)
{
    return r->number > r->emptied;
}

#endif
