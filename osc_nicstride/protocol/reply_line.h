/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Reply lines: where a process of the same node answers a single small operation. A cache
 * line in memory that both have mapped, one for each origin and target of a window.
 *
 *  A message between two processes of a node is several cache lines and some hundred instructions
 *  on either side. The origin of such an operation waits for nothing but its answer, so the target
 *  leaves that where the origin looks: what is applied and, of an operation that fetches, a few
 *  bytes of data. Only the answer to a message that asks for one itself goes there, and an origin
 *  has sent no second such message before it knew the first to be answered: so at most one answer
 *  is under way, and nobody writes while the other reads. All other acknowledgements are messages:
 *  they wake an origin's helper thread, which a word in memory does not.
 *
 *  It earns a fifth of a get or a compare-and-swap of 8 bytes with its flush, and a third of a put,
 *  an accumulate or a fetch_and_op.
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
    uint32_t handle;               /**< of the operation that the data is for; 0: no data */
    uint32_t len;
    unsigned char data[NICSTRIDE_REPLY_LINE_DATA];
} nicstride_reply_line_t;

_Static_assert(sizeof(nicstride_reply_line_t) == 64, "one cache line");

/** How many reply lines each process of a window has, with so many of them on its node. */
static inline int nicstride_reply_line_count(int processes)
{
    return processes > 1 && processes <= NICSTRIDE_REPLY_LINE_PROCESSES ? processes : 0;
}

/**
 * Does an answer go into the reply line? Else it is a message.
 *
 * @param asked    the count with which the message asks for its own acknowledgement; 0: it does not
 * @param applied  what the answer acknowledges; 0: nothing, others must be applied first
 * @param len      bytes of its data
 */
static inline bool nicstride_reply_line_takes(uint64_t asked, uint64_t applied, size_t len)
{
    return asked != 0 && applied != 0 && len <= NICSTRIDE_REPLY_LINE_DATA;
}

/** The target answers. `applied` must have grown since the last answer.
 *
 *  @param handle  the operation's, as in short headers; 0 where there is no data
 *  @param len     0 .. NICSTRIDE_REPLY_LINE_DATA */
static inline void nicstride_reply_line_answer(nicstride_reply_line_t *s, uint64_t applied,
                                               uint32_t handle, const void *data, size_t len)
{
    if (len == sizeof(uint64_t))
        memcpy(s->data, data, sizeof(uint64_t));
    else if (len > 0)
        memcpy(s->data, data, len);
    s->handle = handle;
    s->len = (uint32_t)len;
    /* What the operation did at the target comes before this, too. */
    __atomic_store_n(&s->applied, applied, __ATOMIC_RELEASE);
}

/** Is there an answer that the origin has not taken, the last of which was `*seen`? Then that
 *  becomes the new one's number, and the rest of the answer may be read. */
static inline bool nicstride_reply_line_look(const nicstride_reply_line_t *s, uint64_t *seen)
{
    const uint64_t applied = __atomic_load_n(&s->applied, __ATOMIC_ACQUIRE);

    if (applied == *seen)
        return false;
    *seen = applied;
    return true;
}

/** The data of the answer that was just found: for the operation `*handle_p`, `*len_p` bytes. NULL
 *  where there is none, `*handle_p` being 0 then, or where it is more than a reply line holds. */
static inline const void *nicstride_reply_line_data(const nicstride_reply_line_t *s,
                                                    uint32_t *handle_p, size_t *len_p)
{
    *handle_p = __atomic_load_n(&s->handle, __ATOMIC_RELAXED);
    *len_p = __atomic_load_n(&s->len, __ATOMIC_RELAXED);
    return *handle_p != 0 && *len_p <= NICSTRIDE_REPLY_LINE_DATA ? s->data : NULL;
}
