/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Operations and replies of so few bytes that they travel behind a header.
 */
#ifndef NICSTRIDE_SMALL_H
#define NICSTRIDE_SMALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "osc_nicstride/module.h"
#include "osc_nicstride/proto.h"

struct nicstride_target;

/** The most bytes that travel behind a header, copied, instead of beside it; less than this where
 *  transports take shorter headers only, see nicstride_small_max. */
#define NICSTRIDE_SMALL_MAX 1024
/** The most, likewise, of puts and accumulates to other nodes in active target. */
#define NICSTRIDE_FAR_MAX 4096
/** Up to here it is learned for all lengths together which way is the cheaper one for a lone
 *  operation. */
#define NICSTRIDE_LONE_MAX 128

/** An operation on few contiguous bytes. */
typedef struct nicstride_small {
    nicstride_msg_type_t type; /**< PUT, GET, ACC, GET_ACC or CAS */
    uint16_t op;
    uint16_t dtype;
    uint64_t len;                /**< bytes at the target */
    const void *data;            /**< what the target is sent; NULL: nothing */
    const void *data2;           /**< CAS: the second value; else NULL */
    void *result;                /**< where replies go; NULL for PUT */
    nicstride_tune_cell_t *cell; /**< where its cost is to be noted; NULL: nowhere */
} nicstride_small_t;

/** The most bytes that travel behind a header here. */
size_t nicstride_small_max(void);

/**
 * The quick way for small operations by message: sends it at once where everything is plainly
 * allowed and nothing is queued before it. False where that is not so, and
 * says nothing: take the long way, which finds out and explains. Takes the wire lock.
 */
bool nicstride_small_start(nicstride_module_t *m, int target, ptrdiff_t disp,
                           const nicstride_small_t *s);

/**
 * The quick way for a short transfer or accumulate of any layouts: PUT and ACC are packed at once,
 * so that they are locally complete; GET waits for its reply, into the origin's layout, which it
 * takes over. False where it is too long, or what stands before it must go first: take the long
 * way. Takes the wire lock.
 *
 * @param s        type, op, dtype and cell; the rest is in `a`
 * @param granule  bytes of an element that must not be torn; 1 for transfers
 */
bool nicstride_small_move(nicstride_module_t *m, struct nicstride_target *a,
                          const nicstride_small_t *s, uint32_t granule);

/** Sends a message without layout, in the short form where it has one, with `len` bytes (0 ..
 *  NICSTRIDE_SMALL_MAX) behind its header. A failure is printed by the wire and marks the peer as
 *  failed, which ends all waiting for it with an error. */
void nicstride_send_small_locked(nicstride_peer_t *p, nicstride_msg_t *msg, const void *data,
                                 uint64_t len);

/** As nicstride_outbox_post_locked. Inlined is what happens mostly: nothing waits, and the message
 *  goes at once. */
static inline void nicstride_post_locked(nicstride_peer_t *p, const void *message, size_t len,
                                         bool may_wait)
{
    if (may_wait || p->outbox.parcel != NULL || len > ONIC_SEND_NOW_MAX ||
        !onic_peer_send_now(p->wire, ONIC_AM_OSC, message, len))
        nicstride_outbox_post_locked(p, message, len, may_wait);
}

#endif
