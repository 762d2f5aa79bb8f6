/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/queue/wait.h"

#include "common/pipeline/pipeline.h"
#include "common/support/clock.h"
#include "osc_nicstride/queue/flow.h"
#include "osc_nicstride/queue/operation.h"
#include "osc_nicstride/queue/presence.h"
#include "osc_nicstride/window/module.h"
#include "osc_nicstride/window/state.h"

#include "opal/runtime/opal_progress.h"

/* ---- waiting --------------------------------------------------------------------------------- */

/* Progress calls of the transport between two calls of everything else, which cost several times
 * as much. */
#define WIRE_TURNS 32
/* Progress calls between two signs of life. */
#define BEAT_TURNS 4

void nicstride_wait(nicstride_peer_t *p, nicstride_wake_when_t wake, bool (*done)(void *arg),
                    void *arg)
{
    uint64_t woken = 0;
    bool waited = false, wakes = wake == NICSTRIDE_WAKE;

    for (;;) {
        /* While data moves through receive buffers, each turn takes long. */
        const int turns = onic_pipeline_idle() ? WIRE_TURNS : 1;
        bool over = false;
        int events = 1;

        onic_transport_lock();
        for (int turn = 0; turn < turns; turn++) {
            /* What a peer does comes with an event, or is in its reply line. */
            if (p != NULL && nicstride_look_locked(p))
                events = 1;
            over = (p == NULL || events != 0) && done(arg);
            if (over)
                break;
            if (turn % BEAT_TURNS == 0)
                onic_transport_mark();
            waited = true;
            events = onic_transport_progress_locked();
        }
        if (!over && wake == NICSTRIDE_WAKE_IF_NEEDED)
            wakes = nicstride_needs_peer_locked(p);
        onic_transport_unlock();
        if (over) {
            if (waited)
                onic_transport_mark();
            return;
        }
        /* Neither the target nor others are needed while data moves. */
        if (turns == 1 && events > 0)
            continue;
        if (wakes)
            nicstride_wake_waited(&woken, p);
        opal_progress();
    }
}

/* ---- for waits outside of this component ----------------------------------------------------- */

/** Nanoseconds between two looks at the peers in use. */
#define EACH_LOOK_NSEC 10000

/** Queued operations may wait for an answer that no event announces. The oldest operation that has
 *  not ended represents a wait. */
static void look_after_locked(nicstride_peer_t *p, void *arg)
{
    const uint64_t now = *(const uint64_t *)arg;

    nicstride_pump_locked(p);
    if (TAILQ_EMPTY(&p->queue.live))
        return;
    if (!onic_peer_can_wake(p->peer) || !nicstride_needs_peer_locked(p))
        return;
    if (p->observed.awaited != TAILQ_FIRST(&p->queue.live)->number)
        p->observed.woken = 0;
    p->observed.awaited = TAILQ_FIRST(&p->queue.live)->number;
    nicstride_wake(&p->observed.woken, p, now);
}

int nicstride_look_after_peers(void)
{
    static uint64_t looked;
    uint64_t now = onic_now_nsec();

    /* Several threads may look at the same time. */
    if (now - __atomic_load_n(&looked, __ATOMIC_RELAXED) < EACH_LOOK_NSEC)
        return 0;
    __atomic_store_n(&looked, now, __ATOMIC_RELAXED);
    if (onic_transport_trylock()) {
        if (__atomic_load_n(&nicstride_counters.live_requests, __ATOMIC_RELAXED) > 0)
            nicstride_peers_each_locked(look_after_locked, &now);
        onic_transport_unlock();
    }
    return 0;
}
