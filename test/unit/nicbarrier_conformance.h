/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What every engine must do, as one set of tests, whatever carries the words and wherever the
 * members are. A row says how the members of a group are made and moved; the tests enter, look and
 * compare with what a naive reference says: an epoch is complete when all have entered it.
 *
 * A new engine gets a row in check_nicbarrier_conformance.c and no tests of its own for these
 * things.
 */
#pragma once

#include "coll_nicbarrier/engines/engine.h"
#include "coll_nicbarrier/schedule/schedule.h"
#include "test/unit/unit.h"

enum { CONFORMANCE_MEMBERS_MAX = 9 };

/** What a row may be unable to do. */
typedef enum conformance_ability {
    CONFORMANCE_LATE,      /**< a member connects when others have entered */
    CONFORMANCE_BACKWARDS, /**< an epoch is entered that is less than one entered already */
    CONFORMANCE_ABANDON,   /**< a member goes that has not completed what the others enter */
    CONFORMANCE_FAIL,      /**< a member is told that the group has failed */
    CONFORMANCE_CUT,       /**< a member's connections break */
    CONFORMANCE_TOGETHER,  /**< all members move at the same time */
    CONFORMANCE_ABILITIES
} conformance_ability_t;

/** Members are numbered from 0. */
typedef struct conformance_row {
    const char *name;
    int every;    /**< of the cases of each test one in so many is run: 1, or more where it takes
                       long */
    int steps;    /**< of a random run */
    int quiet;    /**< calls of `pass` after which something is taken never to happen */
    int patience; /**< calls of `pass` in which what must happen happens */

    /** Makes `n` members that have prepared, none of which is connected. */
    void (*begin)(int n, nicbarrier_schedule_kind_t schedule, uint64_t seed);
    void (*connect)(int i);
    void (*enter)(int i, uint64_t epoch);
    uint64_t (*completed)(int i);
    bool (*failed)(int i);
    void (*progress)(int i);
    /** Time passes. */
    void (*pass)(void);
    void (*disconnect)(int i);
    /** All have disconnected: what they had must have been given back. */
    void (*end)(void);
    void (*fail)(int i);
    void (*cut)(int i);
    /** All enter and complete the epochs up to `last` one by one, each by itself. Between an epoch
     *  and the next each looks whether all have written conformance_note for it. */
    void (*together)(uint64_t last);

    /** Why it cannot do that; NULL: it can. */
    const char *cannot[CONFORMANCE_ABILITIES];
} conformance_row_t;

/** The engine has released the node of a member up to this epoch: for rows whose members are in
 *  this process. */
void conformance_told(int member, uint64_t epoch);

/** What members write before they enter an epoch: for this one and the one before. Not atomic: it
 *  is the barrier that orders them. Zeroed memory is a good beginning. */
typedef struct conformance_notes {
    uint64_t entered[2][CONFORMANCE_MEMBERS_MAX];
} conformance_notes_t;

static inline void conformance_note(conformance_notes_t *notes, int member, uint64_t epoch)
{
    notes->entered[epoch % 2][member] = epoch;
}

/** Behind the epoch: have all of the `n` written theirs? */
static inline bool conformance_noted(const conformance_notes_t *notes, int n, uint64_t epoch)
{
    bool all = true;

    for (int i = 0; i < n; i++)
        all &= notes->entered[epoch % 2][i] == epoch;
    return all;
}

/** One of the tests, with any number of a case. */
void conformance_cut_off(const conformance_row_t *row, int which);

/** Adds the tests for all rows to the suite, and prints what is skipped and why. */
void conformance_add(Suite *suite, const conformance_row_t *const *rows, int n);
