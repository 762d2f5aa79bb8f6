/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Posted receives and unexpected messages of a process. A receive names a communicator by
 *  its context, a source and a tag, or a wildcard in place of either or both. A message takes the
 *  receive that was posted first, a receive the message that came first.
 *
 *  Receives without wildcards, and messages, wait in lists by a hash of all three, so that very
 *  many may wait. Receives with wildcards wait in lists by context, and look at all messages of the
 *  communicator in the order of arrival: programs have few of them at a time. A message may come
 *  before this process has made the communicator; it waits like others.
 *
 *  Receives and messages are structures of the caller's, so nothing can fail. Pure; the caller
 *  serialises. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/** MPI_ANY_SOURCE and MPI_ANY_TAG. */
#define SUPERPIPE_ANY_SOURCE (-1)
/** Matches tags from 0 on. Negative tags belong to collectives and other messages internal to MPI.
 */
#define SUPERPIPE_ANY_TAG (-1)

/** Lists by hash, and lists by context. */
#define SUPERPIPE_KEY_BITS      10
#define SUPERPIPE_KEY_LISTS     (1 << SUPERPIPE_KEY_BITS)
#define SUPERPIPE_CONTEXT_LISTS 64

typedef TAILQ_HEAD(superpipe_receives, superpipe_receive) superpipe_receives_t;
typedef TAILQ_HEAD(superpipe_messages, superpipe_message) superpipe_messages_t;

/** A receive. Initially zero; must not move while it is posted. */
typedef struct superpipe_receive {
    superpipe_receives_t *list; /**< where it waits; NULL: it is not posted */
    TAILQ_ENTRY(superpipe_receive) of_list;
    uint64_t stamp;   /**< order of posting */
    uint32_t context; /**< of its communicator */
    int32_t source;   /**< rank, or SUPERPIPE_ANY_SOURCE */
    int32_t tag;      /**< a tag, or SUPERPIPE_ANY_TAG */
} superpipe_receive_t;

/** A message that waits for its receive. Must not move. */
typedef struct superpipe_message {
    TAILQ_ENTRY(superpipe_message) of_key, of_context;
    uint32_t context; /**< of its communicator */
    int32_t source;   /**< rank of its sender in the communicator */
    int32_t tag;      /**< any but SUPERPIPE_ANY_TAG */
} superpipe_message_t;

/** Matching state. Must not move. */
typedef struct superpipe_match {
    uint64_t posts;      /**< receives posted so far */
    uint64_t exact;      /**< posted receives without wildcards */
    uint64_t wildcards;  /**< posted receives with wildcards */
    uint64_t unexpected; /**< waiting messages */
    /** By key, then by context. */
    superpipe_receives_t posted[SUPERPIPE_KEY_LISTS + SUPERPIPE_CONTEXT_LISTS];
    superpipe_messages_t by_key[SUPERPIPE_KEY_LISTS];
    superpipe_messages_t by_context[SUPERPIPE_CONTEXT_LISTS];
} superpipe_match_t;

void superpipe_match_init(superpipe_match_t *m);

/** The messages of a communicator, and perhaps of others, in the order of arrival. */
static inline superpipe_messages_t *superpipe_match_arrived(superpipe_match_t *m, uint32_t context)
{
    return &m->by_context[context % SUPERPIPE_CONTEXT_LISTS];
}

/* ---- receives -------------------------------------------------------------------------------- */

/** Posts a receive from `source` with `tag`, or wildcards. If messages match, returns the first to
 *  have arrived, which is taken out, and does not post the receive; else returns NULL. */
superpipe_message_t *superpipe_match_post(superpipe_match_t *m, superpipe_receive_t *receive,
                                          uint32_t context, int32_t source, int32_t tag);

/** Takes out a receive. False if it is not posted, or not any more. */
bool superpipe_match_cancel(superpipe_match_t *m, superpipe_receive_t *receive);

/** Instead of a source: all receives. */
#define SUPERPIPE_ALL_RECEIVES INT32_MIN

/** Takes out one receive posted for this source, a rank or SUPERPIPE_ANY_SOURCE, or any receive of
 *  the communicator for SUPERPIPE_ALL_RECEIVES; NULL if there is none. `*cursor` is 0 at first.
 *  Call it until it returns NULL, and post nothing meanwhile. */
superpipe_receive_t *superpipe_match_abandon(superpipe_match_t *m, uint32_t context, int32_t source,
                                             size_t *cursor);

/* ---- messages -------------------------------------------------------------------------------- */

/** The next message of `source` has `tag`: takes out the first posted receive that matches; NULL if
 *  there is none. */
superpipe_receive_t *superpipe_match_message(superpipe_match_t *m, uint32_t context, int32_t source,
                                             int32_t tag);

/** Keeps a message that found no receive, for later receives. */
void superpipe_match_keep(superpipe_match_t *m, superpipe_message_t *message);

/** Returns the message that such a receive would get now, without taking it out; NULL if there is
 *  none. */
superpipe_message_t *superpipe_match_probe(superpipe_match_t *m, uint32_t context, int32_t source,
                                           int32_t tag);

/** Takes out a message: it is received without matching, or dropped. */
void superpipe_match_take(superpipe_match_t *m, superpipe_message_t *message);
