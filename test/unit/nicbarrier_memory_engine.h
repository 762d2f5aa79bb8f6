/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The simplest engine there can be: the rule of epochs (rule.h), and words that travel through the
 * memory of this process in whatever order, twice or not at all. What tests ask of engines they can
 * ask of this one; and it can be broken on purpose, to see that the tests notice.
 */
#pragma once

#include "coll_nicbarrier/engines/engine.h"
#include "test/unit/unit.h"

extern const nicbarrier_engine_t nicbarrier_engine_memory;

/** What is broken. */
typedef enum memory_mutant {
    MEMORY_SOUND,
    MEMORY_SKIPS_A_WAIT,       /**< member 0 does not wait in the first step that does */
    MEMORY_NEVER_REPEATS,      /**< what is lost is lost */
    MEMORY_COUNTS_WORDS,       /**< each word counts for one epoch more, whatever it says */
    MEMORY_ENTERS_BACKWARDS,   /**< an epoch that was entered already is entered again */
    MEMORY_COMPLETES_TOO_MUCH, /**< what was entered here is complete when anything is */
    MEMORY_LEAVES_NOTHING,     /**< who has disconnected answers nobody */
    MEMORY_FAILS_ALONE,        /**< a failure is not passed on */
    MEMORY_COMPLETES_FAILURES, /**< a failure completes what was entered */
    MEMORY_MUTANTS
} memory_mutant_t;

/** Forgets everything, and begins anew with nothing broken. */
void memory_engine_reset(uint64_t seed, memory_mutant_t mutant);

/** Something happens on the way, or somebody asks again for what it waits for. */
void memory_engine_pass(void);
