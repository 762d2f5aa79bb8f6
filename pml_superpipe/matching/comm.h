/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file All communicators of a process. Another process may make a communicator and send in it
 *  before this one has made it. Such messages are parked in the order of arrival until the
 *  communicator is added. Pure; the caller serialises. */
#pragma once

#include <stdint.h>

#include "pml_superpipe/matching/match.h"

/** Matching state of a communicator. Must not move. */
typedef struct superpipe_comm {
    superpipe_match_t match;
    uint64_t context; /**< identifies the communicator in messages */
    uint32_t nranks;  /**< size of the group that is sent to and received from */
} superpipe_comm_t;

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
