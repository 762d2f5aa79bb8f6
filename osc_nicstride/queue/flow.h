/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What is sent to a peer, and what it acknowledges (completion.h): sending what is queued as
 * credit allows, asking for acknowledgements, and what they bring.
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

/** The same for all peers. When credit has come, or the transport keeps fewer messages. */
void nicstride_pump_all_locked(void);

/** Asks the target to acknowledge what it has not, if all operations up to number `goal` are
 *  sent and it has not been asked. */
void nicstride_ask_locked(nicstride_peer_t *p, uint64_t goal);

/** The peer has acknowledged so many messages, with an error class or 0; sends what may go now. */
void nicstride_acknowledged_locked(nicstride_peer_t *p, uint64_t count, int error);

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

/** Ends all that is under way to the peer, which nothing is sent to any more. */
void nicstride_peer_end_locked(nicstride_peer_t *p);
