/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/ompi_compat.h"
#include "common/pause.h"

#include "coll_nicbarrier/carrier.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "coll_nicbarrier/crowd.h"
#include "coll_nicbarrier/module.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/proc.h"

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
/** Of the waits in which a thread yields, one in so many is timed. */
#define WAITS_PER_SAMPLE 8U
/** Of the yields of a wait, one in so many is followed by Open MPI's progress. */
#define YIELDS_PER_PROGRESS 8U
/** Of the barriers that need no waiting, one in so many calls it. */
#define ENTRIES_PER_PROGRESS 128U

const nicbarrier_engine_t *nicbarrier_engine(nicbarrier_kind_t kind)
{
    static const nicbarrier_engine_t *const engines[NICBARRIER_KINDS] = {
        [NICBARRIER_PUT] = &nicbarrier_engine_put,
        [NICBARRIER_DATAGRAM] = &nicbarrier_engine_datagram,
    };
    return engines[kind];
}

static uint64_t now_nsec(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

/* ---- making --------------------------------------------------------------------------------- */

nicbarrier_carrier_t *nicbarrier_carrier_new(void)
{
    const nicbarrier_params_t *p = &mca_coll_nicbarrier_component.params;
    nicbarrier_carrier_t *c = calloc(1, sizeof(*c));
    if (c != NULL) {
        long processors = sysconf(_SC_NPROCESSORS_ONLN);
        bool crowded = (long)opal_process_info.num_local_peers + 1 > processors;
        c->skew = p->skew;
        c->spins_max = p->spin;
        atomic_init(&c->spins, crowded ? 0 : p->spin);
    }
    return c;
}

static void net_complete(void *arg, uint64_t epoch)
{
    nicbarrier_carrier_t *c = arg;
    nicbarrier_shm_release(&c->shm, epoch);
}

static uint64_t net_entered(void *arg)
{
    nicbarrier_carrier_t *c = arg;
    return nicbarrier_shm_arrived(&c->shm);
}

int nicbarrier_carrier_offer(nicbarrier_carrier_t *c, const nicbarrier_group_t *group, void *bytes,
                             uint32_t *len_p, nicbarrier_reason_t *why)
{
    return c->engine->offer(group, &c->net, bytes, len_p, why);
}

int nicbarrier_carrier_connect(nicbarrier_carrier_t *c, const nicbarrier_offers_t *offers,
                               nicbarrier_reason_t *why)
{
    nicbarrier_net_events_t events = {NULL, NULL, c};
    if (c->on_node) {
        events.complete = net_complete;
        events.entered = net_entered;
    }
    if (c->engine->connect(c->net, offers, &events, why) != 0) {
        return -1;
    }
    if (c->on_node && c->engine->poke_record != NULL) {
        nicbarrier_head_t *head = c->shm.head;
        head->poke_len = c->engine->poke_record(c->net, head->poke);
    }
    return 0;
}

void nicbarrier_carrier_begin_trial(nicbarrier_carrier_t *c)
{
    c->engine->enter(c->net, NICBARRIER_TRIAL_EPOCH);
}

void nicbarrier_carrier_expect(nicbarrier_carrier_t *c)
{
    if (c->engine->expect != NULL) {
        c->engine->expect(c->net);
    }
}

bool nicbarrier_carrier_trial_done(nicbarrier_carrier_t *c)
{
    (void)c->engine->progress(c->net);
    return c->engine->completed(c->net) >= NICBARRIER_TRIAL_EPOCH;
}

void nicbarrier_carrier_trial_failed(nicbarrier_carrier_t *c)
{
    if (c->engine->lost != NULL) {
        c->engine->lost(c->net);
    }
}

/** May others be ahead of what the engine knows? They may have seen the agreement come to its end,
 *  and entered what it has not been given, because my node has not arrived: a barrier that the
 *  program has forgotten. */
static bool is_unfinished(nicbarrier_carrier_t *c)
{
    return (c->offered && !c->agreed) || (c->on_node && nicbarrier_shm_pending(&c->shm));
}

void nicbarrier_carrier_free(nicbarrier_carrier_t *c)
{
    if (c == NULL) {
        return;
    }
    if (c->net != NULL && is_unfinished(c) && c->engine->abandon != NULL) {
        c->engine->abandon(c->net);
    }
    if (c->net != NULL) {
        c->engine->disconnect(c->net);
    }
    if (c->on_node) {
        nicbarrier_shm_free(&c->shm);
    }
    onic_segment_unmap(&c->segment);
    free(c);
}

/* ---- entering ------------------------------------------------------------------------------- */

/** Leader: gives to the engine what the node has entered. */
static void pump(nicbarrier_carrier_t *c)
{
    uint64_t arrived = nicbarrier_shm_arrived(&c->shm);
    uint64_t given = atomic_load_explicit(&c->given, memory_order_relaxed);
    while (given < arrived) {
        if (atomic_compare_exchange_weak(&c->given, &given, arrived)) {
            c->engine->enter(c->net, arrived);
            return;
        }
    }
}

/** The node has arrived: the leader must get to know. */
static void tell_leader(nicbarrier_carrier_t *c)
{
    nicbarrier_head_t *head = c->shm.head;
    if (c->net != NULL) {
        pump(c);
    } else if (head->poke_len > 0 && atomic_load(&head->attentive) == 0) {
        c->engine->poke(head->poke, head->poke_len);
    }
}

void nicbarrier_carrier_enter(nicbarrier_carrier_t *c, uint64_t epoch)
{
    if (!c->on_node) {
        c->engine->enter(c->net, epoch);
        return;
    }
    if (c->skew) {
        nicbarrier_shm_stamp(&c->shm, epoch, now_nsec());
    }
    if (nicbarrier_shm_enter(&c->shm, epoch)) {
        tell_leader(c);
    }
}

void nicbarrier_carrier_depart(nicbarrier_carrier_t *c)
{
    if (c->on_node) {
        nicbarrier_shm_depart(&c->shm);
    }
}

bool nicbarrier_carrier_helped(const nicbarrier_carrier_t *c)
{
    return c->net != NULL && c->engine->leave != NULL;
}

void nicbarrier_carrier_leave(nicbarrier_carrier_t *c)
{
    c->engine->leave(c->net);
}

/* ---- completion ----------------------------------------------------------------------------- */

bool nicbarrier_carrier_done(nicbarrier_carrier_t *c, uint64_t epoch)
{
    return c->on_node ? nicbarrier_shm_done(&c->shm, epoch) : c->engine->completed(c->net) >= epoch;
}

bool nicbarrier_carrier_failed(nicbarrier_carrier_t *c)
{
    if (c->net == NULL) {
        return nicbarrier_shm_failed(&c->shm);
    }
    bool failed = c->engine->failed != NULL && c->engine->failed(c->net);
    if (failed && c->on_node) {
        nicbarrier_shm_fail(&c->shm);
    }
    return failed;
}

int nicbarrier_carrier_progress(nicbarrier_carrier_t *c)
{
    if (c->net == NULL) {
        return 0;
    }
    if (c->on_node) {
        pump(c);
    }
    return c->engine->progress(c->net);
}

static bool look(nicbarrier_carrier_t *c, uint64_t epoch)
{
    (void)nicbarrier_carrier_progress(c);
    return nicbarrier_carrier_done(c, epoch);
}

/** Is there nothing to wait for any more? */
static bool over(nicbarrier_carrier_t *c, uint64_t epoch)
{
    return look(c, epoch) || nicbarrier_carrier_failed(c);
}

/** Whoever drives the network sleeps on it, the others on the flags. */
static void sleep_a_little(nicbarrier_carrier_t *c, uint64_t epoch)
{
    if (c->net == NULL) {
        nicbarrier_shm_sleep(&c->shm, epoch, SLEEP_USEC);
    } else if (c->engine->wait == NULL) {
        sched_yield();
    } else if (!c->on_node) {
        c->engine->wait(c->net, SLEEP_USEC);
    } else {
        /* Who arrives now must wake the helper thread. */
        atomic_fetch_sub(&c->shm.head->attentive, 1);
        if (!look(c, epoch)) {
            c->engine->wait(c->net, SLEEP_USEC);
        }
        atomic_fetch_add(&c->shm.head->attentive, 1);
    }
}

/** From how long yields take follows whether others want this processor: then spinning only keeps
 *  those away who are waited for. */
static void learn(nicbarrier_carrier_t *c, uint64_t nsec, unsigned yields)
{
    bool shared = nicbarrier_is_shared(nsec, yields);
    atomic_store_explicit(&c->spins, shared ? 0 : c->spins_max, memory_order_relaxed);
}

/** Sleeps for some naps, by turns with Open MPI's progress. True where it is over. */
static bool wait_asleep(nicbarrier_carrier_t *c, uint64_t epoch)
{
    for (int nap = 0; nap < NAPS; nap++) {
        if (over(c, epoch)) {
            return true;
        }
        opal_progress();
        sleep_a_little(c, epoch);
    }
    return over(c, epoch);
}

/** How often somebody else has run in place of this thread, which wanted to go on. */
static long times_displaced(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

/** Progresses Open MPI for a while, and yields. True where it is over; otherwise *wanted_p tells
 *  whether others want this processor. */
static bool wait_awake(nicbarrier_carrier_t *c, uint64_t epoch, bool *wanted_p)
{
    const long displaced = times_displaced();
    const uint64_t start = now_nsec();
    long yields = 0;
    do {
        for (int turn = 0; turn < PROGRESS_PER_YIELD; turn++) {
            if (over(c, epoch)) {
                return true;
            }
            opal_progress();
        }
        sched_yield();
        yields++;
    } while (now_nsec() - start < SLEEP_AFTER_NSEC);
    *wanted_p = nicbarrier_is_wanted(times_displaced() - displaced, yields);
    return false;
}

static void wait_very_long(nicbarrier_carrier_t *c, uint64_t epoch)
{
    bool wanted;
    while (!wait_awake(c, epoch, &wanted) && !(wanted && wait_asleep(c, epoch))) {
    }
}

/** Reads the clock seldom: where processors are shared, this is what a barrier costs. */
static void wait_long(nicbarrier_carrier_t *c, uint64_t epoch)
{
    bool sample = epoch % WAITS_PER_SAMPLE == 0;
    uint64_t start = sample ? now_nsec() : 0;
    unsigned yields = 0;
    while (!over(c, epoch)) {
        sched_yield();
        if (++yields % YIELDS_PER_PROGRESS != 0) {
            continue;
        }
        opal_progress();
        uint64_t now = now_nsec();
        start = start == 0 ? now : start;
        if (now - start > SLEEP_AFTER_NSEC) {
            wait_very_long(c, epoch);
            return;
        }
    }
    if (sample && yields > 0) {
        learn(c, now_nsec() - start, yields);
    }
}

static bool spin(nicbarrier_carrier_t *c, uint64_t epoch)
{
    for (int left = atomic_load_explicit(&c->spins, memory_order_relaxed); left > 0; left--) {
        if (look(c, epoch)) {
            return true;
        }
        onic_pause();
    }
    return look(c, epoch);
}

bool nicbarrier_carrier_wait(nicbarrier_carrier_t *c, uint64_t epoch)
{
    bool leads = c->on_node && c->net != NULL;
    if (leads) {
        atomic_fetch_add(&c->shm.head->attentive, 1);
    }
    bool done = spin(c, epoch);
    if (!done) {
        wait_long(c, epoch);
        done = nicbarrier_carrier_done(c, epoch);
    }
    if (leads) {
        /* Who arrived in between for a later epoch has left it to me. */
        atomic_fetch_sub(&c->shm.head->attentive, 1);
        pump(c);
    }
    nicbarrier_carrier_depart(c);
    if (epoch % ENTRIES_PER_PROGRESS == 0) {
        opal_progress();
    }
    return done;
}
