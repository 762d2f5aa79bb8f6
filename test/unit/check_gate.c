/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The gate beside the lock queue (protocol/lockq.h): far processes try the gate or send messages,
 * near ones come to the queue, the target opens and closes; what an adapter does, what comes back,
 * and messages come in any order that there can be. Nobody has the lock beside one that must not,
 * nobody comes in while the gate is closed, everybody gets the lock in the end, and a gate that far
 * processes alone use is open most of the time.
 */
#include "osc_nicstride/protocol/lockq.h"

#include <string.h>

#include "test/unit/unit.h"

enum { FAR = 5, NEAR = 2, ALL = FAR + NEAR, STEPS = 300, BURSTS = 40, ROUNDS = 40, DRAIN = 3000 };

/** Where a process is. */
typedef enum stage {
    IDLE,
    TRIES,    /**< the adapter has not done it yet */
    TRIED,    /**< it has, the answer has not come */
    BACK_OUT, /**< a shared mark that must go again, as a try */
    LEAVES,   /**< by the gate, likewise */
    ASKS,     /**< the request is on its way */
    WAITS,
    HOLDS
} stage_t;

typedef struct process {
    stage_t stage;
    uint32_t type;
    uint64_t mark, before;
    bool by_gate, skips;
    unsigned notes;    /**< messages of having gone out that are under way */
    unsigned releases; /**< the same of a lock given back in the queue */
    nicstride_gate_luck_t luck;
} process_t;

typedef struct world {
    process_t p[ALL];
    nicstride_gate_t gate;
    nicstride_gate_do_t doing;
    bool changed; /**< and the target does not know yet */
    uint64_t word;
    unsigned closes; /**< wishes of near processes under way */
    unsigned entered, queued;
    _Alignas(8) unsigned char memory[1024];
} world_t;

static nicstride_lockq_t *queue(world_t *w)
{
    return (nicstride_lockq_t *)w->memory;
}

static void hold(world_t *w, int i)
{
    w->p[i].stage = HOLDS;
    for (int other = 0; other < ALL; other++) {
        if (other == i || w->p[other].stage != HOLDS)
            continue;
        UNIT_CHECK(w->p[other].type == NICSTRIDE_LOCK_SHARED &&
                   w->p[i].type == NICSTRIDE_LOCK_SHARED);
    }
}

static void grant(world_t *w)
{
    uint32_t origin;

    while (nicstride_lockq_next_grant(queue(w), &origin)) {
        UNIT_CHECK(origin < ALL && w->p[origin].stage == WAITS);
        w->queued++;
        hold(w, (int)origin);
    }
}

static void follow(world_t *w, nicstride_gate_do_t what)
{
    if (what != NICSTRIDE_GATE_NOTHING) {
        UNIT_CHECK(w->doing == NICSTRIDE_GATE_NOTHING && !w->changed);
        w->doing = what;
    }
    grant(w);
}

/** The target's own change of the word. */
static void change(world_t *w)
{
    if (w->doing == NICSTRIDE_GATE_DO_OPEN)
        w->word &= ~NICSTRIDE_GATE_CLOSED;
    else
        w->word |= NICSTRIDE_GATE_CLOSED;
    w->doing = NICSTRIDE_GATE_NOTHING;
    w->changed = true;
}

/** Its answer. */
static void hear(world_t *w)
{
    w->changed = false;
    follow(w, nicstride_gate_changed(&w->gate, queue(w), w->word));
}

static void change_at_once(world_t *w)
{
    change(w);
    hear(w);
}

static void request(world_t *w, int i)
{
    w->p[i].stage = WAITS;
    switch (nicstride_lockq_request(queue(w), (uint32_t)i, w->p[i].type, false)) {
    case NICSTRIDE_LOCKQ_GRANTED:
        w->queued++;
        hold(w, i);
        break;
    case NICSTRIDE_LOCKQ_QUEUED:
        w->closes += i >= FAR;
        break;
    default:
        UNIT_CHECK(false);
    }
}

static void begin(unit_random_t *r, world_t *w, int i)
{
    process_t *p = &w->p[i];

    p->type = unit_once_in(r, 2) ? NICSTRIDE_LOCK_EXCLUSIVE : NICSTRIDE_LOCK_SHARED;
    if (i >= FAR) {
        request(w, i);
    } else if (!p->skips && nicstride_gate_may_try(&p->luck)) {
        p->mark = nicstride_gate_mark(p->type, (uint32_t)i);
        p->stage = TRIES;
    } else {
        p->stage = ASKS;
    }
}

