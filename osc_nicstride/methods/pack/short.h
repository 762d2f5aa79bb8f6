/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Short contiguous operations by message, which are the most frequent. A lone one is a
 *  message. Puts and gets that follow while something is under way form a vector
 *  (protocol/vector.h), which waits together with other short messages (send.h) and grows until
 *  another message is behind it. A vector counts as one message; several gets have one reply. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "osc_nicstride/window/peer.h"

/** A short operation, whose type is the same on both sides. */
typedef struct nicstride_short {
    nicstride_msg_type_t type; /**< PUT, GET, ACC, GET_ACC or CAS */
    uint16_t op, dtype;        /**< of accumulates */
    uint64_t at;      /**< offset into the target's window, or an address if that is dynamic */
    size_t bytes;     /**< bytes of the target: 1 .. nicstride_inline_max(false) */
    const char *data; /**< the origin's data; CAS: the compare value; NULL: no data is sent */
    const char *swap; /**< CAS: the new value */
    char *result;     /**< where returned data goes; NULL: nothing is returned */
} nicstride_short_t;

/** Starts a short operation. Afterwards it is locally complete, or will be when its result arrives.
 *  False, and nothing was done, if something must be sent before it: then it must be started like
 *  any other operation. MPI threads, no lock held. */
bool nicstride_short_start(nicstride_peer_t *p, const nicstride_short_t *s);
