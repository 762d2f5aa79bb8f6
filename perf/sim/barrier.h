/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Barriers of many members over a network that may delay and lose, by the rule, the
 * schedules and the timers of coll_nicbarrier: what sends, waits and asks again here is the code
 * that does so in an engine (Yu, Buntinas, Graham and Panda 2004, sections 5 and 6). A member has
 * one processor, that of its host or of its adapter, which takes the steps. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "coll_nicbarrier/epoch/nack.h"
#include "coll_nicbarrier/schedule/schedule.h"

/** What a member and a message take; nanoseconds. */
typedef struct sim_barrier_costs {
    double enter;   /**< from the call to the processor that takes the steps */
    double first;   /**< that processor, to send what needs no other message before it */
    double send;    /**< likewise, each message that another one triggers */
    double receive; /**< and each message that comes */
    double latency; /**< from processor to processor, when nothing is in the way */
    double leave;   /**< from there to the end of the call */
    double ack;     /**< each side, for the acknowledgement of each message; 0: there are none */
} sim_barrier_costs_t;

typedef struct sim_barrier {
    sim_barrier_costs_t costs;
    nicbarrier_schedule_kind_t schedule;
    int32_t members;
    int barriers;               /**< one after another */
    double jitter;              /**< mean of what each message is late, nanoseconds */
    double loss;                /**< of all messages, those that ask again included */
    nicbarrier_timing_t timing; /**< when members ask again; counts where `loss` > 0 */
    uint64_t seed;
} sim_barrier_t;

typedef struct sim_barrier_result {
    bool complete;  /**< all members have left all barriers */
    bool early;     /**< one left before all had entered */
    double time;    /**< of a barrier, on average, from the first entry to the last end */
    double longest; /**< of one */
    uint64_t messages, lost, nacks, repeats; /**< messages: without nacks and repeats */
    uint64_t events;
} sim_barrier_result_t;

/** Runs it. Ends the program where memory is exhausted: about 0.9 KiB for a member, 2.8 KiB with
 *  loss. */
sim_barrier_result_t sim_barrier(const sim_barrier_t *b);
