/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/channel/observe.h"
#include "osc_nicstride/window/module.h"
#include "osc_nicstride/channel/wait.h"

#include <stdlib.h>

#include "common/wire/presence.h"

/* What was learned of all processes on other nodes: the same network is before them. Wire lock. */
static onic_learn_t network;

/* Set once, before anything is learned. */
static double ticks_per_usec;

/** Where transfers to a process are learned; NULL where memory is exhausted. */
static onic_learn_t *learn_locked(const nicstride_peer_t *p)
{
    onic_learn_t **learn = &p->process->learn;

    if (ticks_per_usec == 0)
        ticks_per_usec = onic_ticks_per_usec();
    if (p->local < 0)
        return &network;
    if (*learn == NULL)
        *learn = calloc(1, sizeof(**learn));
    return *learn;
}

/** Finds the peer's signs of life, and where to note what is learned. Of a process of the node that
 *  shows none it cannot be told whether a transfer took long or its target was away. Several
 * threads may come here at once: what the first has written is read without a lock by then. */
static void look_up(nicstride_peer_t *p)
{
    onic_wire_lock();
    if (!__atomic_load_n(&p->looked_up, __ATOMIC_RELAXED)) {
        p->presence = onic_peer_presence(p->wire);
        p->learn = p->presence != NULL || p->local < 0 ? learn_locked(p) : NULL;
        if (p->learn == NULL)
            p->presence = NULL;
        __atomic_store_n(&p->looked_up, true, __ATOMIC_RELEASE);
    }
    onic_wire_unlock();
}

static const onic_presence_t *presence_of(nicstride_peer_t *p)
{
    if (!__atomic_load_n(&p->looked_up, __ATOMIC_ACQUIRE))
        look_up(p);
    return p->presence;
}

nicstride_presence_t nicstride_presence(nicstride_peer_t *p)
{
    const onic_presence_t *presence = presence_of(p);
    uint64_t recent, now;

    if (presence == NULL)
        return NICSTRIDE_PRESENT;
    if (onic_presence_is_away(presence))
        return NICSTRIDE_SERVED;
    recent = (uint64_t)(ONIC_PRESENCE_USEC * ticks_per_usec);
    now = onic_ticks();
    /* The clock is read once for an operation and its flush: it takes as long as all else here. */
    __atomic_store_n(&p->looked, now, __ATOMIC_RELAXED);
    /* Who has just answered need not be looked at, which is a cache miss on both sides. */
    if (now - __atomic_load_n(&p->answered, __ATOMIC_RELAXED) < recent ||
        onic_presence_is_fresh(presence, now, recent))
        return NICSTRIDE_PRESENT;
    return nicstride_can_wake(p) ? NICSTRIDE_SERVED : NICSTRIDE_ABSENT;
}

onic_learned_t nicstride_observed(nicstride_peer_t *p, nicstride_direction_t dir,
                                  const onic_layout_t *origin, const onic_layout_t *target)
{
    (void)presence_of(p);
    if (p->learn == NULL)
        return ONIC_MODEL_ALONE;
    if (onic_layout_is_contig(origin) && onic_layout_is_contig(target))
        return (onic_learned_t){.cell = onic_learn_contiguous(p->learn, dir, target->size),
                                .budget = &p->learn->budget};
    return (onic_learned_t){.cell = onic_learn_cell(p->learn, dir, origin, target),
                            .budget = &p->learn->budget};
}

static double nsec(uint64_t ticks)
{
    return (double)ticks * 1000 / ticks_per_usec;
}

void nicstride_observe_call(nicstride_peer_t *p, onic_learn_cell_t *cell, nicstride_method_t method,
                            uint64_t bytes, uint64_t begun)
{
    double took = nsec(onic_ticks() - begun);

    onic_wire_lock();
    onic_learn_note(cell, &p->learn->budget, method, bytes, took);
    onic_wire_unlock();
}

void nicstride_observe_begin_locked(nicstride_peer_t *p, onic_learn_cell_t *cell,
                                    nicstride_method_t method, uint64_t bytes)
{
    p->trial.cell = cell;
    if (cell == NULL || p->live != NULL || !nicstride_tx_idle(&p->tx)) {
        p->trial.cell = NULL;
        return;
    }
    p->trial.method = method;
    p->trial.bytes = bytes;
    p->trial.number = p->enqueued + 1;
    p->trial.begun = onic_ticks();
}

void nicstride_observe_started_locked(nicstride_peer_t *p)
{
    if (p->trial.cell != NULL)
        p->trial.started = onic_ticks();
}

void nicstride_observe_flush_locked(nicstride_peer_t *p)
{
    if (p->enqueued != p->trial.number)
        p->trial.cell = NULL;
    p->trial.gap = onic_ticks() - p->trial.started;
}

void nicstride_observe_end_locked(nicstride_peer_t *p)
{
    nicstride_trial_t *t = &p->trial;
    double took;

    if (p->learn == NULL)
        return;
    __atomic_store_n(&p->answered, __atomic_load_n(&p->looked, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
    took = t->cell != NULL ? nsec(onic_ticks() - t->begun) : 0;
    /* Where its server thread has taken over, it had left. */
    if (t->cell != NULL && !p->failed && p->enqueued == t->number &&
        onic_learn_is_whole(nsec(t->gap), took) &&
        (p->presence == NULL || !onic_presence_is_away(p->presence)))
        onic_learn_note(t->cell, &p->learn->budget, t->method, t->bytes, took);
    t->cell = NULL;
}

void nicstride_learned_each(void (*f)(const onic_learn_t *learn, bool on_network))
{
    for (const nicstride_process_t *p = nicstride_processes; p != NULL; p = p->next) {
        if (p->learn != NULL)
            f(p->learn, false);
    }
    if (network.budget.spent > 0)
        f(&network, true);
}