/** The adapter adds what a process goes in or out by. */
static void at_the_word(world_t *w, process_t *p)
{
    p->before = w->word;
    if (p->stage == TRIES && p->type == NICSTRIDE_LOCK_EXCLUSIVE)
        w->word = w->word == 0 ? p->mark : w->word;
    else
        w->word += p->stage == TRIES ? p->mark : -p->mark;
    if (p->stage != TRIES) {
        p->notes += nicstride_gate_tells(p->before);
        p->stage = p->stage == LEAVES ? IDLE : ASKS;
        return;
    }
    p->stage = TRIED;
    if (nicstride_gate_is_in(p->type, p->before)) {
        UNIT_CHECK((p->before & NICSTRIDE_GATE_CLOSED) == 0);
        w->entered++;
        p->by_gate = true;
        hold(w, (int)(p - w->p));
    }
}

static void answer(process_t *p)
{
    nicstride_gate_tried(&p->luck, false);
    p->stage = p->type == NICSTRIDE_LOCK_SHARED ? BACK_OUT : ASKS;
}

static void leave(world_t *w, int i)
{
    process_t *p = &w->p[i];

    if (p->by_gate) {
        nicstride_gate_tried(&p->luck, true);
        p->by_gate = false;
        p->stage = LEAVES;
        return;
    }
    p->stage = IDLE;
    if (i < FAR) {
        p->releases++;
        return;
    }
    UNIT_CHECK(nicstride_lockq_release(queue(w), (uint32_t)i));
    grant(w);
}

/** A message of a far process comes, in the order in which they were sent: notes, releases,
 *  requests. */
static bool receive(world_t *w, int i)
{
    process_t *p = &w->p[i];

    if (p->notes > 0) {
        p->notes--;
        follow(w, nicstride_gate_wanted(&w->gate, queue(w), false, w->word));
    } else if (p->releases > 0) {
        p->releases--;
        UNIT_CHECK(nicstride_lockq_release(queue(w), (uint32_t)i));
        grant(w);
        follow(w, nicstride_gate_released(&w->gate, queue(w)));
    } else if (p->stage == ASKS) {
        request(w, i);
        if (p->stage == WAITS)
            follow(w, nicstride_gate_wanted(&w->gate, queue(w), false, w->word));
    } else {
        return false;
    }
    return true;
}

static void one_step(unit_random_t *r, world_t *w, bool begins, bool near)
{
    const int i = (int)unit_below(r, near ? ALL : FAR);
    process_t *p = &w->p[i];

    if (unit_once_in(r, 8) && w->doing != NICSTRIDE_GATE_NOTHING) {
        change(w);
    } else if (unit_once_in(r, 8) && w->changed) {
        hear(w);
    } else if (unit_once_in(r, 8) && w->closes > 0) {
        w->closes--;
        follow(w, nicstride_gate_wanted(&w->gate, queue(w), true, w->word));
    } else if (i < FAR && unit_once_in(r, 3) && receive(w, i)) {
        return;
    } else if (p->stage == TRIES || p->stage == BACK_OUT || p->stage == LEAVES) {
        at_the_word(w, p);
    } else if (p->stage == TRIED) {
        answer(p);
    } else if (p->stage == HOLDS) {
        leave(w, i);
    } else if (p->stage == IDLE && begins && p->notes == 0) {
        begin(r, w, i);
    }
}

/** Nobody wants anything any more. */
static void rest(unit_random_t *r, world_t *w)
{
    for (int i = 0; i < DRAIN; i++)
        one_step(r, w, false, true);
    for (int i = 0; i < ALL; i++)
        UNIT_CHECK(w->p[i].stage == IDLE && w->p[i].notes == 0 && w->p[i].releases == 0);
    UNIT_CHECK((w->word & ~NICSTRIDE_GATE_CLOSED) == 0);
    UNIT_CHECK(w->doing == NICSTRIDE_GATE_NOTHING && !w->changed);
    UNIT_CHECK(w->gate.state == NICSTRIDE_GATE_SHUT || w->gate.state == NICSTRIDE_GATE_OPEN);
    UNIT_CHECK((w->gate.state == NICSTRIDE_GATE_OPEN) == (w->word == 0));
}

static void live(unit_random_t *r, world_t *w, bool near)
{
    memset(w, 0, sizeof(*w));
    w->word = NICSTRIDE_GATE_CLOSED;
    UNIT_CHECK(nicstride_lockq_size(ALL + 1) <= sizeof(w->memory));
    nicstride_lockq_init(queue(w), ALL + 1);
    for (int i = 0; i < FAR; i++)
        w->p[i].skips = near && unit_once_in(r, 4);
    for (int burst = 0; burst < BURSTS; burst++) {
        const int steps = (int)unit_below(r, STEPS);

        for (int i = 0; i < steps; i++)
            one_step(r, w, true, near);
        rest(r, w);
    }
}

START_TEST(any_order)
{
    unit_random_t r = {unit_seed()};
    static world_t w;
    unsigned entered = 0;

    for (int round = 0; round < ROUNDS; round++) {
        live(&r, &w, unit_once_in(&r, 2));
        UNIT_CHECK(w.queued > 0);
        entered += w.entered;
    }
    UNIT_CHECK(entered > 0);
}
END_TEST

