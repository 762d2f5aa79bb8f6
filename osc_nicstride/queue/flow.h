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
