/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The simulated cluster; see nicbarrier_sim.h. */
#include "test/unit/nicbarrier_sim.h"

#include <string.h>

#include "coll_nicbarrier/epoch/nack.h"
#include "coll_nicbarrier/epoch/rule.h"
#include "coll_nicbarrier/engines/datagram/wire/packet.h"
#include "test/unit/unit.h"

#define USEC UINT64_C(1000)
#define MSEC UINT64_C(1000000)
/* A run in which no barrier is completed for so long hangs. */
#define PATIENCE (UINT64_C(20) * 1000 * MSEC)

static const nicbarrier_timing_t timing = {
    .first = 1 * MSEC, .cap = 16 * MSEC, .most = 1000 * MSEC};

typedef enum event_kind { ACT, ARRIVE, TIMER } event_kind_t;

typedef struct event {
    uint64_t time;
    uint64_t order; /* of events of the same time */
    event_kind_t kind;
    int32_t who;
    nicbarrier_packet_t packet;
} event_t;

typedef enum state { OUTSIDE, PREPARED, CONNECTED } state_t;

typedef struct process {
    int group; /* the one it is in or about to make */
    state_t state;
    nicbarrier_rule_t rule;
    nicbarrier_nacks_t nacks;
    nicbarrier_step_t step[NICBARRIER_STEPS_MAX];
    uint64_t dead_until; /* for its helper thread, too */
    uint64_t timer;      /* time of an event that is under way, or NICBARRIER_NEVER */
    bool asleep;         /* until there is something to do */
    bool done;
    bool failed;
} process_t;

typedef struct sim {
    const sim_config_t *config;
    sim_result_t result;
    unit_random_t random;
    uint64_t now, order;
    uint64_t last_completed; /* time */
    process_t *process;
    int *prepared;       /* by group */
    int32_t *entered_by; /* by group and barrier */
    int32_t left;        /* processes not done */
    event_t *heap;
    size_t nevents, room;
} sim_t;

/* ---- events --------------------------------------------------------------------------------- */

static bool before(const event_t *a, const event_t *b)
{
    return a->time < b->time || (a->time == b->time && a->order < b->order);
}

