/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file How a message describes bytes of its target: by a number, by levels, by a list, or by the
 *  id of a list that the target keeps (protocol/peer_layout_cache.h). A lone put of 1,000 blocks
 * of 8 bytes takes a fifth of the time by an id.
 *
 *  All is called with the transport lock held where nothing else is said. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/layout/layout.h"
#include "osc_nicstride/protocol/peer_layout_cache.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/window/module.h"

/** May the target keep its list? */
static inline bool nicstride_may_be_cached(const onic_layout_t *l)
{
    return l->nruns >= NICSTRIDE_LAYOUT_CACHE_RUNS && onic_layout_number(l) != 0;
}

/** A transfer to the peer with that layout is started by message. The id that its slices are to
 *  carry; 0: none. */
uint32_t nicstride_list_used_locked(nicstride_peer_t *p, const onic_layout_t *l);

/** True if the next transfer by message is the one whose slices give the layout's list an id. It
 *  goes through the queue (flow.c). */
bool nicstride_list_is_due_locked(const nicstride_peer_t *p, const onic_layout_t *l);

/** Describes all bytes of a layout behind the header `msg`, by their number, by levels, by an id
 *  or, where it is repeated and has fewer than `room` bytes of data, by a list in `cap` bytes;
 *  false where it is to be slices. An id is good while the lock is held, or
 *  nicstride_list_is_known_locked says so. */
bool nicstride_describe_whole(const nicstride_peer_t *p, const onic_layout_t *l,
                              nicstride_msg_t *msg, size_t cap, uint64_t room);

/** True if the message, which may have the id of a list, may still be sent. */
bool nicstride_list_is_known_locked(const nicstride_peer_t *p, const nicstride_msg_t *msg,
                                    const void *layout);

/** Describes all bytes of a transfer's target behind the header; false where that takes too much
 *  room. No lock is needed. */
bool nicstride_describe(nicstride_framed_t *f, const nicstride_transfer_t *t);
