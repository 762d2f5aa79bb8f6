/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Messages to a peer and its acknowledgements (completion.h): sends what is queued as credit
 *  allows, asks for acknowledgements, and handles them.
 *
 *  Everything is called with the transport lock held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/layout/layout.h"
#include "osc_nicstride/protocol/peer_layout_cache.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/window/peer.h"

/** Sends queued operations as far as the peer's credit allows. */
void nicstride_pump_queue_locked(nicstride_peer_t *p);

/** The same. The queue is usually empty, as short operations bypass it. */
static inline void nicstride_pump_locked(nicstride_peer_t *p)
{
    if (!STAILQ_EMPTY(&p->queue.waiting))
        nicstride_pump_queue_locked(p);
}

/** The same for all peers. To be called when credit has arrived, or the transport keeps fewer
 *  messages. */
void nicstride_pump_all_locked(void);

/** Asks the target to acknowledge what it has not, if all operations up to number `goal` are sent
 *  and it was not asked before. */
void nicstride_ask_locked(nicstride_peer_t *p, uint64_t goal);

/** Notes that the peer has acknowledged `count` messages, with an error class or 0; sends what may
 *  go now. */
void nicstride_acknowledged_locked(nicstride_peer_t *p, uint64_t count, int error);

/** Takes the peer's answer from its reply line. */
void nicstride_take_answer_locked(nicstride_peer_t *p);

/** True if the peer has answered in its reply line; then the answer is taken. To be called wherever
 *  its answers are awaited, and before it is asked for another one. */
static inline bool nicstride_look_locked(nicstride_peer_t *p)
{
    if (p->flow.reply_line == NULL ||
        !nicstride_reply_line_look(p->flow.reply_line, &p->flow.reply_line_seen))
        return false;
    nicstride_take_answer_locked(p);
    return true;
}

/** Ends everything under way to a peer to which nothing is sent any more. */
void nicstride_peer_end_locked(nicstride_peer_t *p);
