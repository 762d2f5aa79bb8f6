/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * MPI_Win_lock_all beside locks of single targets (window_lock.h, lockq.h): random programs of
 * processes that share memory with rank 0, and of others that send it messages. In any interleaving
 * nobody waits for ever, nobody is where he must not be, and who wants the window's lock for one
 * purpose only asks once.
 *
 * What programs there are: MPI_Win_lock_all; an exclusive lock of any target; nests of locks, of
 * even targets shared in any order, of odd ones exclusive in ascending order. These end if they run
 * in any order one after the other, and no two of them hold what the other waits for.
 */
#include <stdlib.h>
#include <string.h>

#include "osc_nicstride/protocol/lockq.h"
#include "osc_nicstride/protocol/window_lock.h"
#include "test/unit/unit.h"

enum { PROCESSES = 7, TARGETS = 6, EPOCHS = 30, MESSAGES = 4 };

typedef enum program { ALL, SINGLE, NEST, PROGRAMS } program_t;

typedef enum message { NOTHING, LOCK, UNLOCK, GRANT, LEAVE } message_t;

typedef struct wanted {
    unsigned target, type;
} wanted_t;

typedef struct process {
    bool far;
    nicstride_stay_t stay;
    message_t to[MESSAGES];   /* to rank 0, in this order */
    message_t from[MESSAGES]; /* from its node, in any */
    uint32_t says, granted;   /* of the messages LOCK and GRANT */
    unsigned epochs;          /* still to come */
    program_t program;
    bool inside;
    wanted_t wants[TARGETS]; /* locks of the epoch */
    unsigned n, next;        /* how many, and the next one to be asked for */
    unsigned held;           /* a set of those that are not given back */
    unsigned uses;           /* of the window's lock */
    bool waits, asked;       /* for a target's; for the window's */
    unsigned asks;           /* requests for the window's, in all */
} process_t;

typedef struct world {
    process_t p[PROCESSES];
    nicstride_lockq_t *target[TARGETS], *window;
    unsigned n;
    bool holds;       /* requests say that their processes hold other locks */
    bool window_lock; /* is it taken at all? */
} world_t;

static void push(message_t *line, message_t m)
{
    unsigned i = 0;

    while (i < MESSAGES && line[i] != NOTHING)
        i++;
    UNIT_CHECK(i < MESSAGES);
    line[i] = m;
}

static message_t pop(message_t *line, unsigned i)
{
    const message_t m = line[i];

    memmove(line + i, line + i + 1, (MESSAGES - 1 - i) * sizeof(*line));
    line[MESSAGES - 1] = NOTHING;
    return m;
}

static unsigned length(const message_t *line)
{
    unsigned i = 0;

    while (i < MESSAGES && line[i] != NOTHING)
        i++;
    return i;
}

/* ---- the window's lock ----------------------------------------------------------------------- */

static void tell(world_t *w, uint32_t origin)
{
    process_t *p = &w->p[origin];

    if (!p->far) {
        nicstride_stay_granted(&p->stay, w->window->type);
        return;
    }
    p->granted = w->window->type;
    push(p->from, GRANT);
}

static void settle(world_t *w)
{
    uint32_t origin;
    bool left;

    do {
        left = false;
        while (nicstride_lockq_next_grant(w->window, &origin))
            tell(w, origin);
        while (nicstride_lockq_next_to_leave(w->window, &origin))
            if (w->p[origin].far)
                push(w->p[origin].from, LEAVE);
            else if (nicstride_stay_leave(&w->p[origin].stay))
                left = nicstride_lockq_release(w->window, origin);
    } while (left);
}

static void request(world_t *w, uint32_t i, uint32_t says)
{
    if (nicstride_lockq_request(w->window, i, says & 7, says > 7))
        tell(w, i);
    settle(w);
}

