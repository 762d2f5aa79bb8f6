/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The protocol of one member; see epoch.h. */
#include "coll_nicbarrier/epoch/epoch.h"

#include <string.h>

/* Weights of RFC 6298: the mean follows by 1/8, the deviation by 1/4, and counts four times. */
#define MEAN_SHIFT      3
#define VARIANCE_SHIFT  2
#define VARIANCE_FACTOR 4

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void nicbarrier_epochs_init(nicbarrier_epochs_t *e, const nicbarrier_step_t *steps, int nsteps,
                            const nicbarrier_timing_t *timing)
{
    memset(e, 0, sizeof(*e));
    e->timing = *timing;
    e->deadline = NICBARRIER_NEVER;
    e->nsteps = nsteps;
    for (int k = 0; k < nsteps; k++) {
        e->slot[k].step = steps[k];
        e->slot[k].deadline = NICBARRIER_NEVER;
    }
}

void nicbarrier_epochs_enter(nicbarrier_epochs_t *e, uint64_t epoch)
{
    if (epoch > e->entered)
        e->entered = epoch;
}

/* ---- time -------------------------------------------------------------------------------------
 */

static uint64_t first_timeout(const nicbarrier_epochs_t *e)
{
    const uint64_t expected = e->mean + VARIANCE_FACTOR * e->variance;

    if (e->mean == 0)
        return e->timing.first;
    return expected < e->timing.min ? e->timing.min : least(expected, e->timing.max);
}

/* A wait counts as no longer than the limit that its time-out has anyway, lest a rank that once was
 * away for minutes be waited for patiently ever after. */
static void measure(nicbarrier_epochs_t *e, uint64_t waited)
{
    const uint64_t time = least(waited, e->timing.max) + 1;

    if (e->mean == 0) {
        e->mean = time;
        e->variance = time / 2;
        return;
    }
    const uint64_t off = time > e->mean ? time - e->mean : e->mean - time;
    e->variance += (off >> VARIANCE_SHIFT) - (e->variance >> VARIANCE_SHIFT);
    e->mean += (time >> MEAN_SHIFT) - (e->mean >> MEAN_SHIFT);
}

static void set_deadline(nicbarrier_epochs_t *e, nicbarrier_slot_t *s, uint64_t now,
                         uint64_t interval)
{
    s->interval = interval;
    s->deadline = now + interval;
    e->deadline = least(e->deadline, s->deadline);
}

/* ---- messages ---------------------------------------------------------------------------------
 */

nicbarrier_verdict_t nicbarrier_epochs_receive(nicbarrier_epochs_t *e, const nicbarrier_packet_t *p,
                                               uint64_t now)
{
    nicbarrier_slot_t *s = &e->slot[p->at];

    if (p->at >= e->nsteps || s->step.wait_for != (int32_t)p->sender ||
        s->step.wait_at != p->from_at || p->epoch > e->entered + NICBARRIER_AHEAD_MAX)
        return NICBARRIER_WRONG;
    if (p->epoch <= s->received || p->kind == NICBARRIER_PACKET_HERE)
        return NICBARRIER_OLD;
    s->received = p->epoch;
    if (s->deadline != NICBARRIER_NEVER) {
        /* What was repeated says nothing of the time that a step takes. */
        if (p->kind == NICBARRIER_PACKET_EPOCH)
            measure(e, now - s->since);
        s->deadline = NICBARRIER_NEVER;
    }
    return NICBARRIER_NEW;
}

int nicbarrier_epochs_advance(nicbarrier_epochs_t *e, uint64_t now,
                              nicbarrier_message_t out[NICBARRIER_STEPS_MAX])
{
    uint64_t ready = e->entered;
    int n = 0;

    /* What is complete has passed all steps: from there on there is nothing to do. */
    for (int k = 0; k < e->nsteps && ready > e->completed; k++) {
        nicbarrier_slot_t *s = &e->slot[k];
        if (s->step.send_to != NICBARRIER_NOBODY && ready > s->sent) {
            s->sent = ready;
            out[n++] = (nicbarrier_message_t){s->step.send_to, s->step.send_at, (uint8_t)k, ready};
        }
        if (s->step.wait_for != NICBARRIER_NOBODY && s->received < ready) {
            if (s->deadline == NICBARRIER_NEVER) {
                s->since = now;
                set_deadline(e, s, now, first_timeout(e));
            }
            ready = s->received;
        }
    }
    e->completed = ready;
    return n;
}

int nicbarrier_epochs_expire(nicbarrier_epochs_t *e, uint64_t now,
                             nicbarrier_message_t out[NICBARRIER_STEPS_MAX])
{
    int n = 0;

    if (now < e->deadline)
        return 0;
    e->deadline = NICBARRIER_NEVER;
    for (int k = 0; k < e->nsteps; k++) {
        nicbarrier_slot_t *s = &e->slot[k];
        if (s->deadline <= now) {
            out[n++] = (nicbarrier_message_t){s->step.wait_for, s->step.wait_at, (uint8_t)k,
                                              s->received + 1};
            set_deadline(e, s, now, least(2 * s->interval, e->timing.cap));
        }
        e->deadline = least(e->deadline, s->deadline);
    }
    return n;
}

nicbarrier_verdict_t nicbarrier_epochs_answer(const nicbarrier_epochs_t *e,
                                              const nicbarrier_packet_t *p,
                                              nicbarrier_message_t *out)
{
    const nicbarrier_slot_t *s = &e->slot[p->at];

    if (p->at >= e->nsteps || s->step.send_to != (int32_t)p->sender ||
        s->step.send_at != p->from_at)
        return NICBARRIER_WRONG;
    if (p->epoch > s->sent)
        return NICBARRIER_OLD;
    *out = (nicbarrier_message_t){s->step.send_to, s->step.send_at, p->at, s->sent};
    return NICBARRIER_NEW;
}
