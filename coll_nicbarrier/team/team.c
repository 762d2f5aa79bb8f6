/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coll_nicbarrier/team/team.h"

#include <sched.h>
#include <stdlib.h>

#include "common/transport/shm/segment.h"
#include "common/support/clock.h"
#include "common/support/pause.h"

/** How often a waiting thread checks whether others have died, and how many it checks at a time. */
#define CHECK_NSEC    100000000U
#define CHECK_MEMBERS 4

/** Most microseconds of one sleep. */
#define SLEEP_USEC 500U
/** One in this many barriers that need no waiting calls Open MPI's progress. */
#define ENTRIES_PER_PROGRESS 128U

/* ---- making --------------------------------------------------------------------------------- */

nicbarrier_team_t *nicbarrier_team_new(int polls, void (*progress)(void))
{
    nicbarrier_team_t *t = calloc(1, sizeof(*t));
    if (t != NULL) {
        t->polls = (unsigned)polls;
        t->processors = NICBARRIER_SHARED;
        t->progress = progress;
    }
    return t;
}

void nicbarrier_team_attach(nicbarrier_team_t *t, onic_segment_t *segment, size_t offset, int n,
                            int me, int fanout, bool network)
{
    nicbarrier_shm_attach(&t->shm, (char *)segment->base + offset, n, me, fanout, network);
    t->on_node = true;
    t->segment = *segment;
    *segment = (onic_segment_t){NULL, 0};
}

void nicbarrier_team_free(nicbarrier_team_t *t)
{
    if (t == NULL)
        return;
    if (t->net != NULL)
        t->engine->disconnect(t->net);
    onic_segment_unmap(&t->segment);
    free(t);
}

void nicbarrier_team_fail(nicbarrier_team_t *t)
{
    if (t->on_node)
        nicbarrier_shm_fail(&t->shm);
    if (t->net != NULL)
        t->engine->fail(t->net);
}

/* ---- entering ------------------------------------------------------------------------------- */

/** Run by the leader of a node: enters the node's epochs in the engine. Two threads may enter the
 *  same ones, which does no harm. */
static void submit(nicbarrier_team_t *t)
{
    const uint64_t arrived = nicbarrier_shm_arrived(&t->shm);
    if (arrived > atomic_load_explicit(&t->given, memory_order_relaxed)) {
        atomic_store_explicit(&t->given, arrived, memory_order_relaxed);
        t->engine->enter(t->net, arrived);
    }
}

void nicbarrier_team_enter(nicbarrier_team_t *t, uint64_t epoch)
{
    if (!t->on_node) {
        t->engine->enter(t->net, epoch);
        return;
    }
    nicbarrier_shm_enter(&t->shm, epoch);
    if (t->net != NULL)
        submit(t);
}

void nicbarrier_team_depart(nicbarrier_team_t *t)
{
    if (t->on_node)
        nicbarrier_shm_depart(&t->shm);
}

/* ---- completion ----------------------------------------------------------------------------- */

bool nicbarrier_team_done(nicbarrier_team_t *t, uint64_t epoch)
{
    return t->on_node ? nicbarrier_shm_done(&t->shm, epoch) : t->engine->completed(t->net) >= epoch;
}

bool nicbarrier_team_failed(nicbarrier_team_t *t)
{
    const bool net = t->net != NULL && t->engine->failed(t->net);
    const bool node = t->on_node && nicbarrier_shm_failed(&t->shm);
    /* Each side passes a failure on to the other. */
    if ((net && t->on_node && !node) || (node && t->net != NULL && !net))
        nicbarrier_team_fail(t);
    return net || node;
}

void nicbarrier_team_check_members(nicbarrier_team_t *t, uint64_t now)
{
    const uint64_t next = atomic_load_explicit(&t->next_check, memory_order_relaxed);
    if (!t->on_node || now < next)
        return;
    atomic_store_explicit(&t->next_check, now + CHECK_NSEC, memory_order_relaxed);
    if (next == 0)
        return;
    uint32_t from = atomic_fetch_add(&t->checked, CHECK_MEMBERS);
    if (nicbarrier_shm_has_dead(&t->shm, (int)(from % (uint32_t)t->shm.n), CHECK_MEMBERS))
        nicbarrier_shm_fail(&t->shm);
}

int nicbarrier_team_progress(nicbarrier_team_t *t)
{
    if (t->net == NULL)
        return 0;
    if (t->on_node)
        submit(t);
    return t->engine->progress(t->net);
}

/* ---- waiting: does what waiting.h decides --------------------------------------------------- */

static bool poll(nicbarrier_team_t *t, uint64_t epoch)
{
    (void)nicbarrier_team_progress(t);
    return nicbarrier_team_done(t, epoch);
}

/** True if nothing is left to wait for. */
static bool is_over(nicbarrier_team_t *t, uint64_t epoch)
{
    return poll(t, epoch) || nicbarrier_team_failed(t) ||
           (t->ended != NULL && t->ended(t->ended_arg));
}

/** Sleeps on the network if this thread drives it and something is under way there, else on the
 *  flags. */
static void nap(nicbarrier_team_t *t, uint64_t epoch)
{
    if (t->net == NULL)
        nicbarrier_shm_sleep(&t->shm, epoch, SLEEP_USEC);
    else if (t->on_node && nicbarrier_shm_arrived(&t->shm) <= t->engine->completed(t->net))
        nicbarrier_shm_sleep_for_node(&t->shm, epoch, SLEEP_USEC);
    else if (t->engine->wait != NULL)
        t->engine->wait(t->net, SLEEP_USEC);
    else
        sched_yield();
}

static void act(nicbarrier_team_t *t, uint64_t epoch, unsigned actions)
{
    if ((actions & NICBARRIER_WAIT_PAUSE) != 0)
        onic_pause();
    if ((actions & NICBARRIER_WAIT_PROGRESS) != 0)
        t->progress();
    if ((actions & NICBARRIER_WAIT_YIELD) != 0)
        sched_yield();
    if ((actions & NICBARRIER_WAIT_SLEEP) != 0)
        nap(t, epoch);
    if ((actions & NICBARRIER_WAIT_CHECK) != 0)
        nicbarrier_team_check_members(t, onic_now_nsec());
}

bool nicbarrier_team_wait(nicbarrier_team_t *t, uint64_t epoch)
{
    bool done = poll(t, epoch);
    if (!done) {
        unsigned n = 0;
        do
            act(t, epoch, nicbarrier_waiting_action(++n, t->polls, t->processors));
        while (!is_over(t, epoch));
        done = nicbarrier_team_done(t, epoch);
    }
    nicbarrier_team_depart(t);
    if (epoch % ENTRIES_PER_PROGRESS == 0)
        t->progress();
    return done;
}