static void give_back(world_t *w, uint32_t i)
{
    if (w->p[i].far) {
        push(w->p[i].to, UNLOCK);
        return;
    }
    UNIT_CHECK(nicstride_lockq_release(w->window, i));
    settle(w);
}

/** False where it is to be waited for. */
static bool take(world_t *w, uint32_t i, uint32_t type)
{
    process_t *p = &w->p[i];

    if (!w->window_lock || p->uses > 0 ||
        (p->asked ? nicstride_stay_is_used(&p->stay) : nicstride_stay_use(&p->stay, type))) {
        p->asked = false;
        p->uses++;
        return true;
    }
    if (p->asked)
        return false;
    p->asked = true;
    p->asks++;
    if (nicstride_stay_leave_idle(&p->stay))
        give_back(w, i);
    p->says = type | (p->held != 0 && w->holds ? 8 : 0);
    if (p->far)
        push(p->to, LOCK);
    else
        request(w, i, p->says);
    return false;
}

static void end_use(world_t *w, uint32_t i)
{
    process_t *p = &w->p[i];

    if (--p->uses == 0 && w->window_lock && !nicstride_stay_end(&p->stay))
        give_back(w, i);
}

static void arrive(unit_random_t *r, world_t *w, uint32_t i, bool at_rank_0)
{
    process_t *p = &w->p[i];

    if (at_rank_0) {
        if (pop(p->to, 0) == LOCK) {
            request(w, i, p->says);
        } else {
            UNIT_CHECK(nicstride_lockq_release(w->window, i));
            settle(w);
        }
        return;
    }
    /* Several processes of rank 0's node send: the later message may be there first. */
    if (pop(p->from, (unsigned)unit_below(r, length(p->from))) == GRANT)
        nicstride_stay_granted(&p->stay, p->granted);
    else if (nicstride_stay_leave(&p->stay))
        give_back(w, i);
}

/* ---- epochs ---------------------------------------------------------------------------------- */

static void begin(unit_random_t *r, process_t *p)
{
    const unsigned first = (unsigned)unit_below(r, TARGETS);
    unsigned shared = first, exclusive = first;

    p->epochs--;
    p->program = (program_t)unit_below(r, PROGRAMS);
    p->n = p->next = p->held = 0;
    p->inside = true;
    if (p->program == SINGLE)
        p->wants[p->n++] = (wanted_t){first, NICSTRIDE_LOCK_EXCLUSIVE};
    if (p->program != NEST)
        return;
    for (unsigned k = 0; k < TARGETS / 2; k++) {
        /* Once round, from anywhere on. */
        shared = (shared + 1) % TARGETS;
        shared += shared % 2;
        exclusive += 1 + exclusive % 2;
        if (unit_once_in(r, 2))
            p->wants[p->n++] = (wanted_t){shared % TARGETS, NICSTRIDE_LOCK_SHARED};
        if (unit_once_in(r, 2) && exclusive < TARGETS)
            p->wants[p->n++] = (wanted_t){exclusive, NICSTRIDE_LOCK_EXCLUSIVE};
    }
}

static void hand_on(world_t *w, unsigned t)
{
    uint32_t to;

    while (nicstride_lockq_next_grant(w->target[t], &to)) {
        process_t *p = &w->p[to];

        UNIT_CHECK(p->waits && p->wants[p->next].target == t);
        p->waits = false;
        p->held |= 1u << p->next++;
    }
}

static void release(world_t *w, uint32_t i, unsigned k)
{
    process_t *p = &w->p[i];

    p->held &= ~(1u << k);
    UNIT_CHECK(nicstride_lockq_release(w->target[p->wants[k].target], i));
    hand_on(w, p->wants[k].target);
    if (p->wants[k].type == NICSTRIDE_LOCK_EXCLUSIVE)
        end_use(w, i);
}

static bool is_in_all(const process_t *p)
{
    return p->inside && p->program == ALL && p->uses > 0;
}

