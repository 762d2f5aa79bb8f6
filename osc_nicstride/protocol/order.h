/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Which operations of one origin on one target wait for earlier ones, so that each finds
 *  what those before it have written, and none writes below them.
 *
 *  Some ways keep order by themselves: messages come in order, and the target applies puts as they
 *  come and has all else take its turn (target/dispatch.c). An operation that goes another way than
 *  a write before it waits until that has landed, if it is about the same bytes. For each way one
 *  span stands for all that was written by it since the last time that all had landed: so a stream
 *  of operations costs two comparisons each, and what lies between writes may be waited for though
 *  it need not be.
 *
 *  Gets are not noted, since they are complete before a program may write there: until then a later
 *  put may overtake one. Only those that may be put off behind writes are, so that waiting for its
 *  turn makes no get later than a put that comes after it.
 *
 *  Pure. Noting is for the caller to serialise; anybody may ask meanwhile. A thread that asks finds
 *  what it has noted itself, and what threads have noted that it has synchronised with. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** How an operation gets to the bytes of its target. Further ones are those of rows. */
typedef enum nicstride_way {
    NICSTRIDE_WAY_NOW = 0, /**< it is over when its call returns: loads, stores, single copy */
    NICSTRIDE_WAY_COMES,   /**< a put by message: applied as it comes */
    NICSTRIDE_WAY_TURN, /**< another message, or through receive buffers: it takes its turn at the
                           target */
    NICSTRIDE_WAY_ROW,  /**< and so much more than this a method has whose puts keep their order */
    NICSTRIDE_WAY_LOOSE = UINT8_MAX /**< in no order */
} nicstride_way_t;

/** Ways that are told apart: both of messages, and the others together. */
enum { NICSTRIDE_ORDER_OTHER = NICSTRIDE_WAY_ROW, NICSTRIDE_ORDERS = NICSTRIDE_ORDER_OTHER };

/** What was written at a target and is not known to have landed. Zero-initialise. */
typedef struct nicstride_order {
    uint8_t ways;  /**< a set of those that there is something of */
    uint8_t other; /**< the way of the others; NICSTRIDE_WAY_LOOSE: several, or in no order */
    struct {
        uint64_t from, to; /**< the first byte, and that behind the last one */
    } of[NICSTRIDE_ORDERS];
} nicstride_order_t;

/** All has landed. */
static inline void nicstride_order_landed(nicstride_order_t *o)
{
    __atomic_store_n(&o->ways, 0, __ATOMIC_RELAXED);
}

/** True if nothing is under way. */
static inline bool nicstride_order_is_idle(const nicstride_order_t *o)
{
    return __atomic_load_n(&o->ways, __ATOMIC_RELAXED) == 0;
}

/** Bytes [from, to) are being written, or read. `way`: not NICSTRIDE_WAY_NOW. */
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
        __atomic_store_n(&o->other, (uint8_t)(first ? way : NICSTRIDE_WAY_LOOSE), __ATOMIC_RELAXED);
    if (first)
        __atomic_store_n(&o->ways, (uint8_t)(o->ways | 1u << i), __ATOMIC_RELEASE);
}

/** Those of `ways` that an operation may overtake writes by. */
static inline unsigned nicstride_order_overtakes(const nicstride_order_t *o, unsigned ways,
                                                 unsigned way, bool reads)
{
    if (way == NICSTRIDE_WAY_COMES)
        return ways & ~(1u << NICSTRIDE_WAY_COMES);
    if (way == NICSTRIDE_WAY_TURN)
        return ways & ~(1u << NICSTRIDE_WAY_COMES | 1u << NICSTRIDE_WAY_TURN);
    if (!reads && way != NICSTRIDE_WAY_LOOSE && way == __atomic_load_n(&o->other, __ATOMIC_RELAXED))
        return ways & ~(1u << NICSTRIDE_ORDER_OTHER);
    return ways;
}

/** True if an operation on bytes [from, to) must wait until all has landed. `reads`: it is a get.
 */
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