/** One far process by itself: the first time by message, then by the gate. */
START_TEST(alone)
{
    unit_random_t r = {unit_seed()};
    static world_t w;

    memset(&w, 0, sizeof(w));
    w.word = NICSTRIDE_GATE_CLOSED;
    nicstride_lockq_init(queue(&w), ALL + 1);
    w.p[0].skips = true;
    for (int turn = 0; turn < 100; turn++) {
        begin(&r, &w, 0);
        w.p[0].skips = false;
        while (w.p[0].stage != IDLE || w.p[0].releases > 0 || w.doing != NICSTRIDE_GATE_NOTHING)
            if (w.doing != NICSTRIDE_GATE_NOTHING)
                change_at_once(&w);
            else if (!receive(&w, 0) && w.p[0].stage == HOLDS)
                leave(&w, 0);
            else if (w.p[0].stage == TRIES || w.p[0].stage == LEAVES)
                at_the_word(&w, &w.p[0]);
    }
    UNIT_CHECK(w.queued == 1 && w.entered == 99);
}
END_TEST

/** Near processes that find it open again and again have it opened less and less. */
START_TEST(near_processes_keep_it_shut)
{
    static world_t w;
    unsigned opened = 0;

    memset(&w, 0, sizeof(w));
    w.word = NICSTRIDE_GATE_CLOSED;
    nicstride_lockq_init(queue(&w), ALL + 1);
    for (int turn = 0; turn < 1000; turn++) {
        w.p[0].type = NICSTRIDE_LOCK_EXCLUSIVE;
        request(&w, 0);
        UNIT_CHECK(w.p[0].stage == HOLDS);
        leave(&w, 0);
        while (receive(&w, 0))
            ;
        opened += w.doing == NICSTRIDE_GATE_DO_OPEN;
        if (w.doing != NICSTRIDE_GATE_NOTHING)
            change_at_once(&w);
        w.p[FAR].type = NICSTRIDE_LOCK_EXCLUSIVE;
        request(&w, FAR);
        for (; w.closes > 0; w.closes--)
            follow(&w, nicstride_gate_wanted(&w.gate, queue(&w), true, w.word));
        if (w.doing != NICSTRIDE_GATE_NOTHING)
            change_at_once(&w);
        UNIT_CHECK(w.p[FAR].stage == HOLDS);
        leave(&w, FAR);
    }
    UNIT_CHECK(opened > 5 && opened < 40);
}
END_TEST

/** Those in the queue that share the lock have it beside those inside; the others when these have
 *  gone. */
START_TEST(beside_those_inside)
{
    static world_t w;

    memset(&w, 0, sizeof(w));
    w.word = 2;
    w.gate.state = NICSTRIDE_GATE_OPEN;
    nicstride_lockq_init(queue(&w), ALL + 1);
    UNIT_CHECK(nicstride_lockq_try(queue(&w), ALL, NICSTRIDE_LOCK_EXCLUSIVE, false));
    w.p[0].type = NICSTRIDE_LOCK_SHARED;
    request(&w, 0);
    w.p[1].type = NICSTRIDE_LOCK_EXCLUSIVE;
    request(&w, 1);
    follow(&w, nicstride_gate_wanted(&w.gate, queue(&w), false, w.word));
    UNIT_CHECK(w.doing == NICSTRIDE_GATE_DO_CLOSE && w.p[0].stage == WAITS);
    change_at_once(&w);
    UNIT_CHECK(w.p[0].stage == HOLDS && w.p[1].stage == WAITS);
    leave(&w, 0);
    w.word -= 2;
    while (receive(&w, 0))
        ;
    follow(&w, nicstride_gate_wanted(&w.gate, queue(&w), false, w.word));
    UNIT_CHECK(w.p[1].stage == HOLDS && w.gate.state == NICSTRIDE_GATE_SHUT);
}
END_TEST

START_TEST(luck)
{
    nicstride_gate_luck_t l = {0};
    unsigned tries = 0;

    for (int i = 0; i < 1000; i++) {
        if (!nicstride_gate_may_try(&l))
            continue;
        nicstride_gate_tried(&l, false);
        tries++;
    }
    UNIT_CHECK(tries > 50 && tries < 80);
    l.skip = 0;
    nicstride_gate_tried(&l, true);
    UNIT_CHECK(nicstride_gate_may_try(&l));
}
END_TEST

int main(void)
{
    return UNIT_RUN("gate", UNIT_ONCE(any_order), UNIT_ONCE(alone),
                    UNIT_ONCE(near_processes_keep_it_shut), UNIT_ONCE(beside_those_inside),
                    UNIT_ONCE(luck));
}