/** Is nobody where he must not be? */
static bool is_right(const world_t *w)
{
    unsigned all = 0, shared[TARGETS] = {0}, exclusive[TARGETS] = {0}, any = 0;

    for (unsigned i = 0; i < w->n; i++) {
        const process_t *p = &w->p[i];

        all += is_in_all(p);
        for (unsigned k = 0; k < p->n; k++)
            if ((p->held & 1u << k) != 0)
                ++(p->wants[k].type == NICSTRIDE_LOCK_SHARED ? shared
                                                             : exclusive)[p->wants[k].target];
    }
    for (unsigned t = 0; t < TARGETS; t++) {
        UNIT_CHECK(exclusive[t] <= 1 && (exclusive[t] == 0 || shared[t] == 0));
        any += exclusive[t];
    }
    return all == 0 || any == 0;
}

/** Goes on with its epoch. False where it waits. */
static bool go_on(unit_random_t *r, world_t *w, uint32_t i)
{
    process_t *p = &w->p[i];

    if (!p->inside) {
        if (p->epochs == 0)
            return false;
        begin(r, p);
        return true;
    }
    if (p->program == ALL) {
        if (p->uses == 0)
            return take(w, i, NICSTRIDE_LOCK_OF_ALL) || p->asks == 0;
        end_use(w, i);
        p->inside = false;
        return true;
    }
    if (p->waits)
        return false;
    if (p->next < p->n) {
        const wanted_t *want = &p->wants[p->next];
        unsigned used = 0;

        for (unsigned k = 0; k < p->next; k++)
            used += (p->held & 1u << k) != 0 && p->wants[k].type == NICSTRIDE_LOCK_EXCLUSIVE;
        if (want->type == NICSTRIDE_LOCK_EXCLUSIVE && p->uses == used &&
            !take(w, i, NICSTRIDE_LOCK_OF_SOME))
            return false;
        if (nicstride_lockq_request(w->target[want->target], i, want->type,
                                    w->holds && p->held != 0))
            p->held |= 1u << p->next++;
        else
            p->waits = true;
        return true;
    }
    if (p->held != 0) {
        unsigned k = (unsigned)unit_below(r, p->n);

        while ((p->held & 1u << k) == 0)
            k = (k + 1) % p->n;
        release(w, i, k);
        return true;
    }
    p->inside = false;
    return true;
}

/** What is all done with: true; where all that is left waits for ever: false. `wrong`: how often
 *  somebody was where he must not be. */
static bool run(unit_random_t *r, world_t *w, unsigned *wrong)
{
    unsigned idle = 0;

    while (idle < 400) {
        const uint32_t i = (uint32_t)unit_below(r, w->n);
        process_t *p = &w->p[i];
        bool moved = true;

        switch (unit_below(r, 3)) {
        case 0:
            moved = length(p->to) > 0;
            if (moved)
                arrive(r, w, i, true);
            break;
        case 1:
            moved = length(p->from) > 0;
            if (moved)
                arrive(r, w, i, false);
            break;
        default:
            moved = go_on(r, w, i);
        }
        *wrong += !is_right(w);
        idle = moved ? 0 : idle + 1;
    }
    for (unsigned i = 0; i < w->n; i++)
        if (w->p[i].inside || w->p[i].epochs > 0)
            return false;
    return true;
}

static nicstride_lockq_t *new_queue(unsigned n)
{
    nicstride_lockq_t *q = malloc(nicstride_lockq_size(n));

    UNIT_CHECK(q != NULL);
    nicstride_lockq_init(q, n);
    return q;
}

