/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Matching in one communicator: the messages of a source are matched in the order in which
 *  it has sent them, though they come by several channels, which may overtake each other. The
 * sender numbers messages, and one that comes out of order is held. Numbers are 32 bits and wrap
 * around. A message needs no memory before superpipe_comm_arrive, where most find their receive.
 *
 *      switch (superpipe_comm_arrive(c, source, tag, sequence, &receive)) {
 *      case SUPERPIPE_MATCHED: deliver to `receive`; break;
 *      case SUPERPIPE_WAITS: make a message of it; superpipe_comm_keep(c, message); break;
 *      case SUPERPIPE_REFUSED: the peer is broken
 *      }
 *      while ((message = superpipe_comm_next(c, source, &receive)) != NULL)
 *          deliver `message` to `receive`;
 *
 *  Pure. The caller holds a lock from superpipe_comm_arrive to the last superpipe_comm_next. */
#pragma once

#include <stdint.h>

#include "pml_superpipe/matching/match.h"

/** Matching state of a communicator. Must not move. */
typedef struct superpipe_comm {
    superpipe_match_t match;
    superpipe_list_t held; /**< messages out of order: few, since few channels overtake */
    uint64_t context;      /**< identifies the communicator in messages */
    uint32_t nranks;       /**< size of the group that is sent to and received from */
    uint32_t *sent;        /**< to each rank: the number of the next message */
    uint32_t *expected;    /**< from each rank: the number of the next message */
} superpipe_comm_t;

typedef enum superpipe_arrival {
    SUPERPIPE_MATCHED, /**< there is a receive for it */
    SUPERPIPE_WAITS,   /**< the message must be kept: it has no receive yet, or is out of order */
    SUPERPIPE_REFUSED  /**< there is no such rank */
} superpipe_arrival_t;

/** Initialises a communicator without messages; `nranks` is the size of its remote group if it has
 *  one, else of its own. @return 0, or -1 if memory is exhausted */
int superpipe_comm_init(superpipe_comm_t *c, uint64_t context, uint32_t nranks);

/** Frees what init has allocated. Receives and messages must have been taken out before, by
 *  superpipe_match_abandon and superpipe_comm_discard. */
void superpipe_comm_fini(superpipe_comm_t *c);

/** A message has come. For SUPERPIPE_MATCHED `*receive_p` is its receive, which is taken out;
 *  otherwise nothing has changed. */
__attribute__((always_inline)) static inline superpipe_arrival_t
superpipe_comm_arrive(superpipe_comm_t *c, int32_t source, int32_t tag, uint32_t sequence,
                      superpipe_receive_t **receive_p)
{
    if ((uint32_t)source >= c->nranks)
        return SUPERPIPE_REFUSED;
    if (sequence != c->expected[source])
        return SUPERPIPE_WAITS;
    *receive_p = superpipe_match_message(&c->match, source, tag);
    if (*receive_p == NULL)
        return SUPERPIPE_WAITS;
    c->expected[source]++;
    return SUPERPIPE_MATCHED;
}

/** Keeps a message for which superpipe_comm_arrive has returned SUPERPIPE_WAITS, under the same
 *  lock. */
void superpipe_comm_keep(superpipe_comm_t *c, superpipe_message_t *message);

/** Returns the next message of this source that was held, is now expected and has a receive; NULL
 *  if there is none. Expected messages without a receive become unexpected messages. */
superpipe_message_t *superpipe_comm_next(superpipe_comm_t *c, int32_t source,
                                         superpipe_receive_t **receive_p);

/** Takes out one of the remaining messages, unexpected ones first, then held ones. NULL if there is
 *  none. */
superpipe_message_t *superpipe_comm_discard(superpipe_comm_t *c);

/* ---- all communicators ------------------------------------------------------------------------
 *
 * Another process may make a communicator and send in it before this one has made it. Such messages
 * are parked in the order of arrival, and passed to superpipe_comm_arrive when the communicator is
 * added. */

/** All communicators. Initially zero, except for the list. The user frees `known` when it is empty.
 */
typedef struct superpipe_comms {
    superpipe_comm_t **known; /**< by context, which Open MPI assigns from 0 on; NULL: none */
    uint64_t n;               /**< size of `known` */
    superpipe_list_t parked;  /**< messages whose communicator was not found; same lock */
} superpipe_comms_t;

/** The communicator with that context; NULL if there is none. */
static inline superpipe_comm_t *superpipe_comms_find(const superpipe_comms_t *t, uint64_t context)
{
    return context < t->n ? t->known[context] : NULL;
}

/** Adds a communicator, whose context must be new. @return 0, or -1 if memory is exhausted */
int superpipe_comms_add(superpipe_comms_t *t, superpipe_comm_t *comm);

/** For NULL the first communicator, else the next one after `comm`; NULL if there is none. */
superpipe_comm_t *superpipe_comms_next(const superpipe_comms_t *t, const superpipe_comm_t *comm);

/** Takes out the first message parked for that context, starting at *from, which is the head of the
 *  parked messages at first and later what the call before has left. NULL if there is none. */
superpipe_message_t *superpipe_comms_unpark(superpipe_comms_t *t, uint64_t context,
                                            superpipe_message_t **from);
