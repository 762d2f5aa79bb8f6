/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Short contiguous operations by message, the most frequent of all. One by itself is a
 *  message; puts and gets that follow while something is under way become a vector
 *  (protocol/vector.h), which waits with what else does (send.h) and becomes longer until another
 *  message stands behind it. A vector counts as one message; several gets have one reply. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "osc_nicstride/window/module.h"

/** Such an operation, of types that are the same on both sides. */
typedef struct nicstride_short {
    nicstride_msg_type_t type; /**< PUT, GET, ACC, GET_ACC or CAS */
    uint16_t op, dtype;        /**< of updates */
    uint64_t at;               /**< in the target's window, or an address where that is dynamic */
    size_t bytes;              /**< of the target: 1 .. nicstride_inline_max(false) */
    const char *data;          /**< of the origin; CAS: the compare value; NULL: none is sent */
    const char *swap;          /**< CAS: the new value */
    char *result;              /**< where what comes back goes; NULL: nothing does */
} nicstride_short_t;

/** Its way (protocol/order.h). */
static inline unsigned nicstride_short_way(const nicstride_short_t *s)
{
    return s->type == NICSTRIDE_MSG_PUT ? NICSTRIDE_WAY_COMES : NICSTRIDE_WAY_TURN;
}

/** Starts one. It is locally complete then, or when its result is there. False, and nothing was
 *  done, where something stands before it: start it as any other. MPI threads, no lock held. */
bool nicstride_short_start(nicstride_peer_t *p, const nicstride_short_t *s);
