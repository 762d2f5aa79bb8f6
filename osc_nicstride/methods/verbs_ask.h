/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file When an origin asks a target for keys once more, because method nic needs a connection and
 *  has none. A question for the keys of a window carries this side's end of a connection, the
 * answer the other one's; all windows share the connection. It may go at any time, to make room for
 * others. So a window can have keys and no connection: then its keys are given up and asked for
 * again.
 *
 *  Nobody waits for any of this: what cannot go by the method goes by message meanwhile. Pure. */
#pragma once

#include <stdbool.h>

typedef enum nicstride_connection {
    NICSTRIDE_UNCONNECTED = 0,
    NICSTRIDE_OFFERED, /**< this side's end is made, and went with a question */
    NICSTRIDE_CONNECTED
} nicstride_connection_t;

/** A window whose transfer finds no key, or no connection. */
typedef struct nicstride_asking {
    nicstride_connection_t connection;
    bool given_up; /**< there will be none to that process */
    bool had;      /**< offered: the window with whose question last is there, and not refused */
    bool any;      /**< a question of any window to that process is not answered yet, */
    bool asked;    /**< one of this window */
    bool refused;  /**< the target has no more keys for this window */
    bool busy;     /**< something is under way there by keys of this window */
} nicstride_asking_t;

typedef enum nicstride_ask {
    NICSTRIDE_ASK_NOTHING,
    NICSTRIDE_ASK_LEAVE,   /**< the end that was offered is taken back: no answer took it */
    NICSTRIDE_ASK_GIVE_UP, /**< likewise, and the process is not asked any more */
    NICSTRIDE_ASK_ANEW     /**< the window's keys are given up, and asked for with a new end */
} nicstride_ask_t;

/** What is to be done. An offer that the target has passed over, though it gave other keys, means
 *  that it has no connections; where it gave no keys the window has none, and that says nothing of
 *  others. */
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
