/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Room for replies: an origin that gets from many targets in many windows, over a network of which
 * each target answers in its own time. What is out is bounded, nobody is passed in the line, and
 * all of it ends, though some targets are lost.
 */
#include "osc_nicstride/protocol/credit.h"

#include <string.h>

#include "test/unit/unit.h"

enum { TARGETS = 12, WINDOWS = 4, ASKERS = TARGETS * WINDOWS, ASKED_MAX = 64, GETS = 40 };

/** A target in one window: gets that wait, in order, and what was asked for and has not come. */
typedef struct peer {
    nicstride_asker_t asker;
    uint64_t left[GETS]; /* bytes still to be asked for */
    unsigned first, n;
    uint64_t asked[ASKED_MAX];
    unsigned nasked;
    bool lost, holds_back; /* other things keep it from asking */
    unsigned passed;       /* others have asked since it stood in line */
    unsigned before;       /* that were in the line when it came */
} peer_t;

typedef struct simulation {
    unit_random_t r;
    nicstride_replies_t replies;
    peer_t peer[ASKERS];
    uint64_t most;
} simulation_t;

static unsigned in_line(const simulation_t *s)
{
    const nicstride_asker_t *a;
    unsigned n = 0;

    TAILQ_FOREACH(a, &s->replies.line, of_line)
        n++;
    return n;
}

/* Nobody who came later asks before those in line do. */
static void count_passed(simulation_t *s, const peer_t *asks)
{
    for (int i = 0; i < ASKERS; i++) {
        peer_t *p = &s->peer[i];

        if (p != asks && p->asker.bytes > 0)
            UNIT_CHECK(++p->passed <= p->before);
    }
}

/* As the target does: as long as it may. */
static void pump(simulation_t *s, peer_t *p)
{
    while (p->first < p->n && p->nasked < ASKED_MAX && !p->lost && !p->holds_back) {
        const uint64_t piece = nicstride_reply_piece(&s->replies);
        const uint64_t left = p->left[p->first], bytes = left < piece ? left : piece;
        const bool waited = p->asker.bytes > 0;

        if (!nicstride_reply_may_ask(&s->replies, &p->asker, bytes)) {
            UNIT_CHECK(p->asker.bytes == bytes);
            if (!waited) {
                p->passed = 0;
                p->before = in_line(s) - 1;
            }
            return;
        }
        UNIT_CHECK(p->asker.bytes == 0);
        s->replies.out += bytes;
        UNIT_CHECK(s->replies.out <= s->replies.limit);
        if (s->replies.out > s->most)
            s->most = s->replies.out;
        count_passed(s, p);
        p->asked[p->nasked++] = bytes;
        p->left[p->first] -= bytes;
        if (p->left[p->first] == 0)
            p->first++;
    }
}

static void pump_line(simulation_t *s)
{
    for (nicstride_asker_t *a = nicstride_reply_next(&s->replies); a != NULL;
         a = nicstride_reply_next(&s->replies)) {
        pump(s, (peer_t *)(void *)a);
        if (nicstride_reply_next(&s->replies) == a) {
            for (int i = 0; i < ASKERS; i++)
                s->peer[i].before -= s->peer[i].before > 0;
            nicstride_reply_leave(&s->replies, a);
        }
    }
}

/* The target has answered: some of its oldest piece, in fragments, or all of it. */
static void answer(simulation_t *s, peer_t *p)
{
    const uint64_t bytes =
        unit_once_in(&s->r, 2) ? p->asked[0] : 1 + unit_below(&s->r, p->asked[0]);

    s->replies.out -= bytes;
    p->asked[0] -= bytes;
    if (p->asked[0] == 0)
        memmove(p->asked, p->asked + 1, --p->nasked * sizeof(p->asked[0]));
    pump_line(s);
    pump(s, p);
}

static void lose(simulation_t *s, peer_t *p)
{
    p->lost = true;
    p->first = p->n;
    while (p->nasked > 0)
        s->replies.out -= p->asked[--p->nasked];
    if (unit_once_in(&s->r, 2))
        nicstride_reply_leave(&s->replies, &p->asker);
    pump_line(s);
}

static void get(simulation_t *s, peer_t *p)
{
    const uint64_t longest = unit_once_in(&s->r, 6) ? 4 * s->replies.limit : 5000;

    if (p->n == GETS || p->lost)
        return;
    p->left[p->n++] = 1 + unit_below(&s->r, longest);
    pump(s, p);
}

