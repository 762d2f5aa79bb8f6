/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file When an origin asks a target for keys again because method nic needs a connection and has
 *  none. A question for the keys of a window carries this side's end of a connection; the answer
 *  carries the other end. All windows share the connection. It may be closed at any time to make
 *  room for others. So a window can have keys without a connection: then its keys are dropped and
 *  asked for again.
 *
 *  Nobody waits for any of this: meanwhile the data goes by message. Pure. */
#pragma once

#include <stdbool.h>

typedef enum nicstride_connection {
    NICSTRIDE_UNCONNECTED = 0,
    NICSTRIDE_OFFERED, /**< this side's end is made and was sent with a question */
    NICSTRIDE_CONNECTED
} nicstride_connection_t;

/** A window whose transfer finds no key, or no connection. */
typedef struct nicstride_asking {
    nicstride_connection_t connection;
    bool given_up; /**< there will be no connection to that process */
    bool had;   /**< offered: the window whose question was last still exists and was not refused */
    bool any;   /**< a question of any window to that process is not answered yet */
    bool asked; /**< a question of this window is not answered yet */
    bool refused; /**< the target has no more keys for this window */
    bool busy;    /**< something is under way that uses keys of this window */
} nicstride_asking_t;

typedef enum nicstride_ask {
    NICSTRIDE_ASK_NOTHING,
    NICSTRIDE_ASK_LEAVE,   /**< the offered end is withdrawn, as no answer took it */
    NICSTRIDE_ASK_GIVE_UP, /**< as above, and the process is not asked again */
    NICSTRIDE_ASK_ANEW     /**< the window's keys are dropped, and asked for with a new end */
} nicstride_ask_t;

/** The action to take. If the target ignored an offer but gave other keys, it has no connections.
 *  If it gave no keys the window has none, which says nothing about other windows. */
static inline nicstride_ask_t nicstride_ask_again(const nicstride_asking_t *a)
{
    if (a->given_up || a->asked)
        return NICSTRIDE_ASK_NOTHING;
    if (a->connection == NICSTRIDE_OFFERED && !a->any)
        return a->had ? NICSTRIDE_ASK_GIVE_UP : NICSTRIDE_ASK_LEAVE;
    if (a->connection == NICSTRIDE_UNCONNECTED && !a->refused && !a->busy)
        return NICSTRIDE_ASK_ANEW;
    return NICSTRIDE_ASK_NOTHING;
}
