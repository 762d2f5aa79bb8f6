/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Messages that stay with their sender, since it has no credit for them at their receiver, not even
 * for their header.
 *
 * They go, in their order, when there is credit. But a receive must also find a message that stands
 * behind a million which nobody wants yet. So the receiver is told the envelope of each (KEPT),
 * which it need not remember, a few at a time; and it calls for the message where a receive is
 * posted that matches (CALL). Where a receive is posted later, or a probe looks, it asks those
 * senders that have a backlog by what the receive names (WANT). Either way the header goes without
 * credit, and those with it that MPI does not let it overtake: of the same communicator, the user's
 * or the library's own. Whenever a receive and a message of a backlog match, one of the three is
 * under way, or the message is called for.
 *
 * Pure. Peers' values are not trusted. The caller serialises.
 */
#ifndef SUPERPIPE_BACKLOG_H
#define SUPERPIPE_BACKLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A message that is kept. The caller's record; must stay where it is while it is kept. */
typedef struct superpipe_kept {
    struct superpipe_kept *next;
    uint64_t number;  /**< those of a backlog are counted from 1 */
    uint32_t context; /**< the envelope */
    int32_t source;
    int32_t tag;
    bool called; /**< its header may go without credit */
} superpipe_kept_t;

/** All that are kept for one receiver. Zero at first. */
typedef struct superpipe_backlog {
    superpipe_kept_t *head, *tail;
    superpipe_kept_t *untold; /**< the first whose envelope was not told; NULL: none */
    uint64_t number;          /**< of the last one that was added */
    uint64_t ncalled;         /**< of those that are kept, how many are called for */
    unsigned unanswered;      /**< words about them that were not answered yet */
} superpipe_backlog_t;

static inline bool superpipe_backlog_is_empty(const superpipe_backlog_t *b)
{
    return b->head == NULL;
}

/** Adds a message at the end. */
void superpipe_backlog_add(superpipe_backlog_t *b, superpipe_kept_t *k, uint32_t context,
                           int32_t source, int32_t tag);

/** The next one whose envelope is to be told now; NULL where there is none, or the receiver has to
 *  answer first. To be called until NULL when one was added, and when one was answered. */
const superpipe_kept_t *superpipe_backlog_tell(superpipe_backlog_t *b);

/** One of these words was answered: the receiver calls for that number; 0: for none. */
void superpipe_backlog_answered(superpipe_backlog_t *b, uint64_t number);

/** A receive or probe names a communicator, a source and a tag, or wildcards. False where none of
 *  these messages matches; else the first one that does is called for. */
bool superpipe_backlog_wanted(superpipe_backlog_t *b, uint32_t context, int32_t source,
                              int32_t tag);

/** Takes out the first one. To be called while there is credit for it. */
superpipe_kept_t *superpipe_backlog_take(superpipe_backlog_t *b);

/** Takes out the first one that is called for; NULL where there is none. */
superpipe_kept_t *superpipe_backlog_take_called(superpipe_backlog_t *b);

/** What a receiver knows of the backlog of one sender. Zero at first. Words may overtake each
 *  other. */
typedef struct superpipe_heard {
    uint64_t number; /**< highest that it has told of */
    uint64_t gone;   /**< up to this one none is left */
    bool called;     /**< it was ever called or asked for one, and so may send headers unpaid */
    bool probed;     /**< it was asked for a probe, and has not answered */
} superpipe_heard_t;

/** May it have a backlog? */
static inline bool superpipe_heard_backlog(const superpipe_heard_t *h)
{
    return h->number > h->gone;
}

#endif
