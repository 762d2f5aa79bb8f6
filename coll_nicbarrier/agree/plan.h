/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What all ranks of a communicator conclude from the facts of each: which ranks share a
 *  node, which lead, which engine is best. All ranks conclude the same. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "coll_nicbarrier/engines/engine.h"
#include "coll_nicbarrier/team/waiting.h"

/** What each rank sends to all others. */
typedef struct nicbarrier_facts {
    uint64_t key;           /**< a random number, never 0: that of rank 0 names the group */
    uint64_t processor_set; /**< a hash of the processors that it may run on */
    int32_t processors;     /**< how many these are; 0: not known */
    int32_t first;          /**< the first rank of its node, as it sees it */
    uint64_t place;         /**< where it runs: near processes have near numbers */
    uint8_t score[NICBARRIER_ENGINES_MAX]; /**< its score for each engine; 0: not to be used */
} nicbarrier_facts_t;

/** What the user asks for. The same on all ranks. */
typedef struct nicbarrier_options {
    int engine;  /**< its number, or NICBARRIER_ANY_ENGINE */
    int32_t ppn; /**< most processes of a node behind one leader; 0: all */
} nicbarrier_options_t;

typedef struct nicbarrier_plan {
    int32_t size;
    int32_t first;                         /**< first rank of my node */
    int32_t n;                             /**< members of my node */
    int32_t index;                         /**< my index among them */
    int32_t limit;                         /**< most members behind one leader, 1 .. n */
    int32_t leaders;                       /**< number of leaders in all */
    int32_t leader;                        /**< my index among them, or -1 */
    uint8_t score[NICBARRIER_ENGINES_MAX]; /**< the least score of all leaders */
    int32_t *rank;                         /**< the rank of each leader */
} nicbarrier_plan_t;

/** Most processes of a node of `n` behind one leader: 1 .. n. */
int32_t nicbarrier_limit(const nicbarrier_options_t *options, int32_t n, int32_t size);

/** How rank `me` shares its processors with members of its node that may run on the same ones.
 *  Members with other sets that overlap do not count: they have processors besides.
 *  @param online processors of the node: a rank that may run on all of them is not bound */
nicbarrier_processors_t nicbarrier_plan_processors(const nicbarrier_facts_t *all, int32_t size,
                                                   int32_t me, long online);

/** The plan of rank `me`. `room` for 3 * size numbers must stay as long as the plan. */
nicbarrier_plan_t nicbarrier_plan(const nicbarrier_options_t *options,
                                  const nicbarrier_facts_t *all, int32_t size, int32_t me,
                                  int32_t *room);

/** My place among the members behind my leader, 0 .. their number - 1: those that run near each
 *  other are neighbours. */
int32_t nicbarrier_plan_position(const nicbarrier_plan_t *plan, const nicbarrier_facts_t *all,
                                 int32_t me);

/** For several leaders: the best network engine, or NICBARRIER_ANY_ENGINE. */
int nicbarrier_choose(const nicbarrier_plan_t *plan, const nicbarrier_options_t *options);

/** Most partners of a leader. */
#define NICBARRIER_PARTNERS_MAX (2 * NICBARRIER_STEPS_MAX)

/** Writes the indices of a member's partners in its group's schedule, each once, and returns their
 *  number. Partnership is mutual. */
int nicbarrier_partners(const nicbarrier_group_t *group, int32_t partner[NICBARRIER_PARTNERS_MAX]);
