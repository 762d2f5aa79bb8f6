/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The simulated cluster; see nicbarrier_sim.h. */
#include "test/unit/nicbarrier_sim.h"

#include <string.h>

#include "coll_nicbarrier/epoch/epoch.h"
#include "coll_nicbarrier/engines/datagram/packet.h"
#include "coll_nicbarrier/engines/datagram/tombstone.h"
#include "test/unit/unit.h"

#define USEC UINT64_C(1000)
#define MSEC UINT64_C(1000000)
/* A run in which no barrier is completed for so long hangs. */
#define PATIENCE (UINT64_C(20) * 1000 * MSEC)

static const nicbarrier_timing_t timing = {
    .first = 1 * MSEC, .min = MSEC / 2, .max = 4 * MSEC, .cap = 16 * MSEC};

typedef enum event_kind { ACT, ARRIVE, TIMER } event_kind_t;

typedef struct event {
    uint64_t time;
    uint64_t order; /* of events of the same time */
    event_kind_t kind;
    int32_t who;
    nicbarrier_packet_t packet;
} event_t;

typedef enum state { OUTSIDE, OFFERED, CONNECTED } state_t;

typedef struct process {
    int group; /* the one it is in or about to make */
    state_t state;
    nicbarrier_epochs_t epochs;
    nicbarrier_tombstones_t tombstones;
    uint64_t dead_until; /* for its helper thread, too */
    uint64_t timer;      /* time of an event that is under way, or NICBARRIER_NEVER */
    bool asleep;         /* until there is something to do */
    bool done;
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

/* ---- events -----------------------------------------------------------------------------------
 */

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

/* ---- the network ------------------------------------------------------------------------------
 */

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

static void send_all(sim_t *s, int32_t from, int group, nicbarrier_packet_kind_t kind,
                     const nicbarrier_message_t *out, int n)
{
    for (int i = 0; i < n; i++) {
        const nicbarrier_packet_t p = {.kind = (uint8_t)kind,
                                       .at = out[i].at,
                                       .from_at = out[i].from_at,
                                       .sender = (uint32_t)from,
                                       .key = key_of(group),
                                       .epoch = out[i].epoch};
        transmit(s, out[i].to, &p);
    }
}

/* ---- a process --------------------------------------------------------------------------------
 */

static void wake(sim_t *s, int32_t who)
{
    if (s->process[who].asleep)
        push(s, (event_t){.time = s->now, .kind = ACT, .who = who});
    s->process[who].asleep = false;
}

static void check_left(sim_t *s, int32_t who)
{
    const process_t *p = &s->process[who];
    const uint64_t left = p->epochs.completed - s->config->start;

    UNIT_CHECK(p->epochs.completed > s->config->start);
    /* Epochs are entered in order: the last one tells for all. */
    const int32_t entered =
        s->entered_by[(size_t)p->group * (size_t)s->config->barriers + left - 1];
    if (entered < s->config->n)
        s->result.left_early = true;
}

static void set_timer(sim_t *s, int32_t who)
{
    process_t *p = &s->process[who];

    if (p->epochs.deadline < p->timer) {
        p->timer = p->epochs.deadline;
        push(s, (event_t){.time = p->timer, .kind = TIMER, .who = who});
    }
}

static void go_on(sim_t *s, int32_t who)
{
    process_t *p = &s->process[who];
    nicbarrier_message_t out[NICBARRIER_STEPS_MAX];

    if (p->state != CONNECTED)
        return;
    const uint64_t completed = p->epochs.completed;
    const int n = nicbarrier_epochs_advance(&p->epochs, s->now, out);
    s->result.messages += (uint64_t)n;
    send_all(s, who, p->group, NICBARRIER_PACKET_EPOCH, out, n);
    set_timer(s, who);
    if (p->epochs.completed > completed) {
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
    nicbarrier_step_t steps[NICBARRIER_STEPS_MAX];
    const int n = nicbarrier_schedule(c->schedule, c->degree, who, c->n, steps);

    if (c->mutant == SIM_STEP_SKIPPED && who == 0)
        skip_a_step(steps, n);
    nicbarrier_epochs_init(&p->epochs, steps, n, &timing);
    p->epochs.entered = p->epochs.completed = c->start;
    for (int k = 0; k < n; k++)
        p->epochs.slot[k].sent = p->epochs.slot[k].received = c->start;
    p->state = OFFERED;
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
    const uint64_t first = p->epochs.entered - c->start;
    const uint64_t open = p->epochs.entered - p->epochs.completed;
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
    nicbarrier_epochs_enter(&p->epochs, c->start + first + n);
    go_on(s, who);
}

static void leave_group(sim_t *s, int32_t who)
{
    process_t *p = &s->process[who];

    if (!chance(s, s->config->tombstones_lost))
        nicbarrier_tombstones_add(&p->tombstones, key_of(p->group), p->epochs.completed);
    else
        p->tombstones.n += NICBARRIER_TOMBSTONES + 1; /* as if so many others had followed */
    p->state = OUTSIDE;
    p->group++;
    if (p->group == s->config->groups) {
        p->done = true;
        s->left--;
    }
}

static void act(sim_t *s, int32_t who)
{
    process_t *p = &s->process[who];
    uint64_t pause = unit_below(&s->random, 20 * USEC);

    if (p->done)
        return;
    if (p->state == OUTSIDE)
        endpoint(s, who);
    else if (p->state == OFFERED)
        p->state = CONNECTED;
    else if (p->epochs.completed == s->config->start + (uint64_t)s->config->barriers)
        leave_group(s, who);
    else if (p->state == CONNECTED)
        enter(s, who);
    if (p->asleep || p->state == OFFERED)
        return;
    if (chance(s, s->config->stops)) {
        pause = 50 * MSEC + unit_below(&s->random, 500 * MSEC);
        if (chance(s, 500))
            p->dead_until = s->now + pause;
    }
    push(s, (event_t){.time = s->now + 1 + pause, .kind = ACT, .who = who});
}

/* ---- what comes -------------------------------------------------------------------------------
 */

static void answer(sim_t *s, int32_t who, const nicbarrier_packet_t *q)
{
    const process_t *p = &s->process[who];
    const int group = (int)(q->key - key_of(0));
    nicbarrier_message_t out = {(int32_t)q->sender, q->from_at, q->at, 0};
    const sim_config_t *c = s->config;

    if (c->mutant == SIM_NO_ANSWER)
        return;
    if (group == p->group && p->state != OUTSIDE) {
        const nicbarrier_verdict_t verdict = nicbarrier_epochs_answer(&p->epochs, q, &out);
        if (verdict == NICBARRIER_WRONG)
            s->result.wrong++;
        if (verdict != NICBARRIER_NEW)
            return;
        s->result.answers++;
    } else {
        if (c->mutant == SIM_NO_TOMBSTONE ||
            !nicbarrier_tombstones_answer(&p->tombstones, q->key, q->epoch, &out.epoch))
            return;
        s->result.tomb_answers++;
    }
    send_all(s, who, group, NICBARRIER_PACKET_AGAIN, &out, 1);
}

static void receive(sim_t *s, int32_t who, const nicbarrier_packet_t *q)
{
    process_t *p = &s->process[who];
    const int group = (int)(q->key - key_of(0));

    if (group != p->group || p->state == OUTSIDE)
        return; /* a late one for a group that was freed */
    if (s->config->mutant == SIM_NOT_CUMULATIVE && q->epoch != p->epochs.slot[q->at].received + 1)
        return;
    switch (nicbarrier_epochs_receive(&p->epochs, q, s->now)) {
    case NICBARRIER_NEW:
        go_on(s, who);
        break;
    case NICBARRIER_WRONG:
        s->result.wrong++;
        break;
    case NICBARRIER_OLD:
        break;
    }
}

static void timer(sim_t *s, int32_t who)
{
    process_t *p = &s->process[who];
    nicbarrier_message_t out[NICBARRIER_STEPS_MAX];

    p->timer = NICBARRIER_NEVER;
    if (p->state != CONNECTED || s->config->mutant == SIM_NO_NACK)
        return;
    const int n = nicbarrier_epochs_expire(&p->epochs, s->now, out);
    s->result.nacks += (uint64_t)n;
    send_all(s, who, p->group, NICBARRIER_PACKET_NACK, out, n);
    if (s->config->mutant == SIM_ONE_NACK && n > 0)
        p->epochs.deadline = NICBARRIER_NEVER;
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
        if (e->packet.kind == NICBARRIER_PACKET_NACK)
            answer(s, e->who, &e->packet);
        else
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
    while (s.nevents > 0 && s.left > 0 && s.now < s.last_completed + PATIENCE &&
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
