/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The communicators of this process by the number that messages carry, their context, and messages
 * for communicators that it does not have yet: another process may make one, and send, before this
 * one has made it. Those are parked in the order of arrival.
 *
 * To add a communicator: superpipe_comms_add, then superpipe_comms_unpark until NULL, each message
 * to be given to superpipe_comm_arrive as if it came now. Newer ones that other threads bring
 * meanwhile wait for their turn there.
 *
 * Pure. The caller has one lock for the table, and holds it from superpipe_comms_find until it has
 * the communicator's own, or until the message is parked.
 */
#ifndef SUPERPIPE_COMMS_H
#define SUPERPIPE_COMMS_H

#include <stdbool.h>
#include <stdint.h>

#include "pml_superpipe/matching/comm.h"

/** Must not move. */
typedef struct superpipe_comms {
    superpipe_rings_t known;
    superpipe_comm_t *found; /**< the last one that was, or NULL */
    superpipe_rings_t parked;
    superpipe_list_t all_parked;
} superpipe_comms_t;

void superpipe_comms_init(superpipe_comms_t *t);

/** Frees the tables. Communicators and parked messages are to be taken out before. */
void superpipe_comms_fini(superpipe_comms_t *t);

/** Looks in the table. */
superpipe_comm_t *superpipe_comms_search(superpipe_comms_t *t, uint64_t context);

/** NULL where there is none of that context. Most messages are for the same as the one before. */
static inline superpipe_comm_t *superpipe_comms_find(superpipe_comms_t *t, uint64_t context)
{
    if (t->found == NULL || t->found->context != context)
        t->found = superpipe_comms_search(t, context);
    return t->found;
}

/** False, and nothing has changed, where there is one of that context already. */
bool superpipe_comms_add(superpipe_comms_t *t, superpipe_comm_t *comm);

/** Takes out a communicator that was added. What is left in it is not touched. */
void superpipe_comms_remove(superpipe_comms_t *t, superpipe_comm_t *comm);

/** One of the communicators, for NULL, or one that comes after `comm`; NULL where there is none. In
 *  no order, but each once where the table does not change meanwhile. */
superpipe_comm_t *superpipe_comms_next(const superpipe_comms_t *t, const superpipe_comm_t *comm);

/** Keeps a message whose communicator was not found, under the same hold of the lock. */
void superpipe_comms_park(superpipe_comms_t *t, superpipe_message_t *message);

/** Takes out the first message that is parked for that context; NULL where there is none. */
superpipe_message_t *superpipe_comms_unpark(superpipe_comms_t *t, uint64_t context);

/** Takes out a parked message of any context, at the end; NULL where there is none. */
superpipe_message_t *superpipe_comms_discard(superpipe_comms_t *t);

#endif
