/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Flow control of what is sent to a peer (credit.h): sending what is queued as credit
 *  allows, asking for acknowledgements, and what they bring.
 *
 *  All is called with the transport lock held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/layout/layout.h"
#include "osc_nicstride/protocol/peer_layout_cache.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/window/module.h"

/** Sends what the peer's credit allows of what is queued. */
void nicstride_pump_queue_locked(nicstride_peer_t *p);

/** The same. There is nothing mostly: short operations pass the queue by. */
static inline void nicstride_pump_locked(nicstride_peer_t *p)
{
    if (!STAILQ_EMPTY(&p->queue.waiting))
        nicstride_pump_queue_locked(p);
}

/** The same for all windows that share the process's quota: what is free again in one another may
 *  use, and nobody else may come to send it. This comes with every acknowledgement, and there may
 *  be thousands of windows. */
static inline void nicstride_pump_all_locked(nicstride_process_t *process)
{
    nicstride_peer_t *p;

    if (process->queued == 0)
        return;
    LIST_FOREACH(p, &process->peers, of_process)
        nicstride_pump_locked(p);
}

/** Asks the target to acknowledge what it has not, if all operations up to number `goal` are
 *  sent and it has not been asked. */
void nicstride_ask_locked(nicstride_peer_t *p, uint64_t goal);

/** The peer has acknowledged so many messages, for which it has kept `freed` bytes as far as it
 * says so, with an error class or 0; sends what may go now. */
void nicstride_acknowledged_locked(nicstride_peer_t *p, uint64_t count, uint64_t freed, int error);

/** Takes what the peer answered in its reply line. */
void nicstride_take_answer_locked(nicstride_peer_t *p);

/** Has the peer answered there? Then that is taken. To be called wherever its answers are waited
 *  for, and before it is asked for another. */
static inline bool nicstride_look_locked(nicstride_peer_t *p)
{
    if (p->flow.reply_line == NULL ||
        !nicstride_reply_line_look(p->flow.reply_line, &p->flow.reply_line_seen))
        return false;
    nicstride_take_answer_locked(p);
    return true;
}

/** Ends all that is under way to the peer, which nothing is sent to any more, and gives back what
 * it has of the room at its process: other windows may still reach that. */
void nicstride_peer_end_locked(nicstride_peer_t *p);

/* ---- lists that targets keep --------------------------------------------------------------------
 *
 * A target keeps long lists of blocks, which are named then (protocol/peer_layout_cache.h). With
 * 1,000 blocks of 8 bytes a message is a third shorter so, neither side writes or reads slices, and
 * a put with its flush takes a third of the time.
 *
 * All is called with the transport lock held, but for layouts whose list cannot have a name. */

/** May the target keep its list? */
static inline bool nicstride_is_nameable(const onic_layout_t *l)
{
    return l->nruns >= NICSTRIDE_LAYOUT_CACHE_RUNS && onic_layout_number(l) != 0;
}

/** A transfer to the peer with that layout is started by message. The name that its slices are to
 *  carry; 0: none. */
uint32_t nicstride_list_used_locked(nicstride_peer_t *p, const onic_layout_t *l);

/** Is the next transfer by message the one whose slices give the layout's list a name? Such a one
 *  goes through the queue (flow.c). */
bool nicstride_list_is_due_locked(const nicstride_peer_t *p, const onic_layout_t *l);

/** Describes all bytes of a layout behind the header `msg`, by their number, by levels, by a name
 *  or, where it is repeated and has fewer than `room` bytes of data, by a list in `cap` bytes;
 *  false where it is to be slices. A name is good while the lock is held, or
 *  nicstride_list_is_known_locked says so. */
bool nicstride_describe_whole(const nicstride_peer_t *p, const onic_layout_t *l,
                              nicstride_msg_t *msg, size_t cap, uint64_t room);

/** May the message, which perhaps names a list, still be sent? */
bool nicstride_list_is_known_locked(const nicstride_peer_t *p, const nicstride_msg_t *msg,
                                    const void *layout);

/** At the target: a message with NICSTRIDE_MSG_CACHED came. Returns the list that it names; NULL
 *  where that is not there, or the message has a slice, which is kept. */
nicstride_cached_layout_t *nicstride_cached_layout_locked(const nicstride_incoming_t *in);