static void push(sim_t *s, event_t e)
{
    size_t i = s->nevents++;

    if (s->nevents > s->room) {
        s->room = 2 * s->nevents;
        s->heap = realloc(s->heap, s->room * sizeof(*s->heap));
        ck_assert_ptr_nonnull(s->heap);
    }
    e.order = s->order++;
    for (; i > 0 && before(&e, &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = e;
}

static event_t pop(sim_t *s)
{
    const event_t first = s->heap[0], last = s->heap[--s->nevents];
    size_t i = 0;

    for (size_t child; (child = 2 * i + 1) < s->nevents; i = child) {
        if (child + 1 < s->nevents && before(&s->heap[child + 1], &s->heap[child]))
            child++;
        if (!before(&s->heap[child], &last))
            break;
        s->heap[i] = s->heap[child];
    }
    s->heap[i] = last;
    return first;
}

static bool chance(sim_t *s, unsigned of_1000)
{
    return unit_below(&s->random, 1000) < of_1000;
}

static uint64_t key_of(int group)
{
    return 1000 + (uint64_t)group;
}

/* ---- the network ---------------------------------------------------------------------------- */

static uint64_t travel_time(sim_t *s)
{
    if (chance(s, s->config->late))
        return unit_below(&s->random, 5 * MSEC);
    return 2 * USEC + unit_below(&s->random, 8 * USEC);
}

static void transmit(sim_t *s, int32_t to, const nicbarrier_packet_t *packet)
{
    unsigned char bytes[NICBARRIER_PACKET_SIZE];
    event_t e = {.kind = ARRIVE, .who = to};

    nicbarrier_packet_encode(packet, bytes);
    UNIT_CHECK(nicbarrier_packet_decode(bytes, sizeof(bytes), &e.packet) == NULL);
    for (int copies = chance(s, s->config->twice) ? 2 : 1; copies > 0; copies--) {
        e.time = s->now + travel_time(s);
        if (!chance(s, s->config->loss))
            push(s, e);
    }
}

/* From step k of `from`, to whom it tells there or, of a request, whom it hears. */
static void send_one(sim_t *s, int32_t from, nicbarrier_packet_kind_t kind, uint32_t k,
                     uint64_t word)
{
    const process_t *p = &s->process[from];
    const nicbarrier_step_t *step = &p->step[k];
    const bool upwards = kind == NICBARRIER_PACKET_NACK;
    const int32_t to = upwards ? step->wait_for : step->send_to;
    const nicbarrier_packet_t packet = {.kind = (uint8_t)kind,
                                        .at = upwards ? step->wait_at : step->send_at,
                                        .from_at = (uint8_t)k,
                                        .sender = (uint32_t)from,
                                        .key = key_of(p->group),
                                        .epoch = word,
                                        .to = upwards ? (uint32_t)to : 0};

    transmit(s, to, &packet);
}

/* In every step that has its bit set. */
static int send_words(sim_t *s, int32_t from, nicbarrier_packet_kind_t kind, uint64_t steps)
{
    int n = 0;

    for (uint32_t k = 0; steps >> k != 0; k++) {
        if (steps >> k & 1) {
            send_one(s, from, kind, k, nicbarrier_rule_word(&s->process[from].rule, k));
            n++;
        }
    }
    return n;
}

/* ---- a process ------------------------------------------------------------------------------ */

static void wake(sim_t *s, int32_t who)
{
    if (s->process[who].asleep)
        push(s, (event_t){.time = s->now, .kind = ACT, .who = who});
    s->process[who].asleep = false;
}

static void check_left(sim_t *s, int32_t who)
{
    const process_t *p = &s->process[who];
    const uint64_t left = p->rule.completed - s->config->start;

    UNIT_CHECK(p->rule.completed > s->config->start);
    /* Epochs are entered in order: the last one tells for all. */
    const int32_t entered =
        s->entered_by[(size_t)p->group * (size_t)s->config->barriers + left - 1];
    if (entered < s->config->n)
        s->result.left_early = true;
}

static void set_timer(sim_t *s, int32_t who)
{
    process_t *p = &s->process[who];

    if (p->nacks.deadline < p->timer) {
        p->timer = p->nacks.deadline;
        push(s, (event_t){.time = p->timer, .kind = TIMER, .who = who});
    }
}

static void go_on(sim_t *s, int32_t who)
{
    process_t *p = &s->process[who];

    if (p->state != CONNECTED)
        return;
    const uint64_t completed = p->rule.completed;
    const uint64_t out = nicbarrier_rule_advance(&p->rule);
    s->result.messages += (uint64_t)send_words(s, who, NICBARRIER_PACKET_EPOCH, out);
    nicbarrier_nacks_follow(&p->nacks, &p->rule, s->now);
    set_timer(s, who);
    if (p->rule.failed && !p->failed) {
        p->failed = true;
        s->result.failed++;
        wake(s, who);
    }
    if (p->rule.completed > completed) {
        check_left(s, who);
        s->last_completed = s->now;
        wake(s, who);
    }
}

static void skip_a_step(nicbarrier_step_t *steps, int n)
{
    for (int k = 0; k < n; k++) {
        if (steps[k].wait_for != NICBARRIER_NOBODY) {
            steps[k].wait_for = NICBARRIER_NOBODY;
            return;
        }
    }
}

static void endpoint(sim_t *s, int32_t who)
{
    process_t *p = &s->process[who];
    const sim_config_t *c = s->config;
    const int n = nicbarrier_schedule(c->schedule, who, c->n, p->step);
    uint64_t sends, waits;

    if (c->mutant == SIM_STEP_SKIPPED && who == 0)
        skip_a_step(p->step, n);
    nicbarrier_schedule_bits(p->step, n, &sends, &waits);
    nicbarrier_rule_init(&p->rule, (uint32_t)n, sends, waits);
    nicbarrier_nacks_init(&p->nacks, &timing);
    p->rule.entered = p->rule.completed = c->start;
    for (int k = 0; k < n; k++)
        p->rule.sent[k] = p->rule.received[k] = c->start;
    p->state = PREPARED;
    p->asleep = true;
    if (++s->prepared[p->group] < c->n)
        return;
    /* The agreement has carried all endpoints to everybody. */
    for (int32_t other = 0; other < c->n; other++)
        wake(s, other);
}

/* Enters one more, or several at once, as far as it may. */
static void enter(sim_t *s, int32_t who)
{
    process_t *p = &s->process[who];
    const sim_config_t *c = s->config;
    const uint64_t first = p->rule.entered - c->start;
    const uint64_t open = p->rule.entered - p->rule.completed;
    uint64_t left = (uint64_t)c->barriers - first;

    if (left > (uint64_t)c->outstanding - open)
        left = (uint64_t)c->outstanding - open;
    if (left == 0) {
        p->asleep = true;
        return;
    }
    const uint64_t n = 1 + unit_below(&s->random, left);
    for (uint64_t i = first; i < first + n; i++)
        s->entered_by[(size_t)p->group * (size_t)c->barriers + i]++;
    nicbarrier_rule_enter(&p->rule, c->start + first + n);
    go_on(s, who);
}

static void leave_group(sim_t *s, int32_t who)
{
    process_t *p = &s->process[who];

    p->state = OUTSIDE;
    p->group++;
    if (p->group == s->config->groups) {
        p->done = true;
        s->left--;
    }
}

static void end(sim_t *s, int32_t who)
{
    s->process[who].done = true;
    s->left--;
}

static bool fails_now(const sim_t *s, int32_t who)
{
    const sim_config_t *c = s->config;

    return c->fails > 0 && who == 0 &&
           s->process[who].rule.completed >= c->start + (uint64_t)c->fails;
}

static void find_failure(sim_t *s, int32_t who)
{
    s->last_completed = s->now;
    nicbarrier_rule_fail(&s->process[who].rule);
    go_on(s, who);
}

static void act(sim_t *s, int32_t who)
{
    process_t *p = &s->process[who];
    uint64_t pause = unit_below(&s->random, 20 * USEC);

    if (p->done)
        return;
    if (p->state == OUTSIDE)
        endpoint(s, who);
    else if (p->state == PREPARED)
        p->state = CONNECTED;
    else if (p->failed)
        end(s, who);
    else if (p->rule.completed == s->config->start + (uint64_t)s->config->barriers)
        leave_group(s, who);
    else if (p->state == CONNECTED && fails_now(s, who))
        find_failure(s, who);
    else if (p->state == CONNECTED)
        enter(s, who);
    if (p->asleep || p->state == PREPARED)
        return;
    if (who == 0 && s->config->computes > 0)
        pause = s->config->computes;
    if (chance(s, s->config->stops)) {
        pause = 50 * MSEC + unit_below(&s->random, 500 * MSEC);
        if (chance(s, 500))
            p->dead_until = s->now + pause;
    }
    push(s, (event_t){.time = s->now + 1 + pause, .kind = ACT, .who = who});
}

/* ---- what comes ----------------------------------------------------------------------------- */

/* For a group that this process has freed. */
static void answer_for_freed(sim_t *s, const nicbarrier_packet_t *q)
{
    const nicbarrier_packet_t reply = {.kind = NICBARRIER_PACKET_REPEAT,
                                       .at = q->from_at,
                                       .from_at = q->at,
                                       .sender = q->to,
                                       .key = q->key,
                                       .epoch = q->epoch};

    if (s->config->mutant == SIM_NO_TOMBSTONE || s->config->mutant == SIM_NO_ANSWER)
        return;
    s->result.tomb_answers++;
    transmit(s, (int32_t)q->sender, &reply);
}

static void answer(sim_t *s, int32_t who, const nicbarrier_packet_t *q)
{
    process_t *p = &s->process[who];

    if (s->config->mutant == SIM_NO_ANSWER || p->state != CONNECTED)
        return;
    if (!nicbarrier_nacks_answer(&p->rule, q->at, q->epoch)) {
        s->result.late++;
        return;
    }
    s->result.answers++;
    send_one(s, who, NICBARRIER_PACKET_REPEAT, q->at, nicbarrier_rule_word(&p->rule, q->at));
}

/* EPOCH or REPEAT. */
static void take_message(sim_t *s, int32_t who, const nicbarrier_packet_t *q)
{
    process_t *p = &s->process[who];

    if (s->config->mutant == SIM_NOT_CUMULATIVE && q->epoch != p->rule.received[q->at] + 1)
        return;
    const nicbarrier_word_t verdict = nicbarrier_rule_receive(&p->rule, q->at, q->epoch);
    if (verdict == NICBARRIER_WORD_WRONG) {
        s->result.wrong++;
        return;
    }
    if (verdict == NICBARRIER_WORD_NEW) {
        nicbarrier_nacks_received(&p->nacks, q->at);
        go_on(s, who);
    }
}

static void receive(sim_t *s, int32_t who, const nicbarrier_packet_t *q)
{
    process_t *p = &s->process[who];

    if ((int)(q->key - key_of(0)) != p->group || p->state == OUTSIDE) {
        /* Of a group that was freed. */
        if (q->kind == NICBARRIER_PACKET_NACK)
            answer_for_freed(s, q);
    } else if (q->kind == NICBARRIER_PACKET_NACK) {
        answer(s, who, q);
    } else {
        take_message(s, who, q);
    }
}

static void timer(sim_t *s, int32_t who)
{
    process_t *p = &s->process[who];

    p->timer = NICBARRIER_NEVER;
    if (p->state != CONNECTED || s->config->mutant == SIM_NO_NACK)
        return;
    const uint64_t asks = nicbarrier_nacks_expire(&p->nacks, &p->rule, s->now);
    for (uint32_t k = 0; asks >> k != 0; k++) {
        if (asks >> k & 1) {
            s->result.nacks++;
            send_one(s, who, NICBARRIER_PACKET_NACK, k, p->rule.received[k] + 1);
        }
    }
    if (s->config->mutant == SIM_ONE_NACK && asks != 0)
        p->nacks.deadline = NICBARRIER_NEVER;
    set_timer(s, who);
}

static void handle(sim_t *s, const event_t *e)
{
    process_t *p = &s->process[e->who];

    if (p->dead_until > s->now) {
        event_t later = *e;
        later.time = p->dead_until;
        push(s, later);
        return;
    }
    switch (e->kind) {
    case ACT:
        act(s, e->who);
        break;
    case TIMER:
        timer(s, e->who);
        break;
    case ARRIVE:
        receive(s, e->who, &e->packet);
        break;
    }
}

sim_result_t sim_run(const sim_config_t *c)
{
    sim_t s = {.config = c, .random = {c->seed}, .left = c->n};
    const size_t epochs = (size_t)c->groups * (size_t)c->barriers;

    s.process = calloc((size_t)c->n, sizeof(*s.process));
    s.prepared = calloc((size_t)c->groups, sizeof(*s.prepared));
    s.entered_by = calloc(epochs, sizeof(*s.entered_by));
    ck_assert(s.process != NULL && s.prepared != NULL && s.entered_by != NULL);
    for (int32_t who = 0; who < c->n; who++) {
        s.process[who].timer = NICBARRIER_NEVER;
        push(&s, (event_t){.time = unit_below(&s.random, MSEC), .kind = ACT, .who = who});
    }
    while (s.nevents > 0 && s.left > 0 && s.now < s.last_completed + PATIENCE + c->computes &&
           !s.result.left_early) {
        const event_t e = pop(&s);
        s.now = e.time;
        handle(&s, &e);
    }
    s.result.all_left = s.left == 0;
    s.result.nanoseconds = s.now;
    free(s.heap);
    free(s.entered_by);
    free(s.prepared);
    free(s.process);
    return s.result;
}
