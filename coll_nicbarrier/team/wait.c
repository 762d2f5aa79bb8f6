/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file How threads wait for a team: does what waiting.h decides. */
#include <sched.h>
#include <sys/resource.h>

#include "coll_nicbarrier/team/team.h"
#include "coll_nicbarrier/team/waiting.h"
#include "common/support/clock.h"
#include "common/support/pause.h"

/** A nap ends after so many microseconds. */
#define SLEEP_USEC 500U
/** Of the waits in which a thread yields, one in so many is timed. */
#define WAITS_PER_SAMPLE 8U
/** Of the barriers that need no waiting, one in so many calls Open MPI's progress. */
#define ENTRIES_PER_PROGRESS 128U

static bool poll(nicbarrier_team_t *t, uint64_t epoch)
{
    (void)nicbarrier_team_progress(t);
    return nicbarrier_team_done(t, epoch);
}

/** Is there nothing to wait for any more? */
static bool is_over(nicbarrier_team_t *t, uint64_t epoch)
{
    return poll(t, epoch) || nicbarrier_team_failed(t) ||
           (t->ended != NULL && t->ended(t->ended_arg));
}

/** A thread that drives the network sleeps on it, the others on the flags. */
static void nap(nicbarrier_team_t *t, uint64_t epoch)
{
    if (t->net == NULL) {
        nicbarrier_shm_sleep(&t->shm, epoch, SLEEP_USEC);
    } else if (t->engine->wait == NULL) {
        sched_yield();
    } else if (!t->on_node) {
        t->engine->wait(t->net, SLEEP_USEC);
    } else {
        /* A process that arrives now must wake the helper thread. */
        atomic_fetch_sub(&t->shm.head->attentive, 1);
        if (!poll(t, epoch)) {
            t->engine->wait(t->net, SLEEP_USEC);
        }
        atomic_fetch_add(&t->shm.head->attentive, 1);
    }
}

static long times_displaced(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

static void act(nicbarrier_team_t *t, uint64_t epoch, nicbarrier_waiting_t *w, unsigned actions)
{
    if ((actions & NICBARRIER_WAIT_PROGRESS) != 0) {
        t->config.progress();
    }
    if ((actions & NICBARRIER_WAIT_YIELD) != 0) {
        sched_yield();
    }
    if ((actions & NICBARRIER_WAIT_SLEEP) != 0) {
        nap(t, epoch);
    }
    if ((actions & NICBARRIER_WAIT_TIME) != 0) {
        const uint64_t now = onic_now_nsec();
        if (nicbarrier_waiting_is_due(w, now)) {
            nicbarrier_waiting_turn(w, now, times_displaced());
            nicbarrier_team_check_members(t, now);
        }
    }
}

static void wait_long(nicbarrier_team_t *t, uint64_t epoch)
{
    const bool sample = epoch % WAITS_PER_SAMPLE == 0;
    nicbarrier_waiting_t w = {.start = sample ? onic_now_nsec() : 0};
    while (!is_over(t, epoch)) {
        act(t, epoch, &w, nicbarrier_waiting_next(&w));
    }
    const int shared = sample ? nicbarrier_waiting_is_shared(&w, onic_now_nsec()) : -1;
    if (shared >= 0) {
        atomic_store_explicit(&t->spins, shared ? 0 : t->config.spins_max, memory_order_relaxed);
    }
}

static bool spin(nicbarrier_team_t *t, uint64_t epoch)
{
    for (int left = atomic_load_explicit(&t->spins, memory_order_relaxed); left > 0; left--) {
        if (poll(t, epoch)) {
            return true;
        }
        onic_pause();
    }
    return poll(t, epoch);
}

bool nicbarrier_team_wait(nicbarrier_team_t *t, uint64_t epoch)
{
    const bool leads = t->on_node && t->net != NULL;
    if (leads) {
        atomic_fetch_add(&t->shm.head->attentive, 1);
    }
    bool done = spin(t, epoch);
    if (!done) {
        wait_long(t, epoch);
        done = nicbarrier_team_done(t, epoch);
    }
    if (leads) {
        /* A process that has arrived in between for a later epoch has not woken the helper thread.
         */
        atomic_fetch_sub(&t->shm.head->attentive, 1);
        nicbarrier_team_submit(t);
    }
    nicbarrier_team_depart(t);
    if (epoch % ENTRIES_PER_PROGRESS == 0) {
        t->config.progress();
    }
    return done;
}
