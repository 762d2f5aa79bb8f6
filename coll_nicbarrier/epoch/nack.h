/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * When a member of a group asks for what does not come, over a network that loses, doubles and
 * reorders: receiver-driven retransmission (Yu, Buntinas, Graham and Panda 2004, section 6.3). A
 * step that waits too long asks its one sender to repeat (NACK), and asks again after twice the
 * time, up to a limit, and later after a part of the time waited so far: so a process that computes
 * is asked less and less often, and a loss never makes a wait longer by more than that part.
 *
 * A sender that has not come to the message says so (LATE), which only shows that it is there. A
 * failure is known to who waits, since all requests are answered by it then.
 *
 * Pure: time is an argument, in nanoseconds of any clock that does not go back. The caller
 * serialises.
 */
#pragma once

#include <stdint.h>

#include "coll_nicbarrier/epoch/rule.h"

/** In place of a time. */
#define NICBARRIER_NEVER UINT64_MAX

/** When to ask for messages that do not come, in nanoseconds; all at least 1. */
typedef struct nicbarrier_timing {
    uint64_t first; /**< to the first NACK of a wait */
    uint64_t cap;   /**< between NACKs of one wait, at least first; a sixteenth of the time waited
                         so far where that is more */
    uint64_t most;  /**< but never more than this; at least cap */
} nicbarrier_timing_t;

typedef struct nicbarrier_nacks {
    nicbarrier_timing_t timing;
    uint64_t deadline; /**< expire has nothing to do before; NICBARRIER_NEVER: at no time */
    uint64_t waits;    /**< bit k: step k waits */
    struct {
        uint64_t since;    /**< began to wait */
        uint64_t deadline; /**< of the next NACK */
        uint64_t interval; /**< from the last NACK, or from `since`, to the next one */
    } wait[NICBARRIER_RULE_STEPS];
} nicbarrier_nacks_t;

void nicbarrier_nacks_init(nicbarrier_nacks_t *n, const nicbarrier_timing_t *timing);

/** The rule has gone on: steps that are blocked begin to wait, and others end. */
void nicbarrier_nacks_follow(nicbarrier_nacks_t *n, const nicbarrier_rule_t *r, uint64_t now);

/** A message for my step k brought something new: if it still waits, that is a new wait. Follow
 *  must come after it. */
void nicbarrier_nacks_received(nicbarrier_nacks_t *n, uint32_t k);

/** What is due. To be called at `deadline`; earlier calls do nothing.
 *  @return bit k: a NACK of step k must be sent, for the epoch r->received[k] + 1 */
uint64_t nicbarrier_nacks_expire(nicbarrier_nacks_t *n, const nicbarrier_rule_t *r, uint64_t now);

/** What to do with a NACK. */
typedef enum nicbarrier_reply {
    NICBARRIER_REPLY_AGAIN, /**< repeat the message of the step */
    NICBARRIER_REPLY_LATE,  /**< not sent yet */
    NICBARRIER_REPLY_NONE   /**< no such message is ever sent */
} nicbarrier_reply_t;

/** A NACK came that asks for the message of my step k, if it is of this epoch or more. The epoch
 * has no failure bit. */
nicbarrier_reply_t nicbarrier_nacks_answer(const nicbarrier_rule_t *r, uint32_t k, uint64_t epoch);
