/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Posted receives and unexpected messages of one communicator. A receive names a source and
 *  a tag, or a wildcard in place of either or both: four classes. Receives of a class with equal
 * source and tag form a ring (rings.h), so a message compares at most four first ones, of which the
 * one posted first wins. Messages of a sender arrive in their order. Messages are indexed by source
 * and tag, and also form one list. Two other indices are made when a wildcard first needs a message
 *  that is not at the head of that list.
 *
 *  Receives and messages are structures of the caller's, so nothing can fail. Pure; the caller
 *  serialises. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "pml_superpipe/matching/rings.h"

/** MPI_ANY_SOURCE and MPI_ANY_TAG. */
#define SUPERPIPE_ANY_SOURCE (-1)
/** Matches tags from 0 on. Negative tags belong to collectives and other messages internal to MPI.
 */
#define SUPERPIPE_ANY_TAG (-1)

/** What a receive or probe specifies. The numbers are used as indices. */
typedef enum superpipe_class {
    SUPERPIPE_EXACT,       /**< source and tag */
    SUPERPIPE_ONE_SOURCE,  /**< any tag */
    SUPERPIPE_ONE_TAG,     /**< any source */
    SUPERPIPE_ANY_MESSAGE, /**< any source and any tag */
    SUPERPIPE_CLASSES
} superpipe_class_t;

/** A receive. Initially zero; must not move while it is posted. */
typedef struct superpipe_receive {
    superpipe_link_t link;
    uint64_t stamp; /**< order of posting */
    int32_t source; /**< rank, or SUPERPIPE_ANY_SOURCE */
    int32_t tag;    /**< a tag, or SUPERPIPE_ANY_TAG */
} superpipe_receive_t;

/** A message that waits for its receive, or for its communicator (comm.h).
 *  The caller fills in the second half and zeroes the first. Must not move. */
typedef struct superpipe_message {
    superpipe_link_t link[SUPERPIPE_ANY_MESSAGE]; /**< in the index of each class except the last */
    TAILQ_ENTRY(superpipe_message) of_list;       /**< in the list of messages that wait alike */

    uint64_t context; /**< of its communicator */
    int32_t source;   /**< rank of its sender in the communicator */
    int32_t tag;      /**< any but SUPERPIPE_ANY_TAG */
} superpipe_message_t;

/** Messages in the order of arrival. */
typedef TAILQ_HEAD(superpipe_list, superpipe_message) superpipe_list_t;

/** Matching state. Must not move. */
typedef struct superpipe_match {
    superpipe_rings_t posted;
    uint64_t posts;                      /**< receives posted so far */
    uint64_t waiting[SUPERPIPE_CLASSES]; /**< posted receives of each class */
    uint64_t wildcards;                  /**< posted receives of all classes but the first */
    superpipe_rings_t unexpected;        /**< the indices */
    superpipe_list_t application;        /**< unexpected messages with tags from 0 on */
    superpipe_list_t internal;           /**< the others */
    uint64_t nunexpected;                /**< number in both lists */
    bool indexed[SUPERPIPE_ANY_MESSAGE]; /**< true if that class is indexed */
} superpipe_match_t;

/** The key of a source and a tag, or wildcards. */
static inline uint64_t superpipe_match_key(int32_t source, int32_t tag)
{
    return (uint64_t)(uint32_t)source << 32 | (uint32_t)tag;
}

static inline superpipe_class_t superpipe_class_of(int32_t source, int32_t tag)
{
    return (superpipe_class_t)((source == SUPERPIPE_ANY_SOURCE ? SUPERPIPE_ONE_TAG : 0) |
                               (tag == SUPERPIPE_ANY_TAG ? SUPERPIPE_ONE_SOURCE : 0));
}

void superpipe_match_init(superpipe_match_t *m);

/** Frees the tables. Receives and messages must have been taken out before. */
void superpipe_match_fini(superpipe_match_t *m);

/* ---- receives -------------------------------------------------------------------------------- */

/** Takes out a posted receive. */
static inline void superpipe_match_withdraw(superpipe_match_t *m, superpipe_receive_t *receive)
{
    const superpipe_class_t class = superpipe_class_of(receive->source, receive->tag);

    m->waiting[class]--;
    m->wildcards -= class != SUPERPIPE_EXACT;
    superpipe_rings_remove(&m->posted, &receive->link);
}

/** Withdraws a receive. False if it is not posted, or not any more. */
bool superpipe_match_cancel(superpipe_match_t *m, superpipe_receive_t *receive);

/** Instead of a source: all receives. */
#define SUPERPIPE_ALL_RECEIVES INT32_MIN

/** Takes out one receive posted for this source, a rank or SUPERPIPE_ANY_SOURCE, or any receive for
 *  SUPERPIPE_ALL_RECEIVES; NULL if there is none. `*cursor` is 0 at first. Call it until it returns
 *  NULL, and post nothing meanwhile. */
superpipe_receive_t *superpipe_match_abandon(superpipe_match_t *m, int32_t source, size_t *cursor);

/* ---- messages -------------------------------------------------------------------------------- */

/** Returns the first posted of `earliest` (which may be NULL) and the matching receives with a
 *  wildcard. */
superpipe_receive_t *superpipe_match_earlier(superpipe_match_t *m, int32_t source, int32_t tag,
                                             superpipe_receive_t *earliest);

/** The next message of `source` has `tag`: takes out the first posted receive that matches; NULL if
 *  there is none. */
static inline superpipe_receive_t *superpipe_match_message(superpipe_match_t *m, int32_t source,
                                                           int32_t tag)
{
    superpipe_receive_t *receive = NULL;

    /* Valid because the link is the first member. */
    if (m->waiting[SUPERPIPE_EXACT] > 0)
        receive = (superpipe_receive_t *)superpipe_rings_first(&m->posted,
                                                               superpipe_match_key(source, tag));
    /* Most programs post no receives with wildcards. */
    if (m->wildcards > 0)
        receive = superpipe_match_earlier(m, source, tag, receive);
    if (receive != NULL)
        superpipe_match_withdraw(m, receive);
    return receive;
}

/** Keeps a message that found no receive, for later receives. */
void superpipe_match_keep(superpipe_match_t *m, superpipe_message_t *message);

/** Returns the message that such a receive would get now, without taking it out; NULL if there is
 *  none. */
superpipe_message_t *superpipe_match_probe(superpipe_match_t *m, int32_t source, int32_t tag);

/** Takes out a message found by a probe: it is received without matching. */
void superpipe_match_take(superpipe_match_t *m, superpipe_message_t *message);

/** Takes out one of the messages; NULL if there is none. */
superpipe_message_t *superpipe_match_discard(superpipe_match_t *m);

/** Posts a receive from `source` with `tag`, or wildcards. If messages match, returns the first to
 *  have arrived, which is taken out, and does not post the receive; else returns NULL. */
static inline superpipe_message_t *superpipe_match_post(superpipe_match_t *m,
                                                        superpipe_receive_t *receive,
                                                        int32_t source, int32_t tag)
{
    superpipe_message_t *message =
        m->nunexpected > 0 ? superpipe_match_probe(m, source, tag) : NULL;

    if (message != NULL) {
        superpipe_match_take(m, message);
        return message;
    }
    receive->source = source;
    receive->tag = tag;
    receive->stamp = m->posts++;
    m->waiting[superpipe_class_of(source, tag)]++;
    m->wildcards += superpipe_class_of(source, tag) != SUPERPIPE_EXACT;
    superpipe_rings_append(&m->posted, &receive->link, superpipe_match_key(source, tag));
    return NULL;
}
