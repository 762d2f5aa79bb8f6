/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Which operations of one origin on one target must wait for earlier ones, so that each sees
 *  what those before it have written, and no earlier write overtakes a later one.
 *
 *  Some ways keep order by themselves: messages are handled in the order in which they arrive, and
 *  transfers through receive buffers take their turn at the target. An operation that takes another
 *  way than an earlier write to the same bytes waits until that write has landed. For each way, one
 *  span covers everything written that way since all had last landed. So a stream of operations
 *  costs two comparisons each, and bytes between writes may be waited for needlessly.
 *
 *  Gets are not noted, since they are complete before a program may write to the same place: until
 *  then a later put may overtake one. Only gets that may wait behind writes are noted, so that
 *  waiting in turn makes no get later than a put that follows it.
 *
 *  Pure. The caller serialises notes; any thread may query meanwhile. A thread that queries sees
 *  its own notes, and those of threads with which it has synchronised. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** How an operation gets to the target's bytes. Rows have further ways. */
typedef enum nicstride_way {
    NICSTRIDE_WAY_NOW = 0, /**< done when its call returns: loads, stores, single copy */
    NICSTRIDE_WAY_COMES,   /**< by message: done on arrival */
    NICSTRIDE_WAY_TURN,    /**< through receive buffers: after what came before, at the target */
    NICSTRIDE_WAY_ROW,     /**< any other method has its own way, from this number on, on which puts
                              keep their order */
    NICSTRIDE_WAY_SEVERAL = UINT8_MAX /**< several of these */
} nicstride_way_t;

/** Ways that are told apart: these two, and all others together. */
enum { NICSTRIDE_ORDER_OTHER = NICSTRIDE_WAY_ROW, NICSTRIDE_ORDERS = NICSTRIDE_ORDER_OTHER };

/** What was written at a target and is not known to have landed. Zero-initialise. */
typedef struct nicstride_order {
    uint8_t ways;  /**< the set of ways with such writes */
    uint8_t other; /**< the way of the others */
    struct {
        uint64_t from, to; /**< the first byte, and the one after the last */
    } of[NICSTRIDE_ORDERS];
} nicstride_order_t;

/** Notes that everything has landed. */
static inline void nicstride_order_landed(nicstride_order_t *o)
{
    __atomic_store_n(&o->ways, 0, __ATOMIC_RELAXED);
}

/** True if nothing is under way. */
static inline bool nicstride_order_is_idle(const nicstride_order_t *o)
{
    return __atomic_load_n(&o->ways, __ATOMIC_RELAXED) == 0;
}

/** Notes that bytes [from, to) are being written, or read. `way`: not NICSTRIDE_WAY_NOW. */
static inline void nicstride_order_note(nicstride_order_t *o, unsigned way, bool reads,
                                        uint64_t from, uint64_t to)
{
    const unsigned i = way < NICSTRIDE_ORDER_OTHER ? way : NICSTRIDE_ORDER_OTHER;
    const bool first = (o->ways & 1u << i) == 0;

    if (reads && (first || i != NICSTRIDE_WAY_TURN))
        return;
    if (first || from < o->of[i - 1].from)
        __atomic_store_n(&o->of[i - 1].from, from, __ATOMIC_RELAXED);
    if (first || to > o->of[i - 1].to)
        __atomic_store_n(&o->of[i - 1].to, to, __ATOMIC_RELAXED);
    if (i == NICSTRIDE_ORDER_OTHER && (first || o->other != way))
        __atomic_store_n(&o->other, (uint8_t)(first ? way : NICSTRIDE_WAY_SEVERAL),
                         __ATOMIC_RELAXED);
    if (first)
        __atomic_store_n(&o->ways, (uint8_t)(o->ways | 1u << i), __ATOMIC_RELEASE);
}

/** The subset of `ways` whose earlier writes the operation could overtake. */
static inline unsigned nicstride_order_overtakes(const nicstride_order_t *o, unsigned ways,
                                                 unsigned way, bool reads)
{
    if (way == NICSTRIDE_WAY_COMES)
        return ways & ~(1u << NICSTRIDE_WAY_COMES);
    if (way == NICSTRIDE_WAY_TURN)
        return ways & ~(1u << NICSTRIDE_WAY_COMES | 1u << NICSTRIDE_WAY_TURN);
    if (!reads && way == __atomic_load_n(&o->other, __ATOMIC_RELAXED))
        return ways & ~(1u << NICSTRIDE_ORDER_OTHER);
    return ways;
}

/** True if an operation on bytes [from, to) must wait until everything has landed. `reads`: it is a
 *  get. */
static inline bool nicstride_order_waits(const nicstride_order_t *o, unsigned way, bool reads,
                                         uint64_t from, uint64_t to)
{
    unsigned ways = __atomic_load_n(&o->ways, __ATOMIC_ACQUIRE);

    if (ways == 0)
        return false;
    ways = nicstride_order_overtakes(o, ways, way, reads);
    for (unsigned i = NICSTRIDE_WAY_COMES; ways >> i != 0; i++)
        if ((ways & 1u << i) != 0 && from < __atomic_load_n(&o->of[i - 1].to, __ATOMIC_RELAXED) &&
            __atomic_load_n(&o->of[i - 1].from, __ATOMIC_RELAXED) < to)
            return true;
    return false;
}
