/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Reply lines, in which a process on the same node answers a single small operation. A reply
 *  line is a cache line in memory that both processes map, one for each origin and target of a
 *  window.
 *
 *  A message between two processes of a node costs several cache lines and some hundred
 *  instructions on either side. The origin of a small operation waits only for its answer, so the
 *  target leaves that where the origin polls: the number of applied messages and, for an operation
 *  that fetches, a few bytes of data. Only the answer to a message that itself asks for one goes
 *  there. An origin sends no second such message before it knows that the first was answered, so at
 *  most one answer is under way, and nobody writes while the other side reads. All other
 *  acknowledgements are messages: those wake an origin's helper thread, which a word in memory does
 *  not.
 *
 *  This saves a fifth of a get or a compare-and-swap of 8 bytes with its flush, and a third of a
 *  put, an accumulate or a fetch_and_op.
 *
 *  Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "osc_nicstride/protocol/limits.h"

/** All zero: no answer yet. */
typedef struct nicstride_reply_line {
    _Alignas(64) uint64_t applied; /**< as in an acknowledgement (completion.h); written last */
    uint32_t handle;               /**< the operation to which the data belongs; 0: no data */
    uint32_t len;
    unsigned char data[NICSTRIDE_REPLY_LINE_DATA];
} nicstride_reply_line_t;

_Static_assert(sizeof(nicstride_reply_line_t) == 64, "one cache line");

/** The number of reply lines that each process of a window has, with `processes` on its node. */
static inline int nicstride_reply_line_count(int processes)
{
    return processes > 1 && processes <= NICSTRIDE_REPLY_LINE_PROCESSES ? processes : 0;
}

/** True if an answer goes into the reply line; otherwise it is a message. `asked`: the count with
 *  which the message asks for its own acknowledgement; 0: it does not ask. `applied`: what the
 *  answer acknowledges; 0: nothing, as others must be applied first. `len`: bytes of its data. */
static inline bool nicstride_reply_line_takes(uint64_t asked, uint64_t applied, size_t len)
{
    return asked != 0 && applied != 0 && len <= NICSTRIDE_REPLY_LINE_DATA;
}

/** Writes the target's answer. `applied` must be higher than in the last answer. `handle`: that of
 *  the operation, as in short headers; 0 without data. `len`: 0 .. NICSTRIDE_REPLY_LINE_DATA. */
static inline void nicstride_reply_line_answer(nicstride_reply_line_t *s, uint64_t applied,
                                               uint32_t handle, const void *data, size_t len)
{
    if (len == sizeof(uint64_t))
        memcpy(s->data, data, sizeof(uint64_t));
    else if (len > 0)
        memcpy(s->data, data, len);
    s->handle = handle;
    s->len = (uint32_t)len;
    /* The release also orders what the operation did at the target before this. */
    __atomic_store_n(&s->applied, applied, __ATOMIC_RELEASE);
}

/** True if there is an answer that the origin has not taken; `*seen` is the number of the last one
 *  taken, and becomes that of the new one. The rest of the answer may then be read. */
static inline bool nicstride_reply_line_look(const nicstride_reply_line_t *s, uint64_t *seen)
{
    const uint64_t applied = __atomic_load_n(&s->applied, __ATOMIC_ACQUIRE);

    if (applied == *seen)
        return false;
    *seen = applied;
    return true;
}

/** The data of the answer just found: `*len_p` bytes for the operation `*handle_p`. NULL if there
 *  is none, with `*handle_p` 0, or if there is more than a reply line holds. */
static inline const void *nicstride_reply_line_data(const nicstride_reply_line_t *s,
                                                    uint32_t *handle_p, size_t *len_p)
{
    *handle_p = __atomic_load_n(&s->handle, __ATOMIC_RELAXED);
    *len_p = __atomic_load_n(&s->len, __ATOMIC_RELAXED);
    return *handle_p != 0 && *len_p <= NICSTRIDE_REPLY_LINE_DATA ? s->data : NULL;
}
