/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * When a member of a group asks for missing messages, over a network that loses, duplicates and
 * reorders packets: receiver-driven retransmission (Yu, Buntinas, Graham and Panda 2004,
 * section 6.3). A step that waits too long asks its one sender to repeat (NACK), and asks again
 * after twice the time, up to a limit, and later after a fraction of the time waited so far. So a
 * process that computes is asked less and less often, and a loss prolongs a wait by that fraction
 * at most.
 *
 * A sender that has not reached the message yet does not answer: it will send it. After a failure
 * every NACK is answered with the failure, so waiting members learn of it.
 *
 * Pure: time is an argument, in nanoseconds of any monotonic clock. The caller
 * serialises.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "coll_nicbarrier/epoch/rule.h"

/** Instead of a time: never. */
#define NICBARRIER_NEVER UINT64_MAX

/** Longest between NACKs of one wait, by the time to its first one, while a sixteenth of the time
 *  waited so far is less. */
#define NICBARRIER_NACK_CAP 16U
/** Limit of that sixteenth, in nanoseconds. */
#define NICBARRIER_NACK_MOST UINT64_C(1000000000)

typedef struct nicbarrier_nacks {
    uint64_t first;    /**< from the begin of a wait to its first NACK; at least 1 */
    uint64_t deadline; /**< expire has nothing to do before this time; NICBARRIER_NEVER: ever */
    uint64_t waits;    /**< bit k: step k waits */
    struct {
        uint64_t since;    /**< begin of the wait */
        uint64_t deadline; /**< of the next NACK */
    } wait[NICBARRIER_RULE_STEPS];
} nicbarrier_nacks_t;

void nicbarrier_nacks_init(nicbarrier_nacks_t *n, uint64_t first);

/** Called after the rule has advanced: blocked steps begin to wait, and other waits end. */
void nicbarrier_nacks_follow(nicbarrier_nacks_t *n, const nicbarrier_rule_t *r, uint64_t now);

/** A message for my step k brought something new: if the step still waits, that is a new wait.
 *  nicbarrier_nacks_follow must be called next. */
void nicbarrier_nacks_received(nicbarrier_nacks_t *n, uint32_t k);

/** The NACKs that are due. To be called at `deadline`; earlier calls do nothing.
 *  @return bit k: send a NACK of step k, for the epoch r->received[k] + 1 */
uint64_t nicbarrier_nacks_expire(nicbarrier_nacks_t *n, const nicbarrier_rule_t *r, uint64_t now);

/** True if a NACK that asks for the message of my step k with this epoch or a later one, without
 *  the failure bit, is answered by repeating that message. It is not where that has not been sent
 *  yet, or never will be. */
bool nicbarrier_nacks_answer(const nicbarrier_rule_t *r, uint32_t k, uint64_t epoch);
