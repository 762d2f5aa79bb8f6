/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coll_nicbarrier/team/team.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "coll_nicbarrier/team/oversubscription.h"
#include "common/support/clock.h"
#include "common/support/pause.h"
#include "common/node/segment.h"

/** A thread that has waited this long looks whether others want its processor. If so it sleeps in
 * the kernel, where it costs nobody anything. If not it goes on with Open MPI's progress, since
 * others may be waiting for what that answers: one-sided communication, long messages. */
#define SLEEP_AFTER_NSEC 100000U
/** A sleeper wakes up now and then, because others may need what Open MPI does in its progress. */
#define SLEEP_USEC 500U
/** And looks after so many naps whether its processor is still wanted. */
#define NAPS 16
/** Of Open MPI's progress, so many turns to one yield. */
#define PROGRESS_PER_YIELD 4
/** One who waits looks so often whether others have died, at so many of them. */
#define LOOK_NSEC    100000000U
#define LOOK_MEMBERS 4
/** Of the waits in which a thread yields, one in so many is timed. */
#define WAITS_PER_SAMPLE 8U
/** Of the yields of a wait, one in so many is followed by Open MPI's progress. */
#define YIELDS_PER_PROGRESS 8U
/** Of the barriers that need no waiting, one in so many calls it. */
#define ENTRIES_PER_PROGRESS 128U

/* ---- making --------------------------------------------------------------------------------- */

nicbarrier_team_t *nicbarrier_team_new(const nicbarrier_team_config_t *config)
{
    nicbarrier_team_t *t = calloc(1, sizeof(*t));
    if (t != NULL) {
        t->config = *config;
        atomic_init(&t->spins, config->oversubscribed ? 0 : config->spins_max);
    }
    return t;
}

int nicbarrier_team_attach(nicbarrier_team_t *t, onic_segment_t *segment, size_t offset, int n,
                           int me, int fanout, bool network)
{
    if (offset > segment->size || nicbarrier_shm_bytes(n) > segment->size - offset ||
        nicbarrier_shm_attach(&t->shm, (char *)segment->base + offset, n, me, fanout, network) !=
            0) {
        return -1;
    }
    t->on_node = true;
    t->segment = *segment;
    *segment = (onic_segment_t){NULL, 0};
    return 0;
}

static void net_complete(void *arg, uint64_t epoch)
{
    nicbarrier_team_t *t = arg;
    nicbarrier_shm_release(&t->shm, epoch);
}

static uint64_t net_entered(void *arg)
{
    nicbarrier_team_t *t = arg;
    return nicbarrier_shm_arrived(&t->shm);
}

int nicbarrier_team_prepare(nicbarrier_team_t *t, const nicbarrier_group_t *group, void *bytes,
                            uint32_t *len_p, nicbarrier_reason_t *why)
{
    return t->engine->prepare(group, &t->net, bytes, len_p, why);
}

int nicbarrier_team_connect(nicbarrier_team_t *t, const nicbarrier_endpoints_t *endpoints,
                            nicbarrier_reason_t *why)
{
    nicbarrier_net_events_t events = {NULL, NULL, t};
    if (t->on_node) {
        events.complete = net_complete;
        events.entered = net_entered;
    }
    if (t->engine->connect(t->net, endpoints, &events, why) != 0) {
        return -1;
    }
    if (t->on_node && t->engine->extras->poke_record != NULL) {
        nicbarrier_head_t *head = t->shm.head;
        head->poke_len = t->engine->extras->poke_record(t->net, head->poke);
    }
    return 0;
}

void nicbarrier_team_begin_trial(nicbarrier_team_t *t)
{
    t->engine->enter(t->net, NICBARRIER_TRIAL_EPOCH);
}

void nicbarrier_team_expect(nicbarrier_team_t *t)
{
    if (t->engine->extras->expect != NULL) {
        t->engine->extras->expect(t->net);
    }
}

bool nicbarrier_team_trial_done(nicbarrier_team_t *t)
{
    (void)t->engine->progress(t->net);
    return t->engine->completed(t->net) >= NICBARRIER_TRIAL_EPOCH;
}

bool nicbarrier_team_trial_hopeless(nicbarrier_team_t *t, nicbarrier_reason_t *why)
{
    /* The node is not told: the next engine may do better. */
    if (t->engine->extras->failure != NULL &&
        t->engine->extras->failure(t->net) != NICBARRIER_SOUND) {
        nicbarrier_reason(why, "a connection was lost");
        return true;
    }
    return t->engine->extras->hopeless != NULL && t->engine->extras->hopeless(t->net, why);
}

/** May others be ahead of what the engine knows? They may have seen the agreement come to its end,
 *  and entered what it has not been given, because my node has not arrived: a barrier that the
 *  program has forgotten. */
static bool is_unfinished(nicbarrier_team_t *t)
{
    return (t->prepared && !t->agreed) || (t->on_node && nicbarrier_shm_pending(&t->shm));
}