/** How many of the runs ended. */
static unsigned runs_that_end(bool holds, bool window_lock, unsigned runs, unsigned *wrong)
{
    unit_random_t r = {unit_seed()};
    unsigned ended = 0;

    *wrong = 0;
    for (unsigned k = 0; k < runs; k++) {
        world_t w = {.n = 2 + (unsigned)unit_below(&r, PROCESSES - 1),
                     .holds = holds,
                     .window_lock = window_lock};
        const unsigned near = 1 + (unsigned)unit_below(&r, w.n);

        w.window = new_queue(w.n);
        for (unsigned t = 0; t < TARGETS; t++)
            w.target[t] = new_queue(w.n);
        for (unsigned i = 0; i < w.n; i++) {
            w.p[i].epochs = EPOCHS;
            w.p[i].far = i >= near;
        }
        ended += run(&r, &w, wrong);
        free(w.window);
        for (unsigned t = 0; t < TARGETS; t++)
            free(w.target[t]);
    }
    return ended;
}

START_TEST(no_circles)
{
    unsigned wrong;

    ck_assert_uint_eq(runs_that_end(true, true, 1000, &wrong), 1000);
    ck_assert_uint_eq(wrong, 0);
    /* First come, first served, is not enough, */
    ck_assert_uint_lt(runs_that_end(false, true, 1000, &wrong), 1000);
    ck_assert_uint_eq(wrong, 0);
    /* and without the window's lock some are where they must not be. */
    (void)runs_that_end(true, false, 100, &wrong);
    ck_assert_uint_gt(wrong, 0);
}
END_TEST

/** A program with MPI_Win_lock_all only, or exclusive locks only, asks once for each process. */
START_TEST(asks_once)
{
    const uint32_t types[] = {NICSTRIDE_LOCK_OF_ALL, NICSTRIDE_LOCK_OF_SOME};
    unit_random_t r = {unit_seed()};
    world_t w = {.n = PROCESSES, .holds = true, .window_lock = true};

    w.window = new_queue(w.n);
    for (uint32_t i = 0; i < w.n; i++) {
        w.p[i].far = i > 2;
        for (int epoch = 0; epoch < 10; epoch++) {
            while (!take(&w, i, types[_i])) {
                if (length(w.p[i].to) > 0)
                    arrive(&r, &w, i, true);
                if (length(w.p[i].from) > 0)
                    arrive(&r, &w, i, false);
            }
            end_use(&w, i);
        }
        ck_assert_uint_eq(w.p[i].asks, 1);
    }
    ck_assert_uint_eq(w.window->holders, w.n);
    free(w.window);
}
END_TEST

/** Who uses the lock leaves when that is over; who does not at once; and a request to leave may
 *  come before the grant. */
START_TEST(leaving)
{
    nicstride_stay_t s = 0;

    ck_assert(!nicstride_stay_use(&s, NICSTRIDE_LOCK_OF_ALL));
    nicstride_stay_granted(&s, NICSTRIDE_LOCK_OF_ALL);
    ck_assert(nicstride_stay_end(&s));
    ck_assert(!nicstride_stay_use(&s, NICSTRIDE_LOCK_OF_SOME));
    ck_assert(nicstride_stay_use(&s, NICSTRIDE_LOCK_OF_ALL));
    ck_assert(!nicstride_stay_leave(&s));
    ck_assert(!nicstride_stay_end(&s));
    ck_assert(!nicstride_stay_use(&s, NICSTRIDE_LOCK_OF_ALL));

    nicstride_stay_granted(&s, NICSTRIDE_LOCK_OF_SOME);
    ck_assert(nicstride_stay_end(&s));
    ck_assert(nicstride_stay_leave(&s));
    ck_assert(!nicstride_stay_use(&s, NICSTRIDE_LOCK_OF_SOME));

    ck_assert(!nicstride_stay_leave(&s));
    ck_assert(!nicstride_stay_is_used(&s));
    nicstride_stay_granted(&s, NICSTRIDE_LOCK_OF_ALL);
    ck_assert(nicstride_stay_is_used(&s));
    ck_assert(!nicstride_stay_end(&s));
}
END_TEST

int main(void)
{
    return UNIT_RUN("lock_all", UNIT_ONCE(no_circles), UNIT_LOOP(asks_once, 0, 2),
                    UNIT_ONCE(leaving));
}
