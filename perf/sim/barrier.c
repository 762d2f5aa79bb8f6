/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "perf/sim/barrier.h"

#include <stdio.h>
#include <stdlib.h>

#include "coll_nicbarrier/epoch/rule.h"
#include "perf/sim/events.h"

/** The first of the packets are those of engine datagram. LEFT: a call has ended; ARRIVED: a
 *  message has come, as point-to-point protocols acknowledge it. */
enum { ENTER, LEFT, EPOCH, REPEAT, NACK, TIMER, ARRIVED };

typedef struct member {
    nicbarrier_rule_t rule;
    double free;  /**< the time from which its processor is free */
    double timer; /**< the time of its valid timer event; 0: none */
} member_t;

/** A barrier of all members. */
typedef struct round {
    double began, ended;
    int32_t entered, left;
} round_t;

typedef struct world {
    sim_events_t events;
    const sim_barrier_t *b;
    sim_barrier_result_t result;
    member_t *member;
    nicbarrier_nacks_t *nacks; /**< NULL: no message is lost */
    nicbarrier_step_t *step;   /**< `most` steps of each member */
    size_t most;
    round_t *round; /**< by epoch, from 1 on */
} world_t;

static void *zeroed(size_t n, size_t bytes)
{
    void *memory = calloc(n, bytes);

    if (memory == NULL) {
        fprintf(stderr, "sim: out of memory\n");
        exit(EXIT_FAILURE);
    }
    return memory;
}

static const nicbarrier_step_t *step_of(const world_t *w, uint32_t who, uint32_t k)
{
    return &w->step[who * w->most + k];
}

/* ---- messages -------------------------------------------------------------------------------- */

/** Sends a packet that leaves at time `at`. */
static void post(world_t *w, double at, uint16_t kind, int32_t to, uint16_t step, uint64_t value)
{
    if (w->b->loss > 0 && sim_uniform(&w->events) < w->b->loss) {
        w->result.lost++;
        return;
    }
    sim_add(&w->events, (sim_event_t){.at = at + w->b->costs.latency +
                                            sim_exponential(&w->events, w->b->jitter),
                                      .kind = kind,
                                      .who = (uint32_t)to,
                                      .step = step,
                                      .value = value});
}

/** Sends the words of these steps to the members that wait for them. */
static void send_words(world_t *w, uint32_t who, uint16_t kind, uint64_t steps, double takes)
{
    member_t *m = &w->member[who];

    for (uint32_t k = 0; k < NICBARRIER_RULE_STEPS && steps >> k != 0; k++) {
        const nicbarrier_step_t *s = step_of(w, who, k);

        if ((steps >> k & 1) != 0)
            post(w, sim_serve(&m->free, m->free, takes), kind, s->send_to, s->send_at,
                 nicbarrier_rule_word(&m->rule, k));
    }
}

/** Sends to the sender of the message that my step k waits for. */
static void send_up(world_t *w, uint32_t who, uint16_t kind, uint32_t k, uint64_t value)
{
    member_t *m = &w->member[who];
    const nicbarrier_step_t *s = step_of(w, who, k);

    post(w, sim_serve(&m->free, m->free, w->b->costs.send), kind, s->wait_for, s->wait_at, value);
}

/* ---- members --------------------------------------------------------------------------------- */

/** A member calls a barrier, when it has computed. */
static void call(world_t *w, uint32_t who, uint64_t epoch, double now)
{
    const double at = now + (who == 0 ? w->b->late : 0);

    if (w->round[epoch].entered++ == 0 || at < w->round[epoch].began)
        w->round[epoch].began = at;
    sim_add(&w->events,
            (sim_event_t){.at = at + w->b->costs.enter, .kind = ENTER, .who = who, .value = epoch});
}

/** Lets the timers follow the rule, and adds an event for the next one due. */
static void follow(world_t *w, uint32_t who)
{
    member_t *m = &w->member[who];
    nicbarrier_nacks_t *n = w->nacks != NULL ? &w->nacks[who] : NULL;

    if (n == NULL)
        return;
    nicbarrier_nacks_follow(n, &m->rule, (uint64_t)m->free);
    /* An event that comes too early adds another. */
    if (n->deadline == NICBARRIER_NEVER ||
        (m->timer > w->events.now && m->timer <= (double)n->deadline))
        return;
    m->timer = (double)n->deadline > m->free ? (double)n->deadline : m->free;
    sim_add(&w->events, (sim_event_t){.at = m->timer, .kind = TIMER, .who = who});
}

/** Advances as far as possible; each message sent takes `takes`. */
static void advance(world_t *w, uint32_t who, double takes)
{
    member_t *m = &w->member[who];
    const uint64_t before = m->rule.completed, sends = nicbarrier_rule_advance(&m->rule);

    w->result.messages += (uint64_t)__builtin_popcountll(sends);
    send_words(w, who, EPOCH, sends, takes);
    if (m->rule.completed > before)
        sim_add(&w->events, (sim_event_t){.at = m->free + w->b->costs.leave,
                                          .kind = LEFT,
                                          .who = who,
                                          .value = m->rule.completed});
    follow(w, who);
}

