/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Matching in one communicator: the messages of a source are matched in the order in which
 *  it has sent them, though they come by several channels that may overtake each other. The sender
 *  numbers them, and one that comes out of order is held. Numbers wrap around in 32 bits. No memory
 *  is spent on a message before superpipe_comm_arrive: most find their receive there.
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

/** Must not move. */
typedef struct superpipe_comm {
    superpipe_match_t match;
    superpipe_list_t held; /**< messages out of order: few, since few channels overtake */
    uint64_t context;      /**< its name in messages */
    uint32_t nranks;       /**< of the group that is sent to and received from */
    uint32_t *sent;        /**< to each rank: the number of the next message */
    uint32_t *expected;    /**< from each rank: the number of the next message */
} superpipe_comm_t;

typedef enum superpipe_arrival {
    SUPERPIPE_MATCHED, /**< there is a receive for it */
    SUPERPIPE_WAITS,   /**< it is to be kept: for a receive, or out of order */
    SUPERPIPE_REFUSED  /**< there is no such rank */
} superpipe_arrival_t;

/** A communicator without messages; `nranks` is the size of its remote group where it has one, else
 *  its own. @return 0, or -1 where memory is exhausted */
int superpipe_comm_init(superpipe_comm_t *c, uint64_t context, uint32_t nranks);

/** Frees what init has allocated. What is left is to be taken out before, by
 *  superpipe_match_abandon and superpipe_comm_discard. */
void superpipe_comm_fini(superpipe_comm_t *c);

/** A message came. Where SUPERPIPE_MATCHED is returned `*receive_p` is its receive, which is taken
 *  out; else nothing has changed. */
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

/** Keeps one of which superpipe_comm_arrive has returned SUPERPIPE_WAITS, under the same lock. */
void superpipe_comm_keep(superpipe_comm_t *c, superpipe_message_t *message);

/** The next message of this source that was held, is expected now and has a receive; NULL where
 *  there is none. Those that find no receive are kept. */
superpipe_message_t *superpipe_comm_next(superpipe_comm_t *c, int32_t source,
                                         superpipe_receive_t **receive_p);

/** Takes out one of the messages that are left, unexpected ones first, then held ones; or NULL. */
superpipe_message_t *superpipe_comm_discard(superpipe_comm_t *c);

/* ---- all communicators ------------------------------------------------------------------------
 *
 * Another process may make a communicator, and send, before this one has made it. Such messages are
 * parked in the order of arrival, and given to superpipe_comm_arrive when it is added. */

/** Zero at first, but for the list; `known` is to be freed when nothing is in it any more. */
typedef struct superpipe_comms {
    superpipe_comm_t **known; /**< by context, which Open MPI gives out from 0 on; NULL: none */
    uint64_t n;               /**< contexts that there is room for */
    superpipe_list_t parked;  /**< messages whose communicator was not found, under the same hold */
} superpipe_comms_t;

/** NULL where there is none of that context. */
static inline superpipe_comm_t *superpipe_comms_find(const superpipe_comms_t *t, uint64_t context)
{
    return context < t->n ? t->known[context] : NULL;
}

/** There must be none of that context yet. @return 0, or -1 where memory is exhausted */
int superpipe_comms_add(superpipe_comms_t *t, superpipe_comm_t *comm);

/** One of the communicators, for NULL, or the next one after `comm`; NULL where there is none. */
superpipe_comm_t *superpipe_comms_next(const superpipe_comms_t *t, const superpipe_comm_t *comm);

/** Takes out the first message that is parked for that context, from *from on, which is the head of
 *  those that are parked at first and then what this has left; NULL where there is none. */
superpipe_message_t *superpipe_comms_unpark(superpipe_comms_t *t, uint64_t context,
                                            superpipe_message_t **from);
