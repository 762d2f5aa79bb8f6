/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * A simulated cluster for the barrier protocol: processes that make groups, enter barriers with
 * several outstanding, stop for a long time and free their groups, over a network that delays,
 * loses, doubles and reorders.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "coll_nicbarrier/schedule/schedule.h"

/** What is broken on purpose, to see that it shows. */
typedef enum sim_mutant {
    SIM_SOUND,
    SIM_NO_TOMBSTONE,   /**< who has freed a group answers no NACK for it */
    SIM_NO_ANSWER,      /**< NACKs are not answered */
    SIM_NO_NACK,        /**< nobody asks */
    SIM_NOT_CUMULATIVE, /**< a message counts for its own epoch only */
    SIM_ONE_NACK,       /**< each wait asks only once */
    SIM_STEP_SKIPPED,   /**< the first step that waits does not */
    SIM_MUTANTS
} sim_mutant_t;

typedef struct sim_config {
    nicbarrier_schedule_kind_t schedule;
    int32_t n;         /**< processes, all in every group */
    int groups;        /**< made and freed one after another */
    int barriers;      /**< in each group */
    int outstanding;   /**< at once, at most */
    uint64_t start;    /**< epoch that all groups have behind them at the start */
    unsigned loss;     /**< of 1000 packets */
    unsigned twice;    /**< likewise */
    unsigned late;     /**< likewise: take milliseconds in place of microseconds */
    unsigned stops;    /**< of 1000 actions of a process: it is then away for a long time, half of
                            the times together with its helper thread */
    uint64_t computes; /**< nanoseconds between actions of process 0, while its packets are
                          answered;        0: as the others */
    int fails;         /**< process 0 finds a failure after so many barriers; 0: never */
    sim_mutant_t mutant;
    uint64_t seed;
} sim_config_t;

typedef struct sim_result {
    bool all_left;        /**< everybody completed all barriers of all groups */
    bool left_early;      /**< somebody left before all had entered */
    uint64_t nanoseconds; /**< simulated */
    uint64_t messages;    /**< sent without being asked */
    uint64_t nacks;
    uint64_t answers;      /**< to NACKs, from groups that exist */
    uint64_t tomb_answers; /**< from groups that were freed */
    uint64_t late;         /**< NACKs for what was not sent yet */
    uint64_t failed;       /**< processes that heard of the failure */
    uint64_t wrong;        /**< messages refused; must not happen */
} sim_result_t;

sim_result_t sim_run(const sim_config_t *config);