/** A call has ended; the next one follows at once. */
static void leave(world_t *w, uint32_t who, uint64_t epoch)
{
    round_t *r = &w->round[epoch];

    r->left++;
    r->ended = w->events.now;
    w->result.early |= r->entered < w->b->members;
    if (epoch < (uint64_t)w->b->barriers)
        call(w, who, epoch + 1, w->events.now);
}

/** Takes EPOCH or REPEAT, as coll_nicbarrier/engines/datagram/input.c does. */
static void take(world_t *w, uint32_t who, const sim_event_t *e)
{
    member_t *m = &w->member[who];

    if (w->b->costs.ack > 0)
        sim_add(&w->events, (sim_event_t){.at = sim_serve(&m->free, m->free, w->b->costs.ack) +
                                                w->b->costs.latency,
                                          .kind = ARRIVED,
                                          .who = (uint32_t)step_of(w, who, e->step)->wait_for});
    if (nicbarrier_rule_receive(&m->rule, e->step, e->value) != NICBARRIER_WORD_NEW)
        return;
    if (w->nacks != NULL)
        nicbarrier_nacks_received(&w->nacks[who], e->step);
    advance(w, who, w->b->costs.send);
}

static void answer(world_t *w, uint32_t who, const sim_event_t *e)
{
    if (!nicbarrier_nacks_answer(&w->member[who].rule, e->step, e->value))
        return;
    w->result.repeats++;
    send_words(w, who, REPEAT, UINT64_C(1) << e->step, w->b->costs.send);
}

static void expire(world_t *w, uint32_t who)
{
    member_t *m = &w->member[who];
    const uint64_t asks = nicbarrier_nacks_expire(&w->nacks[who], &m->rule, (uint64_t)m->free);

    w->result.nacks += (uint64_t)__builtin_popcountll(asks);
    for (uint32_t k = 0; k < NICBARRIER_RULE_STEPS && asks >> k != 0; k++)
        if ((asks >> k & 1) != 0)
            send_up(w, who, NACK, k, m->rule.received[k] + 1);
    follow(w, who);
}

static void handle(world_t *w, const sim_event_t *e)
{
    member_t *m = &w->member[e->who];

    if (e->kind == LEFT) {
        leave(w, e->who, e->value);
        return;
    }
    /* A timer event that a later one has replaced. */
    if (e->kind == TIMER && e->at != m->timer)
        return;
    const double takes = e->kind == ENTER || e->kind == TIMER ? 0
                         : e->kind == ARRIVED                 ? w->b->costs.ack
                                                              : w->b->costs.receive;
    (void)sim_serve(&m->free, e->at, takes);
    switch (e->kind) {
    case ARRIVED:
        break;
    case ENTER:
        nicbarrier_rule_enter(&m->rule, e->value);
        advance(w, e->who, w->b->costs.first);
        break;
    case TIMER:
        expire(w, e->who);
        break;
    case NACK:
        answer(w, e->who, e);
        break;
    default:
        take(w, e->who, e);
    }
}

/* ---- the simulation
 * ------------------------------------------------------------------------------- */

static void begin(world_t *w)
{
    const sim_barrier_t *b = w->b;
    nicbarrier_step_t steps[NICBARRIER_STEPS_MAX];
    const size_t n = (size_t)b->members;

    /* No rank has more steps than rank 0, except for one to a parent. */
    w->most = (size_t)nicbarrier_schedule(b->schedule, 0, b->members, steps) + 1;
    w->member = zeroed(n, sizeof(*w->member));
    w->step = zeroed(n * w->most, sizeof(*w->step));
    w->nacks = b->loss > 0 ? zeroed(n, sizeof(*w->nacks)) : NULL;
    w->round = zeroed((size_t)b->barriers + 1, sizeof(*w->round));
    for (int32_t who = 0; who < b->members; who++) {
        const int count = nicbarrier_schedule(b->schedule, who, b->members, steps);
        uint64_t sends, waits;

        for (int k = 0; k < count; k++)
            w->step[(size_t)who * w->most + (size_t)k] = steps[k];
        nicbarrier_schedule_bits(steps, count, &sends, &waits);
        nicbarrier_rule_init(&w->member[who].rule, (uint32_t)count, sends, waits);
        if (w->nacks != NULL)
            nicbarrier_nacks_init(&w->nacks[who], b->silence);
        call(w, (uint32_t)who, 1, 0);
    }
}

sim_barrier_result_t sim_barrier(const sim_barrier_t *b)
{
    world_t w = {.b = b};
    sim_event_t e;

    sim_events_init(&w.events, b->seed);
    begin(&w);
    const round_t *last = &w.round[b->barriers];
    while (last->left < b->members && sim_next(&w.events, &e))
        handle(&w, &e);
    w.result.complete = last->left == b->members;
    w.result.time = (last->ended - w.round[1].began) / b->barriers;
    for (int i = 1; i <= b->barriers; i++)
        if (w.round[i].ended - w.round[i].began > w.result.longest)
            w.result.longest = w.round[i].ended - w.round[i].began;
    w.result.events = w.events.handled;
    free(w.member);
    free(w.step);
    free(w.nacks);
    free(w.round);
    sim_events_fini(&w.events);
    return w.result;
}
