/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Transfers that are under way together, a burst: each by itself says nothing of what it
 *  takes, all of them do. A burst lasts from the first transfer until none is under way. It teaches
 *  where all are of one kind, go the same way, and end well. Pure; the caller serialises. */
#pragma once

#include "common/model/learn.h"

/** Most transfers that go as the first one, which may be a trial: a burst may never end. */
#define ONIC_BURST_MOST 64

/** All zero: nothing is under way. */
typedef struct onic_burst {
    unsigned under_way;
    unsigned joined;         /**< transfers behind the first one */
    onic_learn_cell_t *cell; /**< the kind of all; NULL: the burst teaches nothing */
    unsigned choice;         /**< how all go */
    uint64_t bytes;
    uint64_t begun; /**< nanoseconds */
} onic_burst_t;

/** Another transfer begins, which `able` says how it can go, a bit for each choice. True where it
 *  goes as the burst does, by `choice`; else a choice is to be made for it. */
static inline bool onic_burst_enter(onic_burst_t *b, const onic_learn_cell_t *cell, unsigned able,
                                    uint64_t bytes)
{
    const bool joins = b->under_way++ > 0 && b->cell == cell && b->joined < ONIC_BURST_MOST &&
                       (able >> b->choice & 1) != 0;

    if (!joins) {
        b->cell = NULL;
        return false;
    }
    b->bytes += bytes;
    b->joined++;
    return true;
}

/** Can the burst teach what the transfer that has just entered takes: is it the first? */
static inline bool onic_burst_is_first(const onic_burst_t *b)
{
    return b->under_way == 1;
}

/** The first transfer of a burst that is to teach begins now. */
static inline void onic_burst_begin(onic_burst_t *b, onic_learn_cell_t *cell, unsigned choice,
                                    uint64_t bytes, uint64_t now)
{
    b->cell = cell;
    b->joined = 0;
    b->choice = choice;
    b->bytes = bytes;
    b->begun = now;
}

/** One goes another way than it was chosen to. */
static inline void onic_burst_spoil(onic_burst_t *b)
{
    b->cell = NULL;
}

/** A transfer is over. Behind the last one what the burst took is noted. */
static inline void onic_burst_leave(onic_burst_t *b, onic_learn_budget_t *budget, bool well,
                                    uint64_t now)
{
    if (!well)
        b->cell = NULL;
    if (--b->under_way == 0 && b->cell != NULL)
        onic_learn_note(b->cell, budget, b->choice, b->bytes, (double)(now - b->begun));
}