void nicbarrier_team_drop_network(nicbarrier_team_t *t)
{
    if (t->on_node && t->net != NULL) {
        t->shm.head->poke_len = 0;
    }
    if (t->net != NULL && is_unfinished(t) && t->engine->extras->abandon != NULL) {
        t->engine->extras->abandon(t->net);
    }
    if (t->net != NULL) {
        t->engine->disconnect(t->net);
    }
    t->net = NULL;
    t->prepared = false;
    atomic_store_explicit(&t->given, 0, memory_order_relaxed);
}

void nicbarrier_team_free(nicbarrier_team_t *t)
{
    if (t == NULL) {
        return;
    }
    nicbarrier_team_drop_network(t);
    if (t->on_node) {
        nicbarrier_shm_free(&t->shm);
    }
    onic_segment_unmap(&t->segment);
    free(t);
}

void nicbarrier_team_break(nicbarrier_team_t *t)
{
    if (t->on_node) {
        nicbarrier_shm_fail(&t->shm, NICBARRIER_LOST);
    }
    if (t->net != NULL && t->engine->extras->fail != NULL) {
        t->engine->extras->fail(t->net, NICBARRIER_LOST);
    }
}

/* ---- entering ------------------------------------------------------------------------------- */

/** Leader: gives to the engine what the node has entered. */
static void pump(nicbarrier_team_t *t)
{
    uint64_t arrived = nicbarrier_shm_arrived(&t->shm);
    uint64_t given = atomic_load_explicit(&t->given, memory_order_relaxed);
    while (given < arrived) {
        if (atomic_compare_exchange_weak(&t->given, &given, arrived)) {
            t->engine->enter(t->net, arrived);
            return;
        }
    }
}

/** The node has arrived: the leader must get to know. */
static void tell_leader(nicbarrier_team_t *t)
{
    nicbarrier_head_t *head = t->shm.head;
    if (t->net != NULL) {
        pump(t);
    } else if (head->poke_len > 0 && atomic_load(&head->attentive) == 0) {
        t->engine->extras->poke(head->poke, head->poke_len);
    }
}

void nicbarrier_team_enter(nicbarrier_team_t *t, uint64_t epoch)
{
    if (!t->on_node) {
        t->engine->enter(t->net, epoch);
        return;
    }
    if (t->config.skew) {
        nicbarrier_shm_stamp(&t->shm, epoch, onic_now_nsec());
    }
    if (nicbarrier_shm_enter(&t->shm, epoch)) {
        tell_leader(t);
    }
}

void nicbarrier_team_depart(nicbarrier_team_t *t)
{
    if (t->on_node) {
        nicbarrier_shm_depart(&t->shm);
    }
}

bool nicbarrier_team_helped(const nicbarrier_team_t *t)
{
    return t->net != NULL && t->engine->extras->leave != NULL;
}

void nicbarrier_team_leave(nicbarrier_team_t *t)
{
    t->engine->extras->leave(t->net);
}

/* ---- completion ----------------------------------------------------------------------------- */

bool nicbarrier_team_done(nicbarrier_team_t *t, uint64_t epoch)
{
    return t->on_node ? nicbarrier_shm_done(&t->shm, epoch) : t->engine->completed(t->net) >= epoch;
}

/** The leader: what has become of the network part and of the node, each hearing of the other. */
static nicbarrier_failure_t failure_of_leader(nicbarrier_team_t *t)
{
    const nicbarrier_engine_extras_t *extras = t->engine->extras;
    nicbarrier_failure_t net = extras->failure != NULL ? extras->failure(t->net) : NICBARRIER_SOUND;
    if (!t->on_node) {
        return net;
    }
    nicbarrier_failure_t node = nicbarrier_shm_failed(&t->shm);
    if (net > node) {
        nicbarrier_shm_fail(&t->shm, net);
    } else if (node > net && extras->fail != NULL) {
        extras->fail(t->net, node);
    }
    return net > node ? net : node;
}

nicbarrier_failure_t nicbarrier_team_failure(nicbarrier_team_t *t)
{
    if (t->net != NULL) {
        return failure_of_leader(t);
    }
    return t->on_node ? nicbarrier_shm_failed(&t->shm) : NICBARRIER_SOUND;
}

void nicbarrier_team_look_around(nicbarrier_team_t *t, uint64_t now)
{
    uint64_t next = atomic_load_explicit(&t->next_look, memory_order_relaxed);
    if (!t->on_node || now < next ||
        !atomic_compare_exchange_strong(&t->next_look, &next, now + LOOK_NSEC) || next == 0) {
        return;
    }
    uint32_t from = atomic_fetch_add(&t->looked, LOOK_MEMBERS);
    if (nicbarrier_shm_has_dead(&t->shm, (int)(from % (uint32_t)t->shm.n), LOOK_MEMBERS)) {
        nicbarrier_shm_fail(&t->shm, NICBARRIER_DEAD);
    }
}

int nicbarrier_team_progress(nicbarrier_team_t *t)
{
    if (t->net == NULL) {
        return 0;
    }
    if (t->on_node) {
        pump(t);
    }
    return t->engine->progress(t->net);
}