static bool is_over(const simulation_t *s)
{
    for (int i = 0; i < ASKERS; i++)
        if (s->peer[i].nasked > 0 || s->peer[i].first < s->peer[i].n)
            return false;
    return true;
}

static void step(simulation_t *s, bool ends)
{
    peer_t *p = &s->peer[unit_below(&s->r, ASKERS)];

    if (!ends && unit_once_in(&s->r, 3))
        get(s, p);
    else if (p->nasked > 0)
        answer(s, p);
    if (unit_once_in(&s->r, 40)) {
        p->holds_back = !ends && !p->holds_back;
        pump(s, p);
    }
    if (!ends && unit_once_in(&s->r, 2000))
        lose(s, p);
}

START_TEST(bounded_fair_and_never_stuck)
{
    static const uint64_t limits[] = {4 * NICSTRIDE_INLINE_MAX, UINT64_C(256) << 10,
                                      UINT64_C(16) << 20};
    unit_random_t r = {unit_seed()};

    for (int round = 0; round < 60; round++) {
        simulation_t s = {.r = r};

        nicstride_replies_init(&s.replies, limits[round % 3]);
        for (int i = 0; i < 6000; i++)
            step(&s, false);
        for (int i = 0; i < ASKERS; i++) {
            s.peer[i].holds_back = false;
            pump(&s, &s.peer[i]);
        }
        /* Only replies come from now on. */
        for (int i = 0; i < 5000000 && !is_over(&s); i++)
            step(&s, true);
        ck_assert(is_over(&s));
        ck_assert_uint_eq(s.replies.out, 0);
        pump_line(&s);
        ck_assert(TAILQ_EMPTY(&s.replies.line));
        ck_assert_uint_gt(s.most, s.replies.limit / 2);
        r = s.r;
    }
}
END_TEST

/* A short one that would fit does not pass a long one that does not. */
START_TEST(nobody_passes)
{
    nicstride_replies_t r;
    nicstride_asker_t a = {.bytes = 0}, b = {.bytes = 0}, c = {.bytes = 0};

    nicstride_replies_init(&r, 100000);
    ck_assert(nicstride_reply_may_ask(&r, &a, 50000));
    r.out += 50000;
    ck_assert(nicstride_reply_may_ask(&r, &a, 30000));
    r.out += 30000;
    ck_assert(!nicstride_reply_may_ask(&r, &b, 50000));
    ck_assert(!nicstride_reply_may_ask(&r, &c, 8));
    ck_assert(!nicstride_reply_may_ask(&r, &a, 8));
    ck_assert_ptr_null(nicstride_reply_next(&r));
    r.out -= 30000;
    ck_assert_ptr_eq(nicstride_reply_next(&r), &b);
    ck_assert(!nicstride_reply_may_ask(&r, &c, 8));
    ck_assert(nicstride_reply_may_ask(&r, &b, 50000));
    r.out += 50000;
    ck_assert_ptr_null(nicstride_reply_next(&r));
    /* Who stands in the middle may leave. */
    ck_assert(!nicstride_reply_may_ask(&r, &b, 8));
    nicstride_reply_leave(&r, &a);
    nicstride_reply_leave(&r, &a);
    r.out = 0;
    ck_assert_ptr_eq(nicstride_reply_next(&r), &c);
    ck_assert(nicstride_reply_may_ask(&r, &c, 8));
    ck_assert_ptr_eq(nicstride_reply_next(&r), &b);
    nicstride_reply_leave(&r, &b);
    ck_assert(TAILQ_EMPTY(&r.line));
}
END_TEST

/* Beside what is kept with a lock there is room for the longest. */
START_TEST(longest_fits_beside_what_is_kept)
{
    for (uint64_t limit = 4 * NICSTRIDE_INLINE_MAX; limit < UINT64_C(1) << 40; limit *= 2) {
        nicstride_replies_t r = {.limit = limit, .out = NICSTRIDE_INLINE_MAX};

        ck_assert(nicstride_reply_fits(&r, nicstride_reply_piece(&r)));
        ck_assert_uint_ge(nicstride_reply_piece(&r), NICSTRIDE_INLINE_MAX);
    }
}
END_TEST

int main(void)
{
    return UNIT_RUN("replies", UNIT_ONCE(bounded_fair_and_never_stuck), UNIT_ONCE(nobody_passes),
                    UNIT_ONCE(longest_fits_beside_what_is_kept));
}
