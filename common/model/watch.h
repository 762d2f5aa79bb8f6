/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Transfers that are watched for what they take: one, or several of a kind that follow each
 *  other to one peer by the same choice, before they are waited for together. Those count as one
 *  that is as long as all of them, since messages overlap. What is noted is what a transfer has
 *  cost both sides, without what either waited for the other.
 *
 *  Pure; the caller serialises, but for onic_watch_choice. Time is in ticks of a clock that both
 *  sides share; `nsec` is the length of one. */
#pragma once

#include "common/model/learn.h"

/** All zero: nothing is watched. */
typedef struct onic_watch {
    onic_learn_cell_t *cell; /**< of what is watched; NULL: nothing */
    unsigned choice;
    uint64_t bytes;   /**< of all of them */
    uint64_t number;  /**< of the last, as the caller counts operations */
    uint64_t begun;   /**< when the first call began */
    uint64_t ended;   /**< when the last call had ended */
    uint64_t gaps;    /**< between calls */
    uint64_t waited;  /**< when waiting for them began */
    uint64_t arrived; /**< when it ended; 0: not yet */
} onic_watch_t;

/** Nothing is watched any more. */
static inline void onic_watch_forget(onic_watch_t *w)
{
    __atomic_store_n(&w->cell, NULL, __ATOMIC_RELAXED);
}

/** Are transfers of this cell watched, and by which choice do they go? Any thread at any time:
 * where others begin meanwhile, the choice may be theirs. */
static inline bool onic_watch_choice(const onic_watch_t *w, const onic_learn_cell_t *cell,
                                     unsigned *choice)
{
    if (__atomic_load_n(&w->cell, __ATOMIC_RELAXED) != cell)
        return false;
    *choice = __atomic_load_n(&w->choice, __ATOMIC_RELAXED);
    return true;
}

/** A transfer begins of which nothing is under way; `number` is its operation's. */
static inline void onic_watch_begin(onic_watch_t *w, onic_learn_cell_t *cell, unsigned choice,
                                    uint64_t number, uint64_t bytes, uint64_t now)
{
    __atomic_store_n(&w->choice, choice, __ATOMIC_RELAXED);
    __atomic_store_n(&w->cell, cell, __ATOMIC_RELAXED);
    w->bytes = bytes;
    w->number = number;
    w->begun = w->ended = now;
    w->gaps = w->waited = w->arrived = 0;
}

/** Another one begins behind those; of another kind: nothing is watched any more. */
static inline void onic_watch_add(onic_watch_t *w, const onic_learn_cell_t *cell, unsigned choice,
                                  uint64_t number, uint64_t bytes, uint64_t now)
{
    if (w->cell != cell || w->choice != choice || w->number + 1 != number || w->arrived != 0) {
        onic_watch_forget(w);
        return;
    }
    w->number = number;
    w->bytes += bytes;
    w->gaps += now - w->ended;
    w->ended = now;
}

/** The call of the last one has ended. */
static inline void onic_watch_called(onic_watch_t *w, uint64_t now)
{
    w->ended = now;
}

/** They are waited for; `number` is that of the last operation of all. */
static inline void onic_watch_wait(onic_watch_t *w, uint64_t number, uint64_t now)
{
    if (w->number != number)
        onic_watch_forget(w);
    w->waited = now;
}

/** What they took, nanoseconds, where the wait until `now` was for all that both sides do. 0 where
 *  that cannot be known: the application has worked meanwhile. */
static inline double onic_watch_took(const onic_watch_t *w, uint64_t now, double nsec)
{
    const double took = (double)(now - w->begun) * nsec;

    return onic_learn_is_whole((double)(w->gaps + w->waited - w->ended) * nsec, took) ? took : 0;
}

/** The same where the origin did not wait for the target, which has published from when to when it
 *  was busy with them: what the calls took, and what the target took after them; where the data
 *  comes back (`returns`) until the origin's wait was over. 0 also where that is something else. */
static inline double onic_watch_told(const onic_watch_t *w, bool returns, uint64_t from,
                                     uint64_t to, double nsec)
{
    const uint64_t end = returns ? w->arrived : to;
    const uint64_t since = from > w->ended ? from : w->ended;
    const uint64_t gaps = w->gaps + (returns ? w->waited - w->ended : 0);
    const double took = (double)(w->ended - w->begun + (end > since ? end - since : 0)) * nsec;

    if (from < w->begun || to < from)
        return 0;
    return onic_learn_is_whole((double)gaps * nsec, took) ? took : 0;
}

/* ---- alone --------------------------------------------------------------------------------------
 *
 * Is a transfer the only one until what was begun is waited for? What is begun and waited for by
 * threads that meet may be miscounted once. */

/** All zero: nothing was begun. */
typedef struct onic_alone {
    uint32_t begun; /**< since what was begun was last waited for */
    bool one;       /**< it was one before that */
} onic_alone_t;

/** A transfer begins. Is it the first, and was the one before it alone? */
static inline bool onic_alone_begin(onic_alone_t *a)
{
    const uint32_t begun = __atomic_load_n(&a->begun, __ATOMIC_RELAXED);

    __atomic_store_n(&a->begun, begun + 1, __ATOMIC_RELAXED);
    return begun == 0 && __atomic_load_n(&a->one, __ATOMIC_RELAXED);
}

/** What was begun, if anything, is waited for. */
static inline void onic_alone_wait(onic_alone_t *a)
{
    const uint32_t begun = __atomic_load_n(&a->begun, __ATOMIC_RELAXED);

    if (begun == 0)
        return;
    __atomic_store_n(&a->one, begun == 1, __ATOMIC_RELAXED);
    __atomic_store_n(&a->begun, 0, __ATOMIC_RELAXED);
}

/* ---- bursts -------------------------------------------------------------------------------------
 *
 * Transfers that are under way together, a burst: each by itself says nothing of what it
 * takes, all of them do. A burst lasts from the first transfer until none is under way. It teaches
 * where all are of one kind, go the same way, and end well. Pure; the caller serialises. */

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
