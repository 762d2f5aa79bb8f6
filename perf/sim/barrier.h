/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Barriers of many members over a network that may delay and lose messages, with the rule,
 * the schedules and the timers of coll_nicbarrier: the same code as in an engine decides what is
 * sent, waited for and asked for again (Yu, Buntinas, Graham and Panda 2004, sections 5 and 6). A
 * member has one processor, its host's or its adapter's, which takes the steps. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "coll_nicbarrier/epoch/nack.h"
#include "coll_nicbarrier/schedule/schedule.h"

/** Costs of a member and of a message; nanoseconds. */
typedef struct sim_barrier_costs {
    double enter;   /**< from the call to the processor that takes the steps */
    double first;   /**< that processor's time to send what needs no earlier message */
    double send;    /**< its time for each message that another one triggers */
    double receive; /**< its time for each message received */
    double latency; /**< from processor to processor, without contention */
    double leave;   /**< from there to the end of the call */
    double ack;     /**< on each side, for the acknowledgement of each message; 0: there are none */
} sim_barrier_costs_t;

typedef struct sim_barrier {
    sim_barrier_costs_t costs;
    nicbarrier_schedule_kind_t schedule;
    int32_t members;
    int barriers;     /**< number of barriers, in sequence */
    double jitter;    /**< mean delay of a message, nanoseconds */
    double late;      /**< nanoseconds that member 0 computes before each barrier */
    double loss;      /**< share of all messages, including NACKs */
    uint64_t silence; /**< nanoseconds after which members ask again; used if `loss` > 0 */
    uint64_t seed;
} sim_barrier_t;

typedef struct sim_barrier_result {
    bool complete;  /**< all members have left all barriers */
    bool early;     /**< a member left before all had entered */
    double time;    /**< mean time of a barrier, from the first entry to the last end */
    double longest; /**< the longest time of a barrier */
    uint64_t messages, lost, nacks, repeats; /**< messages: without NACKs and repeats */
    uint64_t events;
} sim_barrier_result_t;

/** Runs the simulation. Ends the program if memory is exhausted; it needs about 0.9 KiB for a
 *  member, 2.8 KiB with loss. */
sim_barrier_result_t sim_barrier(const sim_barrier_t *b);
