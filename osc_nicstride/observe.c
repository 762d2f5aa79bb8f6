/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/observe.h"
#include "osc_nicstride/component.h"
#include "osc_nicstride/module.h"
#include "osc_nicstride/wake.h"

#include <stdio.h>
#include <stdlib.h>

#include "opal/util/output.h"

#include "common/beat.h"

/** Between a call and the flush behind it there is no work of the application if this few
 *  microseconds pass. */
#define AT_ONCE_USEC 1

/** What was learned of one peer, for all windows. */
typedef struct known {
    struct known *next;
    nicstride_tune_t tune;
} known_t;

/* Wire lock. */
static known_t *all_known;

/* Set once, before the first is known. */
static double ticks_per_usec;

static known_t *know_locked(nicstride_peer_t *p)
{
    void **slot = onic_peer_slot(p->wire, ONIC_AM_OSC);
    known_t *k = *slot;

    if (k != NULL)
        return k;
    k = calloc(1, sizeof(*k));
    if (k == NULL)
        return NULL;
    if (ticks_per_usec == 0)
        ticks_per_usec = onic_ticks_per_usec();
    k->next = all_known;
    all_known = k;
    *slot = k;
    return k;
}

/** Finds the peer's signs of life, and where to note what is learned. */
static void look_up(nicstride_peer_t *p)
{
    const onic_beat_t *beat;
    known_t *known;

    onic_wire_lock();
    beat = onic_peer_beat(p->wire);
    known = beat != NULL ? know_locked(p) : NULL;
    p->beat = known != NULL ? beat : NULL;
    p->tune = known != NULL ? &known->tune : NULL;
    onic_wire_unlock();
    __atomic_store_n(&p->looked_up, true, __ATOMIC_RELEASE);
}

static const onic_beat_t *beat_of(nicstride_peer_t *p)
{
    if (!__atomic_load_n(&p->looked_up, __ATOMIC_ACQUIRE))
        look_up(p);
    return p->beat;
}

nicstride_presence_t nicstride_presence(nicstride_peer_t *p)
{
    const onic_beat_t *beat = beat_of(p);
    uint64_t recent, now;

    if (beat == NULL)
        return NICSTRIDE_PRESENT;
    if (onic_beat_is_away(beat))
        return NICSTRIDE_SERVED;
    recent = (uint64_t)(ONIC_BEAT_USEC * ticks_per_usec);
    now = onic_ticks();
    /* The clock is read once for an operation and its flush: it takes as long as all else here. */
    __atomic_store_n(&p->looked, now, __ATOMIC_RELAXED);
    /* Who has just answered need not be looked at, which is a cache miss on both sides. */
    if (now - __atomic_load_n(&p->answered, __ATOMIC_RELAXED) < recent ||
        onic_beat_is_fresh(beat, recent))
        return NICSTRIDE_PRESENT;
    return nicstride_can_wake(p) ? NICSTRIDE_SERVED : NICSTRIDE_ABSENT;
}

nicstride_learned_t nicstride_observed(nicstride_peer_t *p, nicstride_direction_t dir,
                                       const onic_layout_t *origin, const onic_layout_t *target)
{
    if (beat_of(p) == NULL)
        return NICSTRIDE_MODEL_ALONE;
    return (nicstride_learned_t){.cell = nicstride_tune_cell(p->tune, dir, origin, target),
                                 .budget = &p->tune->budget};
}

nicstride_method_t nicstride_quick_method(nicstride_module_t *m, nicstride_peer_t *p,
                                          nicstride_direction_t dir, nicstride_tune_cell_t **cell_p)
{
    nicstride_tune_quick_t *quick;
    nicstride_method_t method;
    bool measure;

    *cell_p = NULL;
    /* Of several, messages overlap. */
    if (!nicstride_habit_alone(&m->habit) || beat_of(p) == NULL)
        return NICSTRIDE_METHOD_PACK;
    quick = &p->tune->quick[dir == NICSTRIDE_GET];
    if (nicstride_tune_settled(quick, &method))
        return method;
    onic_wire_lock();
    method = nicstride_tune_quick(quick, &p->tune->budget, &measure);
    if (measure)
        *cell_p = &quick->cell;
    onic_wire_unlock();
    return method;
}

bool nicstride_quick_copies(nicstride_module_t *m, nicstride_peer_t *p, nicstride_direction_t dir,
                            size_t bytes)
{
    bool copies;

    if ((bytes < NICSTRIDE_TUNE_ALONE && !nicstride_habit_alone(&m->habit)) || beat_of(p) == NULL)
        return false;
    onic_wire_lock();
    copies = nicstride_tune_copies(p->tune, dir, bytes);
    onic_wire_unlock();
    return copies;
}

static double nsec(uint64_t ticks)
{
    return (double)ticks * 1000 / ticks_per_usec;
}

void nicstride_observe_call(nicstride_peer_t *p, nicstride_tune_cell_t *cell,
                            nicstride_method_t method, uint64_t bytes, uint64_t begun)
{
    double took = nsec(onic_ticks() - begun);

    onic_wire_lock();
    nicstride_tune_learn(cell, &p->tune->budget, method, bytes, took);
    onic_wire_unlock();
}

void nicstride_observe_begin_locked(nicstride_peer_t *p, nicstride_tune_cell_t *cell,
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
    if (p->trial.cell != NULL && (p->enqueued != p->trial.number ||
                                  nsec(onic_ticks() - p->trial.started) > 1000.0 * AT_ONCE_USEC))
        p->trial.cell = NULL;
}

void nicstride_observe_end_locked(nicstride_peer_t *p)
{
    nicstride_trial_t *t = &p->trial;

    if (p->beat == NULL)
        return;
    __atomic_store_n(&p->answered, __atomic_load_n(&p->looked, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
    /* Where its server thread has taken over, it had left. */
    if (t->cell != NULL && !p->failed && p->enqueued == t->number && !onic_beat_is_away(p->beat))
        nicstride_tune_learn(t->cell, &p->tune->budget, t->method, t->bytes,
                             nsec(onic_ticks() - t->begun));
    t->cell = NULL;
}

/** Says what was really done, where the plan was shown. */
static void show_done(void)
{
    const nicstride_counters_t *c = &nicstride_counters;
    char text[512];
    int len = 0;

    for (int m = NICSTRIDE_METHOD_DIRECT; m < NICSTRIDE_METHOD_LAST; m++)
        len += snprintf(text + len, sizeof(text) - (size_t)len, "%s %s %llu (%llu bytes)",
                        m > NICSTRIDE_METHOD_DIRECT ? "," : "",
                        nicstride_method_name((nicstride_method_t)m), c->ops[m], c->bytes[m]);
    opal_output(0, "osc_nicstride: operations by method:%s", text);
    for (const known_t *k = all_known; k != NULL; k = k->next)
        opal_output(0, "osc_nicstride: of %.0f us observed, trials lost %.0f us",
                    k->tune.budget.spent / 1000, k->tune.budget.lost / 1000);
}

void nicstride_observe_fini(void)
{
    if (mca_osc_nicstride_component.plan_shown)
        show_done();
    while (all_known != NULL) {
        known_t *k = all_known;

        all_known = k->next;
        free(k);
    }
}
