/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The protocol of one member of a group over a network that loses, doubles and reorders messages:
 * receiver-driven retransmission without acknowledgements, from one static message for each step
 * (Yu, Buntinas, Graham and Panda 2004, sections 3, 6.2 and 6.3).
 *
 * Where the paper keeps a bit vector for each barrier, here everything is a number that only grows.
 * Barriers are numbered from 1 (epochs), and whoever says "epoch e" in a step says it for all
 * epochs up to e. With ready(0) = the last epoch entered here,
 *
 *     step k sends ready(k) whenever that has grown,
 *     ready(k + 1) = min(ready(k), received(k)),
 *     and the last of them is the last epoch that is complete.
 *
 * So a barrier has no state of its own: any number of them may be outstanding, messages may come
 * twice, late and out of order, and a later one makes up for the loss of earlier ones. What must be
 * kept to repeat a message is one number for each step. Epochs have 64 bits and do not wrap.
 *
 * A step that waits too long asks its one sender to repeat (NACK), and asks again after twice the
 * time, up to a limit. The first time-out follows the time that steps take, as retransmission
 * time-outs do elsewhere (RFC 6298), from messages that were not repeated. A sender that has
 * nothing newer keeps silent.
 *
 * Pure: time is an argument, in nanoseconds of any clock that does not go back. The caller
 * serialises.
 */
#ifndef NICBARRIER_EPOCH_H
#define NICBARRIER_EPOCH_H

#include <stdbool.h>
#include <stdint.h>

#include "coll_nicbarrier/engines/datagram/packet.h"
#include "coll_nicbarrier/schedule/schedule.h"

/** In place of a time. */
#define NICBARRIER_NEVER UINT64_MAX

/** When to ask for messages that do not come, in nanoseconds; all at least 1. */
typedef struct nicbarrier_timing {
    uint64_t first; /**< before anything is known of the time that steps take */
    uint64_t min;   /**< of the first NACK of a wait, whatever was measured */
    uint64_t max;   /**< likewise; min <= first <= max */
    uint64_t cap;   /**< between NACKs of one wait, at least max. A message that is lost after a
                         long wait comes this much late */
} nicbarrier_timing_t;

/** A message or a NACK that must be sent. */
typedef struct nicbarrier_message {
    int32_t to;      /**< member */
    uint8_t at;      /**< its step */
    uint8_t from_at; /**< my step */
    uint64_t epoch;  /**< message: entered up to this; NACK: repeat if you have sent this or more */
} nicbarrier_message_t;

typedef struct nicbarrier_slot {
    nicbarrier_step_t step;
    uint64_t sent;     /**< the static message: the last epoch sent */
    uint64_t received; /**< the last epoch that has come */
    uint64_t since;    /**< began to wait */
    uint64_t deadline; /**< of the next NACK; NICBARRIER_NEVER while not waiting */
    uint64_t interval; /**< from the last NACK, or from `since`, to the next one */
} nicbarrier_slot_t;

typedef struct nicbarrier_epochs {
    uint64_t entered;
    uint64_t completed;
    uint64_t deadline; /**< no slot's deadline is earlier */
    nicbarrier_timing_t timing;
    uint64_t mean;     /**< of the time that a step waits; 0 before the first */
    uint64_t variance; /**< mean deviation from that */
    int nsteps;
    nicbarrier_slot_t slot[NICBARRIER_STEPS_MAX];
} nicbarrier_epochs_t;

typedef enum nicbarrier_verdict {
    NICBARRIER_NEW,  /**< says something new; nicbarrier_epochs_advance must follow */
    NICBARRIER_OLD,  /**< a duplicate, or overtaken by a later one */
    NICBARRIER_WRONG /**< no such step, not its partner, or an epoch that cannot be */
} nicbarrier_verdict_t;

/** No peer is this many epochs ahead. */
#define NICBARRIER_AHEAD_MAX (UINT64_C(1) << 40)

/** @param nsteps  as nicbarrier_schedule returned it, 0 .. NICBARRIER_STEPS_MAX */
void nicbarrier_epochs_init(nicbarrier_epochs_t *e, const nicbarrier_step_t *steps, int nsteps,
                            const nicbarrier_timing_t *timing);

/** Enters all epochs up to `epoch`, or nothing if that is not new. Advance must follow. */
void nicbarrier_epochs_enter(nicbarrier_epochs_t *e, uint64_t epoch);

/** A packet of kind EPOCH, AGAIN or HERE came for this group. Allowed before enter, and before
 * anything can be sent. Cookie and key have been checked. */
nicbarrier_verdict_t nicbarrier_epochs_receive(nicbarrier_epochs_t *e, const nicbarrier_packet_t *p,
                                               uint64_t now);

/** Goes as far as it gets; sets `completed`. Writes what must be sent to `out`, returns how many.
 *  Not more than one for each step. */
int nicbarrier_epochs_advance(nicbarrier_epochs_t *e, uint64_t now,
                              nicbarrier_message_t out[NICBARRIER_STEPS_MAX]);

/** NACKs that are due; as advance. To be called at `deadline`; earlier calls do nothing. */
int nicbarrier_epochs_expire(nicbarrier_epochs_t *e, uint64_t now,
                             nicbarrier_message_t out[NICBARRIER_STEPS_MAX]);

/**
 * A packet of kind NACK came for this group: repeat the message of the step?
 *
 * @return NICBARRIER_NEW where `*out` must be sent, NICBARRIER_OLD where there is nothing to repeat
 *         yet, NICBARRIER_WRONG where the asker gets no message in this step
 */
nicbarrier_verdict_t nicbarrier_epochs_answer(const nicbarrier_epochs_t *e,
                                              const nicbarrier_packet_t *p,
                                              nicbarrier_message_t *out);

#endif
