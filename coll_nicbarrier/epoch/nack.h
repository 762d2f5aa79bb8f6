/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * When a member of a group asks for what does not come, over a network that loses, doubles and
 * reorders: receiver-driven retransmission (Yu, Buntinas, Graham and Panda 2004, section 6.3). A
 * step that waits too long asks its one sender to repeat (NACK), and asks again after twice the
 * time, up to a limit.
 *
 * Late is not lost. A sender that has not come to the message answers LATE, and with it *promises*
 * the message: when it comes to send it, it repeats it by its own timer until the receiver has
 * acknowledged it (ACK). So the receiver asks again only lest the sender has died or forgotten.
 * Only what was promised is acknowledged: a late sender has made others wait anyway. A failure is
 * promised to all without being asked for, since a member that is not waiting does not ask.
 *
 * Pure: time is an argument, in nanoseconds of any clock that does not go back. The caller
 * serialises.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "coll_nicbarrier/epoch/rule.h"

/** In place of a time. */
#define NICBARRIER_NEVER UINT64_MAX

/** A promised message is repeated so often at most. Then the receiver's own timer has to do. */
#define NICBARRIER_NACK_REPEATS 10

/** When to ask for messages that do not come, in nanoseconds; all at least 1. */
typedef struct nicbarrier_timing {
    uint64_t first; /**< to the first NACK of a wait */
    uint64_t cap;   /**< between NACKs of one wait, at least first; a sixteenth of the time waited
                         so far where that is more. A message that is lost after a long wait comes
                         this much late */
    uint64_t late;  /**< to the next NACK where the sender has promised, at least cap */
} nicbarrier_timing_t;

typedef struct nicbarrier_nacks {
    nicbarrier_timing_t timing;
    uint64_t deadline; /**< expire has nothing to do before; NICBARRIER_NEVER: at no time */
    uint64_t waits;    /**< bit k: step k waits */
    uint64_t late;     /**< bit k: and its sender has promised the message */
    uint64_t promised; /**< bit k: I have promised the message of step k */
    uint64_t due;      /**< bit k: and sent it, and repeat it */
    bool failed;       /**< the group has failed: sent in all steps, and promised */
    struct {
        uint64_t since;    /**< began to wait */
        uint64_t deadline; /**< of the next NACK */
        uint64_t interval; /**< from the last NACK, or from `since`, to the next one */
    } wait[NICBARRIER_RULE_STEPS];
    struct {
        uint64_t epoch;
        uint64_t deadline; /**< of the next repetition, where it is due */
        uint64_t interval;
        unsigned times; /**< repeated */
    } promise[NICBARRIER_RULE_STEPS];
} nicbarrier_nacks_t;

void nicbarrier_nacks_init(nicbarrier_nacks_t *n, const nicbarrier_timing_t *timing);

/** The rule has gone on: steps that are blocked begin to wait, others end, and promised messages
 *  that have been sent begin to be repeated. */
void nicbarrier_nacks_follow(nicbarrier_nacks_t *n, const nicbarrier_rule_t *r, uint64_t now);

/** A message for my step k brought something new; follow must come after it.
 *  @return true where it had been promised: an ACK must be sent */
bool nicbarrier_nacks_received(nicbarrier_nacks_t *n, uint32_t k);

/** LATE came, in answer to a NACK of my step k for the epoch. */
void nicbarrier_nacks_late(nicbarrier_nacks_t *n, const nicbarrier_rule_t *r, uint32_t k,
                           uint64_t epoch, uint64_t now);

/** An ACK came: the receiver of my step k has got this word (rule.h), or more. */
void nicbarrier_nacks_acked(nicbarrier_nacks_t *n, uint32_t k, uint64_t word);

/** What is due. To be called at `deadline`; earlier calls do nothing.
 *  @param repeats  gets, as bit k: the promised message of step k must be sent again
 *  @return bit k: a NACK of step k must be sent, for the epoch r->received[k] + 1 */
uint64_t nicbarrier_nacks_expire(nicbarrier_nacks_t *n, const nicbarrier_rule_t *r, uint64_t now,
                                 uint64_t *repeats);

/** What to do with a NACK. */
typedef enum nicbarrier_reply {
    NICBARRIER_REPLY_AGAIN, /**< repeat the message of the step */
    NICBARRIER_REPLY_LATE,  /**< not sent yet: it has been promised now: answer LATE */
    NICBARRIER_REPLY_NONE   /**< no such message is ever sent */
} nicbarrier_reply_t;

/** A NACK came that asks for the message of my step k, if it is of this epoch or more. The epoch
 * has no failure bit. */
nicbarrier_reply_t nicbarrier_nacks_answer(nicbarrier_nacks_t *n, const nicbarrier_rule_t *r,
                                           uint32_t k, uint64_t epoch);
