/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The gate: processes of other nodes take the lock of a target by an atomic operation of an
 *  adapter on a word of the target's, without its processor, while nobody has to wait for it.
 *
 *  The queue (lockq.h) stays what decides. Who stands behind the gate is one origin of it, the
 *  last: while the gate is open that one has the lock exclusively, and whoever comes to the queue
 *  waits. Then the target closes the gate, by a bit of the word, so that nobody comes in any more;
 *  those inside tell it when they go out. When the last one has gone, or where all of them share
 *  the lock, the queue goes on. It is as fair as ever: nobody comes in by the gate who came after
 *  it was closed, and it is opened only when nobody has the lock or waits.
 *
 *      word: bit 63: closed; bits 32 .. 62: rank + 1 of the one that has the lock exclusively; bits
 *      0 .. 31: how many share it, or have tried to and will go out again
 *
 *  Only the target opens and closes, one change of the word at a time. A near process that waits
 *  because of the gate has it closed for longer each time: it would rather do without.
 *
 *  Pure. The caller serialises, as for the queue, and does what is returned. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "osc_nicstride/protocol/lockq.h"

#define NICSTRIDE_GATE_CLOSED (UINT64_C(1) << 63)

/* ---- at the origin --------------------------------------------------------------------------- */

/** How to go in. Exclusively: compare the word with 0 and swap in this. Shared: add it. */
static inline uint64_t nicstride_gate_mark(uint32_t type, uint32_t rank)
{
    return type == NICSTRIDE_LOCK_EXCLUSIVE ? (uint64_t)(rank + 1) << 32 : 1;
}

/** Has it the lock, where the word was that before? Else one that shares has to subtract again what
 *  it has added. */
static inline bool nicstride_gate_is_in(uint32_t type, uint64_t before)
{
    return type == NICSTRIDE_LOCK_EXCLUSIVE ? before == 0 : before >> 32 == 0;
}

/** It has gone out, by subtracting its mark. Must it tell the target? */
static inline bool nicstride_gate_tells(uint64_t before)
{
    return (before & NICSTRIDE_GATE_CLOSED) != 0;
}

/** Is it worth trying? Zero-initialise. */
typedef struct nicstride_gate_luck {
    uint8_t skip; /**< so many times it is not */
    uint8_t misses;
} nicstride_gate_luck_t;

static inline bool nicstride_gate_may_try(nicstride_gate_luck_t *l)
{
    if (l->skip == 0)
        return true;
    l->skip--;
    return false;
}

/** It was in, or not: then it is tried less and less often, every 16th time at last. */
static inline void nicstride_gate_tried(nicstride_gate_luck_t *l, bool in)
{
    l->misses = in ? 0 : l->misses < 4 ? l->misses + 1 : 4;
    l->skip = (uint8_t)((1u << l->misses) - 1);
}

/* ---- at the target --------------------------------------------------------------------------- */

typedef enum nicstride_gate_state {
    NICSTRIDE_GATE_SHUT, /**< the queue decides alone */
    NICSTRIDE_GATE_OPENING,
    NICSTRIDE_GATE_OPEN,
    NICSTRIDE_GATE_CLOSING,
    NICSTRIDE_GATE_LEAVING /**< nobody comes in, some are inside */
} nicstride_gate_state_t;

/** Zero-initialise; the word has NICSTRIDE_GATE_CLOSED alone then. */
typedef struct nicstride_gate {
    nicstride_gate_state_t state;
    uint8_t near;  /**< how often near processes had it closed, 6 at most */
    uint32_t shut; /**< so many times it is not to be opened */
} nicstride_gate_t;

/** What the target is to do with the word; nicstride_gate_changed when that is done. */
typedef enum nicstride_gate_do {
    NICSTRIDE_GATE_NOTHING,
    NICSTRIDE_GATE_DO_OPEN, /**< take NICSTRIDE_GATE_CLOSED out */
    NICSTRIDE_GATE_DO_CLOSE /**< put it in */
} nicstride_gate_do_t;

/** A far process has given back the lock in the queue, which is made for one more origin than there
 *  are. The gate is opened where nobody has the lock or waits. */
nicstride_gate_do_t nicstride_gate_released(nicstride_gate_t *g, nicstride_lockq_t *q);

/** Somebody waits in the queue, a process of the target's node where `near`. Also asks whether
 *  those that the gate has let in have gone: `word` is what it is now. The queue may be able to
 *  grant then. */
nicstride_gate_do_t nicstride_gate_wanted(nicstride_gate_t *g, nicstride_lockq_t *q, bool near,
                                          uint64_t word);

/** The word was changed; it is that now, read behind that: who goes out after this will tell.
 *  Follow with next_grant. */
nicstride_gate_do_t nicstride_gate_changed(nicstride_gate_t *g, nicstride_lockq_t *q,
                                           uint64_t word);