static bool look(nicbarrier_team_t *t, uint64_t epoch)
{
    (void)nicbarrier_team_progress(t);
    return nicbarrier_team_done(t, epoch);
}

/** Is there nothing to wait for any more? */
static bool over(nicbarrier_team_t *t, uint64_t epoch)
{
    return look(t, epoch) || nicbarrier_team_failure(t) != NICBARRIER_SOUND ||
           (t->ended != NULL && t->ended(t->ended_arg));
}

/** Whoever drives the network sleeps on it, the others on the flags. */
static void sleep_a_little(nicbarrier_team_t *t, uint64_t epoch)
{
    if (t->net == NULL) {
        nicbarrier_shm_sleep(&t->shm, epoch, SLEEP_USEC);
    } else if (t->engine->extras->wait == NULL) {
        sched_yield();
    } else if (!t->on_node) {
        t->engine->extras->wait(t->net, SLEEP_USEC);
    } else {
        /* Who arrives now must wake the helper thread. */
        atomic_fetch_sub(&t->shm.head->attentive, 1);
        if (!look(t, epoch)) {
            t->engine->extras->wait(t->net, SLEEP_USEC);
        }
        atomic_fetch_add(&t->shm.head->attentive, 1);
    }
}

/** From how long yields take follows whether others want this processor: then spinning only keeps
 *  those away who are waited for. */
static void learn(nicbarrier_team_t *t, uint64_t nsec, unsigned yields)
{
    bool shared = nicbarrier_is_shared(nsec, yields);
    atomic_store_explicit(&t->spins, shared ? 0 : t->config.spins_max, memory_order_relaxed);
}

/** Sleeps for some naps, by turns with Open MPI's progress. True where it is over. */
static bool wait_asleep(nicbarrier_team_t *t, uint64_t epoch)
{
    for (int nap = 0; nap < NAPS; nap++) {
        if (over(t, epoch)) {
            return true;
        }
        t->config.progress();
        sleep_a_little(t, epoch);
    }
    return over(t, epoch);
}

/** How often somebody else has run in place of this thread, which wanted to go on. */
static long times_displaced(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

/** Progresses Open MPI for a while, and yields. True where it is over; otherwise *wanted_p tells
 *  whether others want this processor. */
static bool wait_awake(nicbarrier_team_t *t, uint64_t epoch, bool *wanted_p)
{
    const long displaced = times_displaced();
    const uint64_t start = onic_now_nsec();
    long yields = 0;
    do {
        for (int turn = 0; turn < PROGRESS_PER_YIELD; turn++) {
            if (over(t, epoch)) {
                return true;
            }
            t->config.progress();
        }
        sched_yield();
        yields++;
    } while (onic_now_nsec() - start < SLEEP_AFTER_NSEC);
    *wanted_p = nicbarrier_is_wanted(times_displaced() - displaced, yields);
    return false;
}

static void wait_very_long(nicbarrier_team_t *t, uint64_t epoch)
{
    bool wanted;
    while (!wait_awake(t, epoch, &wanted) && !(wanted && wait_asleep(t, epoch))) {
        nicbarrier_team_look_around(t, onic_now_nsec());
    }
}

/** Reads the clock seldom: where processors are shared, this is what a barrier costs. */
static void wait_long(nicbarrier_team_t *t, uint64_t epoch)
{
    bool sample = epoch % WAITS_PER_SAMPLE == 0;
    uint64_t start = sample ? onic_now_nsec() : 0;
    unsigned yields = 0;
    while (!over(t, epoch)) {
        sched_yield();
        if (++yields % YIELDS_PER_PROGRESS != 0) {
            continue;
        }
        t->config.progress();
        uint64_t now = onic_now_nsec();
        start = start == 0 ? now : start;
        if (now - start > SLEEP_AFTER_NSEC) {
            wait_very_long(t, epoch);
            return;
        }
    }
    if (sample && yields > 0) {
        learn(t, onic_now_nsec() - start, yields);
    }
}

static bool spin(nicbarrier_team_t *t, uint64_t epoch)
{
    for (int left = atomic_load_explicit(&t->spins, memory_order_relaxed); left > 0; left--) {
        if (look(t, epoch)) {
            return true;
        }
        onic_pause();
    }
    return look(t, epoch);
}

bool nicbarrier_team_wait(nicbarrier_team_t *t, uint64_t epoch)
{
    bool leads = t->on_node && t->net != NULL;
    if (leads) {
        atomic_fetch_add(&t->shm.head->attentive, 1);
    }
    bool done = spin(t, epoch);
    if (!done) {
        wait_long(t, epoch);
        done = nicbarrier_team_done(t, epoch);
    }
    if (leads) {
        /* Who arrived in between for a later epoch has left it to me. */
        atomic_fetch_sub(&t->shm.head->attentive, 1);
        pump(t);
    }
    nicbarrier_team_depart(t);
    if (epoch % ENTRIES_PER_PROGRESS == 0) {
        t->config.progress();
    }
    return done;
}
