/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The lock queue: two to four processes that ask for the locks of two targets, shared or
 *  exclusively, hold one while they wait for the other, give them back, and are lost; and the
 *  window's own lock, in which they stay until they are asked to leave. In all states: who holds a
 *  lock excludes others; nobody overtakes who waits, but where the queue says so; and where all who
 *  can go on give back what they hold, those who wait for ever are in a circle of processes each of
 *  which holds what the next must not have beside it: the program has made it. */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "osc_nicstride/protocol/lockq.c"

#define MEMBERS 4
#define LOCKS   2

/** A queue with its entries. */
typedef struct lock {
    _Alignas(nicstride_lockq_t) unsigned char bytes[sizeof(nicstride_lockq_t) +
                                                    MEMBERS * sizeof(nicstride_lockq_entry_t)];
} lock_t;

typedef struct state {
    lock_t lock[LOCKS];
    /* As the processes know it: types, or 0. */
    uint8_t holds[LOCKS][MEMBERS], waits[LOCKS][MEMBERS];
    bool lost[MEMBERS];
    /** Of the window's lock: was asked to leave, and has not. */
    bool to_leave[MEMBERS];
    uint8_t nlost;
} state_t;

#include "test/explore/states.h"

static unsigned n, nlocks, nlost_most;
/** The two that are asked for. */
static uint8_t type[2];

static nicstride_lockq_t *queue_of(state_t *s, unsigned l)
{
    return (nicstride_lockq_t *)(void *)s->lock[l].bytes;
}

static size_t key_of(const state_t *s, uint8_t key[KEY_BYTES])
{
    size_t at = 0;
    for (unsigned l = 0; l < nlocks; l++) {
        const nicstride_lockq_t *q = (const nicstride_lockq_t *)(const void *)s->lock[l].bytes;
        key[at++] = (uint8_t)q->head;
        key[at++] = (uint8_t)q->tail;
        key[at++] = (uint8_t)q->stays;
        key[at++] = (uint8_t)q->holders;
        for (unsigned i = 0; i < n; i++) {
            key[at++] = (uint8_t)q->entry[i].next;
            key[at++] = (uint8_t)q->entry[i].state;
            key[at++] = (uint8_t)(s->holds[l][i] | s->waits[l][i] << 4);
        }
    }
    for (unsigned i = 0; i < n; i++)
        key[at++] = (uint8_t)(s->lost[i] | s->to_leave[i] << 1);
    return at;
}

static bool fits_beside(uint8_t a, uint8_t b)
{
    return a == b && a != NICSTRIDE_LOCK_EXCLUSIVE;
}

static bool waits(const state_t *s, unsigned i)
{
    bool any = false;
    for (unsigned l = 0; l < nlocks; l++)
        any |= s->waits[l][i] != 0;
    return any;
}

static bool holds_any(const state_t *s, unsigned i)
{
    bool any = false;
    for (unsigned l = 0; l < nlocks; l++)
        any |= s->holds[l][i] != 0;
    return any;
}

/* ---- steps
 * --------------------------------------------------------------------------------------- */

static void granted(state_t *s, unsigned l, unsigned i)
{
    if (s->holds[l][i] != 0)
        broken = "a lock is granted to who holds it";
    s->holds[l][i] = s->waits[l][i];
    s->waits[l][i] = 0;
}

/** What follows each change of a queue. */
static void follow(state_t *s, unsigned l)
{
    uint32_t i, head = queue_of(s, l)->head;
    while (nicstride_lockq_next_grant(queue_of(s, l), &i)) {
        if (s->waits[l][i] == 0 || head != i + 1)
            broken = "a lock is granted to who does not wait for it, or is not the first";
        head = queue_of(s, l)->head;
        granted(s, l, i);
    }
    while (nicstride_lockq_next_to_leave(queue_of(s, l), &i)) {
        if (s->holds[l][i] == 0 || s->to_leave[i])
            broken = "who does not stay, or was asked, is asked to leave";
        s->to_leave[i] = true;
    }
}

static void ask(state_t *s, unsigned i, unsigned l, uint8_t what)
{
    bool line = false;
    for (unsigned j = 0; j < n; j++)
        line |= s->waits[l][j] != 0;
    s->waits[l][i] = what;
    if (nicstride_lockq_request(queue_of(s, l), i, what, holds_any(s, i))) {
        if (line && (what == NICSTRIDE_LOCK_EXCLUSIVE || !holds_any(s, i)))
            broken = "who asks overtakes one that waits";
        granted(s, l, i);
    } else if (queue_of(s, l)->tail != i + 1 &&
               (what == NICSTRIDE_LOCK_EXCLUSIVE || !holds_any(s, i))) {
        broken = "who asks does not wait behind all others";
    }
    follow(s, l);
}

static void give_back(state_t *s, unsigned i, unsigned l)
{
    if (!nicstride_lockq_release(queue_of(s, l), i))
        broken = "who holds a lock cannot give it back";
    s->holds[l][i] = 0;
    s->to_leave[i] = false;
    follow(s, l);
}

static void lose(state_t *s, unsigned i)
{
    s->lost[i] = true;
    s->nlost++;
    for (unsigned l = 0; l < nlocks; l++) {
        const bool had = s->holds[l][i] != 0 || s->waits[l][i] != 0;
        if (nicstride_lockq_forget(queue_of(s, l), i) != had)
            broken = "who is lost was not known, or had nothing";
        if (nicstride_lockq_forget(queue_of(s, l), i))
            broken = "who is lost is forgotten twice";
        s->holds[l][i] = s->waits[l][i] = 0;
        s->to_leave[i] = false;
        follow(s, l);
    }
}

/* ---- what must hold
 * ------------------------------------------------------------------------------ */

