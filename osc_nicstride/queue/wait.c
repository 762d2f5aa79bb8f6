/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/queue/wait.h"

#include "common/pipeline/pipeline.h"
#include "common/transport/shm/node.h"
#include "common/transport/put.h"
#include "osc_nicstride/queue/flow.h"

#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/window/control.h"
#include "osc_nicstride/window/state.h"

#include "opal/runtime/opal_progress.h"

/** Microseconds between two looks at the peers in use. */
#define LOOK_USEC 10
/** And between two looks for processes that have died. */
#define DEAD_USEC 5000

/** Ticks of a microsecond. Threads that meet here find nearly the same. */
static double usec(void)
{
    static double known;
    double ticks;

    __atomic_load(&known, &ticks, __ATOMIC_RELAXED);
    if (ticks == 0) {
        ticks = onic_ticks_per_usec();
        __atomic_store(&known, &ticks, __ATOMIC_RELAXED);
    }
    return ticks;
}

/** Finds the peer's signs of life, where it shows some. */
static void find_presence_locked(nicstride_peer_t *p)
{
    if (p->observed.presence == NULL)
        p->observed.presence = onic_peer_presence(p->wire);
}

static void find_wake_locked(nicstride_peer_t *p)
{
    const int can = onic_peer_can_wake(p->wire) ? 1 : -1;

    if (can > 0)
        find_presence_locked(p);
    __atomic_store_n(&p->observed.wakes, can, __ATOMIC_RELEASE);
}

bool nicstride_can_wake(nicstride_peer_t *p)
{
    if (__atomic_load_n(&p->observed.wakes, __ATOMIC_ACQUIRE) == 0) {
        onic_transport_lock();
        find_wake_locked(p);
        onic_transport_unlock();
    }
    return p->observed.wakes > 0;
}

bool nicstride_can_wake_all(nicstride_module_t *m)
{
    /* A process may be a node of its own by parameter. */
    bool can = m->node.n == m->size || !nicstride_component.params.node;

    onic_transport_lock();
    for (int i = 0; i < m->size && can; i++) {
        onic_peer_t *wire = nicstride_wire_locked(m, i);

        can = i == m->rank || (wire != NULL && onic_peer_can_wake(wire));
    }
    onic_transport_unlock();
    return can;
}

/** Its helper thread stands in for it by itself where `away` is set. */
static bool is_away(const nicstride_peer_t *p, uint64_t now)
{
    return !onic_presence_is_fresh(p->observed.presence, now,
                                   (uint64_t)(NICSTRIDE_PATIENCE_AWAY * usec())) &&
           !onic_presence_is_away(p->observed.presence);
}

/** Wakes a peer that can be woken, if it is away and patience ends. */
static void wake(nicstride_patience_t *w, nicstride_peer_t *p, uint64_t now)
{
    if (!nicstride_patience_ends(w, now) || !is_away(p, now))
        return;
    nicstride_patience_wake(w, now, usec());
    nicstride_add(&nicstride_counters.wakeups, 1);
    onic_peer_wake(p->wire);
}