static void check_held(const state_t *s)
{
    for (unsigned l = 0; l < nlocks; l++) {
        unsigned holders = 0;
        for (unsigned i = 0; i < n; i++) {
            holders += s->holds[l][i] != 0;
            if (nicstride_lockq_holds((const nicstride_lockq_t *)(const void *)s->lock[l].bytes,
                                      i) != (s->holds[l][i] != 0))
                broken = "the queue and a process do not agree on who holds a lock";
            for (unsigned j = 0; j < i; j++)
                if (s->holds[l][i] != 0 && s->holds[l][j] != 0 &&
                    !fits_beside(s->holds[l][i], s->holds[l][j]))
                    broken = "two hold a lock that excludes one of them";
        }
        if (((const nicstride_lockq_t *)(const void *)s->lock[l].bytes)->holders != holders)
            broken = "the queue counts others than those that hold the lock";
    }
}

/** All that wait for a lock, and no others, stand in its line. */
static void check_lines(const state_t *s)
{
    for (unsigned l = 0; l < nlocks; l++) {
        const nicstride_lockq_t *q = (const nicstride_lockq_t *)(const void *)s->lock[l].bytes;
        unsigned waiting = 0, standing = 0;
        uint32_t last = 0;
        for (unsigned i = 0; i < n; i++)
            waiting += s->waits[l][i] != 0;
        for (uint32_t at = q->head; at != 0 && standing <= n; at = q->entry[at - 1].next) {
            standing++;
            last = at;
            if (s->waits[l][at - 1] == 0)
                broken = "who does not wait stands in the line";
        }
        if (standing != waiting || (waiting != 0 && q->tail != last))
            broken = "who waits does not stand in the line";
    }
}

/** Does `i` wait for a lock that `j` holds and must give back before? */
static bool waits_for(const state_t *s, unsigned i, unsigned j)
{
    bool does = false;
    for (unsigned l = 0; l < nlocks; l++)
        does |= s->waits[l][i] != 0 && s->holds[l][j] != 0 &&
                !fits_beside(s->waits[l][i], s->holds[l][j]);
    return does;
}

static bool has_circle(const state_t *s)
{
    bool reaches[MEMBERS][MEMBERS], circle = false;
    for (unsigned i = 0; i < n; i++)
        for (unsigned j = 0; j < n; j++)
            reaches[i][j] = waits_for(s, i, j);
    for (unsigned k = 0; k < n; k++)
        for (unsigned i = 0; i < n; i++)
            for (unsigned j = 0; j < n; j++)
                reaches[i][j] = reaches[i][j] || (reaches[i][k] && reaches[k][j]);
    for (unsigned i = 0; i < n; i++)
        circle = circle || reaches[i][i];
    return circle;
}

static bool stays(const state_t *s, unsigned i)
{
    return nicstride_lock_is_of_window(s->holds[0][i]);
}

/** All go on as far as they can: who waits for nothing gives back what it holds; but who stays only
 *  if it was asked. */
static void check_ends(const state_t *now)
{
    state_t s = *now;
    bool any = true, left = false;
    while (any && broken == NULL) {
        any = false;
        for (unsigned i = 0; i < n; i++)
            for (unsigned l = 0; l < nlocks && !waits(&s, i); l++)
                if (s.holds[l][i] != 0 && (!stays(&s, i) || s.to_leave[i])) {
                    give_back(&s, i, l);
                    any = true;
                }
    }
    for (unsigned i = 0; i < n; i++)
        left |= waits(&s, i);
    if (left && !has_circle(&s))
        broken = "a process waits for ever, though no lock makes a circle";
}

static void look_at(const state_t *s)
{
    state_t next;
    check_held(s);
    check_lines(s);
    if (broken != NULL)
        return;
    check_ends(s);
    for (unsigned i = 0; i < n; i++) {
        if (s->lost[i])
            continue;
        if (s->nlost < nlost_most) {
            next = *s;
            lose(&next, i);
            reach(&next);
        }
        /* Who waits is in a call. */
        for (unsigned l = 0; l < nlocks && !waits(s, i); l++) {
            if (s->holds[l][i] != 0 && (!stays(s, i) || s->to_leave[i])) {
                next = *s;
                give_back(&next, i, l);
                reach(&next);
            }
            for (unsigned t = 0; t < 2 && s->holds[l][i] == 0; t++) {
                next = *s;
                ask(&next, i, l, type[t]);
                reach(&next);
            }
        }
    }
}

static bool run_all(const char *name, unsigned members, unsigned locks, uint8_t one, uint8_t other,
                    unsigned lost)
{
    state_t s;
    memset(&s, 0, sizeof(s));
    n = members;
    nlocks = locks;
    nlost_most = lost;
    type[0] = one;
    type[1] = other;
    for (unsigned l = 0; l < LOCKS; l++)
        nicstride_lockq_init(queue_of(&s, l), n);
    char text[80];
    (void)snprintf(text, sizeof(text), "%-24s %u members, %u lost", name, members, lost);
    return search_states(text, &s);
}

int main(int argc, char **argv)
{
    const bool all = states_options(argc, argv);
    const uint8_t shared = NICSTRIDE_LOCK_SHARED, exclusive = NICSTRIDE_LOCK_EXCLUSIVE;
    const uint8_t of_all = NICSTRIDE_LOCK_OF_ALL, of_some = NICSTRIDE_LOCK_OF_SOME;
    bool good = true;
    for (unsigned members = 2; members <= MEMBERS; members++) {
        good = good && run_all("lockq-window", members, 1, of_all, of_some, members);
        good = good &&
               run_all("lockq-targets", members, 2, shared, exclusive, all || members < 4 ? 1 : 0);
    }
    return states_status(good);
}