void nicstride_wake_waited(nicstride_patience_t *w, nicstride_peer_t *p)
{
    if (p != NULL && nicstride_can_wake(p))
        wake(w, p, onic_ticks());
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Turns of the transport between two turns of everything else, which cost several times as much. */
#define WIRE_TURNS 32
/* And between two signs of life. */
#define BEAT_TURNS 4

void nicstride_wait(nicstride_peer_t *p, unsigned how, bool (*done)(void *arg), void *arg)
{
    nicstride_patience_t patience;
    bool waited = false, wakes = (how & NICSTRIDE_WAKE) != 0;

    nicstride_patience_begin(&patience);
    for (;;) {
        /* What goes through receive buffers is moved without the lock, by this thread, too. */
        const int turns = onic_pipeline_idle() ? WIRE_TURNS : 1;
        bool over = false;
        int events = 1;

        onic_transport_lock();
        for (int turn = 0; turn < turns; turn++) {
            /* What is waited for comes with an event, or is in the reply line. */
            if (p != NULL && nicstride_look_locked(p))
                events = 1;
            over = ((how & NICSTRIDE_POLL) != 0 || events != 0) && done(arg);
            if (over)
                break;
            if (turn % BEAT_TURNS == 0)
                onic_transport_mark();
            waited = true;
            events = onic_transport_progress_locked();
        }
        if (!over && (how & NICSTRIDE_WAKE_IF_NEEDED) != 0)
            wakes = nicstride_needs_peer_locked(p);
        onic_transport_unlock();
        if (over) {
            if (waited)
                onic_transport_mark();
            return;
        }
        if (turns == 1 && onic_pipeline_progress() > 0)
            continue;
        if (wakes)
            nicstride_wake_waited(&patience, p);
        opal_progress();
    }
}

/* ---- behind waits that are not ours ---------------------------------------------------------- */

/** What is queued may wait for an answer that no event announces. The oldest operation that has not
 *  ended stands for a wait. */
static void look_after_locked(nicstride_peer_t *p, void *arg)
{
    const uint64_t now = *(const uint64_t *)arg;

    nicstride_pump_locked(p);
    if (TAILQ_EMPTY(&p->queue.live))
        return;
    if (p->observed.wakes == 0)
        find_wake_locked(p);
    if (p->observed.wakes < 0 || !nicstride_needs_peer_locked(p))
        return;
    if (p->observed.awaited != TAILQ_FIRST(&p->queue.live)->number)
        nicstride_patience_begin(&p->observed.patience);
    p->observed.awaited = TAILQ_FIRST(&p->queue.live)->number;
    wake(&p->observed.patience, p, now);
}

/** Is it time again, after so many microseconds? Several threads may find so. */
static bool is_due(uint64_t *last, uint64_t now, double pause)
{
    if (now - __atomic_load_n(last, __ATOMIC_RELAXED) < (uint64_t)(pause * usec()))
        return false;
    __atomic_store_n(last, now, __ATOMIC_RELAXED);
    return true;
}

int nicstride_look_after_peers(void)
{
    static uint64_t looked, looked_for_dead;
    uint64_t now = onic_ticks();

    if (is_due(&looked_for_dead, now, DEAD_USEC))
        (void)onic_transport_look_for_dead();
    if (is_due(&looked, now, LOOK_USEC) && onic_transport_trylock()) {
        if (__atomic_load_n(&nicstride_counters.live_requests, __ATOMIC_RELAXED) > 0)
            nicstride_used_each_locked(look_after_locked, &now);
        onic_transport_unlock();
    }
    return 0;
}

/* ---- is the target there? -------------------------------------------------------------------- */

/** Finds what kind of peer it is, and its signs of life. Several threads may come here at once:
 * what the first has written is read without a lock by then. */
static void look_up(nicstride_peer_t *p)
{
    onic_kind_t kind = ONIC_NET;

    if (p->local >= 0)
        kind = onic_distance(onic_peer_name(p->wire));
    onic_transport_lock();
    if (!__atomic_load_n(&p->observed.looked_up, __ATOMIC_RELAXED)) {
        find_presence_locked(p);
        if (p->local < 0 && onic_peer_puts_by_rdma(p->wire))
            kind = ONIC_ADAPTER;
        p->observed.kind = kind;
        __atomic_store_n(&p->observed.looked_up, true, __ATOMIC_RELEASE);
    }
    onic_transport_unlock();
}

onic_kind_t nicstride_kind(nicstride_peer_t *p)
{
    if (!__atomic_load_n(&p->observed.looked_up, __ATOMIC_ACQUIRE))
        look_up(p);
    return p->observed.kind;
}

const nicstride_path_t *nicstride_path(nicstride_peer_t *p)
{
    return &nicstride_component.table.path[nicstride_kind(p)];
}

nicstride_presence_t nicstride_presence(nicstride_peer_t *p)
{
    const onic_presence_t *presence;
    uint64_t recent, now;

    (void)nicstride_kind(p);
    presence = p->observed.presence;
    if (presence == NULL)
        return NICSTRIDE_PRESENT;
    if (onic_presence_is_away(presence))
        return NICSTRIDE_SERVED;
    recent = (uint64_t)(ONIC_PRESENCE_USEC * usec());
    now = onic_ticks();
    /* The clock is read once for an operation and its flush: it takes as long as all else here. */
    __atomic_store_n(&p->observed.looked, now, __ATOMIC_RELAXED);
    /* A peer that has just answered need not be looked at, which is a cache miss on both sides. */
    if (now - __atomic_load_n(&p->observed.answered, __ATOMIC_RELAXED) < recent ||
        onic_presence_is_fresh(presence, now, recent))
        return NICSTRIDE_PRESENT;
    return nicstride_can_wake(p) ? NICSTRIDE_SERVED : NICSTRIDE_ABSENT;
}

void nicstride_answered_locked(nicstride_peer_t *p)
{
    __atomic_store_n(&p->observed.answered, __atomic_load_n(&p->observed.looked, __ATOMIC_RELAXED),
                     __ATOMIC_RELAXED);
}
