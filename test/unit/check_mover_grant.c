/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Grants: a receiver and up to 64 senders that ask, use what they are granted, release it and are
 * lost at random. No slot is granted twice, the area is never exceeded, everybody has its
 * turn, and nothing is lost for good.
 */
#include "common/mover/pipe/grant.h"

#include <string.h>

#include "test/unit/unit.h"

#define SENDERS 64
#define SLOT    4096

/* ---- a pool --------------------------------------------------------------------------------- */

typedef struct pool {
    uint64_t free;
    unsigned total;
    uint64_t all;
} pool_t;

static uint64_t pool_take(void *arg, unsigned max)
{
    pool_t *p = arg;
    uint64_t taken = 0;

    UNIT_CHECK(max > 0);
    for (; max > 0 && p->free != 0; max--) {
        const uint64_t slot = p->free & -p->free;

        p->free &= ~slot;
        taken |= slot;
    }
    return taken;
}

static void pool_release(void *arg, uint64_t slots)
{
    pool_t *p = arg;

    UNIT_CHECK((slots & ~p->all) == 0 && (slots & p->free) == 0);
    p->free |= slots;
}

static unsigned pool_count(void *arg)
{
    const pool_t *p = arg;

    return (unsigned)__builtin_popcountll(p->free);
}

static void pool_init(pool_t *p, onic_grants_t *g, unsigned total)
{
    const onic_grant_source_t source = {total, pool_take, pool_release, pool_count, p};

    p->all = p->free = total == 64 ? UINT64_MAX : (UINT64_C(1) << total) - 1;
    p->total = total;
    onic_grants_init(g, &source);
}

/* ---- senders -------------------------------------------------------------------------------- */

/** A transfer: asked for, or granted and with so much to do. */
typedef struct transfer {
    uint32_t name; /* 0: none */
    uint64_t slots;
    unsigned left; /* turns of work */
} transfer_t;

typedef struct sender {
    onic_requester_t requester;
    transfer_t t[ONIC_GRANT_REQUESTS + 4];
    uint32_t names;
    uint32_t next_grant; /* its requests are granted in their order */
    unsigned ahead;      /* those in the queue and itself, less the grants since; 0: not counted */
} sender_t;

typedef struct world {
    pool_t pool;
    onic_grants_t g;
    sender_t s[SENDERS];
    unsigned senders;
    uint64_t quarantine; /* slots of the lost */
    uint64_t granted, lost;
    unit_random_t r;
} world_t;

static transfer_t *find(sender_t *s, uint32_t name)
{
    for (size_t i = 0; i < sizeof(s->t) / sizeof(s->t[0]); i++) {
        if (s->t[i].name == name)
            return &s->t[i];
    }
    return NULL;
}

/** What the receiver believes is what the senders have. */
static void check_world(world_t *w)
{
    uint64_t seen = w->pool.free | w->quarantine;
    unsigned waiting = 0, active = 0;

    UNIT_CHECK((w->pool.free & w->quarantine) == 0);
    for (unsigned i = 0; i < w->senders; i++) {
        sender_t *s = &w->s[i];
        uint64_t held = 0;
        unsigned requests = 0;

        for (size_t k = 0; k < sizeof(s->t) / sizeof(s->t[0]); k++) {
            UNIT_CHECK((s->t[k].slots & (seen | held)) == 0);
            held |= s->t[k].slots;
            requests += s->t[k].name != 0 && s->t[k].slots == 0;
        }
        seen |= held;
        UNIT_CHECK(held == s->requester.held && requests == s->requester.n);
        waiting += requests > 0;
        active += requests > 0 || held != 0;
    }
    UNIT_CHECK(seen == w->pool.all);
    UNIT_CHECK(waiting == w->g.waiting && active == w->g.active);
    /* The bytes at the receiver: each slot may be full. */
    UNIT_CHECK((uint64_t)__builtin_popcountll(seen & ~w->pool.free) * SLOT <=
               (uint64_t)w->pool.total * SLOT);
}

/** Who holds nothing has its turn before anybody has a second one. */
static void count_turns(world_t *w, sender_t *granted)
{
    granted->ahead = 0;
    for (unsigned i = 0; i < w->senders; i++) {
        sender_t *s = &w->s[i];

        if (s->ahead > 0)
            UNIT_CHECK(--s->ahead > 0);
    }
}

/** Notes how many are in the queue with a sender that has come to hold nothing. */
static void count_ahead(world_t *w)
{
    for (unsigned i = 0; i < w->senders; i++) {
        sender_t *s = &w->s[i];

        if (s->requester.n == 0 || s->requester.held != 0)
            s->ahead = 0;
        else if (s->ahead == 0)
            s->ahead = w->g.waiting;
    }
}

static void serve(world_t *w)
{
    onic_grant_t grant;

    while (onic_grants_next(&w->g, &grant)) {
        sender_t *s = (sender_t *)grant.requester;
        transfer_t *t = find(s, grant.name);

        UNIT_CHECK(t != NULL && t->slots == 0 && grant.slots != 0);
        UNIT_CHECK(grant.name >= s->next_grant);
        s->next_grant = grant.name + 1;
        t->slots = grant.slots;
        t->left = 1 + (unsigned)unit_below(&w->r, 8);
        w->granted++;
        count_turns(w, s);
    }
    /* Slots are not kept from those that wait. */
    UNIT_CHECK(w->g.waiting == 0 || w->pool.free == 0);
}

static void start(world_t *w, sender_t *s)
{
    transfer_t *t = find(s, 0);
    const uint32_t want = (uint32_t)unit_below(&w->r, 100);

    if (t == NULL)
        return;
    *t = (transfer_t){.name = ++s->names};
    if (unit_once_in(&w->r, 4)) {
        const bool others = w->g.waiting > 0;

        t->slots = onic_grants_reserve(&w->g, &s->requester, want);
        t->left = 3;
        UNIT_CHECK(t->slots == 0 || !others);
        if (t->slots != 0)
            return;
    }
    if (!onic_grants_request(&w->g, &s->requester, t->name, want)) {
        UNIT_CHECK(s->requester.n == ONIC_GRANT_REQUESTS);
        t->name = 0;
        s->names--;
    }
}

static void work(world_t *w, sender_t *s)
{
    for (size_t k = 0; k < sizeof(s->t) / sizeof(s->t[0]); k++) {
        transfer_t *t = &s->t[k];

        if (t->slots != 0 && --t->left == 0) {
            UNIT_CHECK(onic_grants_release(&w->g, &s->requester, t->slots) == 0);
            *t = (transfer_t){0};
        }
    }
}

/** What a wrong or wicked message may name: nothing is changed. */
static void release_wrong(world_t *w, sender_t *s)
{
    const uint64_t slots = unit_random64(&w->r) & ~s->requester.held;

    UNIT_CHECK(onic_grants_release(&w->g, &s->requester, slots) == 0);
}

static void lose(world_t *w, sender_t *s)
{
    const uint64_t held = s->requester.held;

    UNIT_CHECK(onic_grants_lose(&w->g, &s->requester, 0) == held);
    w->quarantine |= held;
    w->lost++;
    memset(s, 0, sizeof(*s));
}

static void end_quarantine(world_t *w)
{
    pool_release(&w->pool, w->quarantine);
    w->quarantine = 0;
}

static void act(world_t *w, sender_t *s)
{
    switch (unit_below(&w->r, 16)) {
    case 0:
        if (unit_once_in(&w->r, 8))
            lose(w, s);
        break;
    case 1:
        release_wrong(w, s);
        break;
    case 2:
    case 3:
        end_quarantine(w);
        break;
    case 4:
    case 5:
    case 6:
    case 7:
    case 8:
        start(w, s);
        break;
    default:
        for (unsigned i = 0; i < w->senders; i++)
            work(w, &w->s[i]);
        break;
    }
}

static world_t world;

START_TEST(random_senders)
{
    static const unsigned totals[] = {1, 2, 3, 7, 16, 63, 64};
    static const unsigned crowds[] = {1, 2, 5, SENDERS};
    world_t *w = &world;

    for (size_t i = 0; i < 7 * 4; i++) {
        memset(w, 0, sizeof(*w));
        w->r.state = unit_seed() + (uint64_t)_i * 100 + i;
        pool_init(&w->pool, &w->g, totals[i % 7]);
        w->senders = crowds[i / 7];
        for (int step = 0; step < 4000; step++) {
            sender_t *s = &w->s[unit_below(&w->r, w->senders)];

            act(w, s);
            serve(w);
            count_ahead(w);
            check_world(w);
        }
        UNIT_CHECK(w->granted > 50);
        for (unsigned k = 0; k < w->senders; k++)
            lose(w, &w->s[k]);
        end_quarantine(w);
        check_world(w);
        UNIT_CHECK(w->pool.free == w->pool.all && w->g.active == 0 && w->g.waiting == 0);
        UNIT_CHECK(w->g.head == NULL && w->g.tail == NULL);
    }
}
END_TEST

/* ---- fairness ------------------------------------------------------------------------------- */

/** All ask again as soon as they have given back: after many rounds all had as much. */
START_TEST(all_get_as_much)
{
    static const unsigned totals[] = {1, 3, 16, 64};
    pool_t pool;
    onic_grants_t g;
    static onic_requester_t a[SENDERS];

    for (size_t i = 0; i < 4; i++) {
        unsigned had[SENDERS] = {0};
        onic_grant_t grant;

        pool_init(&pool, &g, totals[i]);
        memset(a, 0, sizeof(a));
        /* The first is greedy. */
        for (unsigned k = 0; k < SENDERS; k++) {
            for (uint32_t n = 0; n < (k == 0 ? ONIC_GRANT_REQUESTS : 1); n++)
                ck_assert(onic_grants_request(&g, &a[k], n, k == 0 ? 64 : 1));
        }
        for (int n = 0; n < 64 * SENDERS;) {
            while (onic_grants_next(&g, &grant)) {
                had[grant.requester - a] += (unsigned)__builtin_popcountll(grant.slots);
                n++;
            }
            for (unsigned k = 0; k < SENDERS; k++) {
                if (a[k].held == 0)
                    continue;
                ck_assert(onic_grants_release(&g, &a[k], a[k].held) == 0);
                ck_assert(onic_grants_request(&g, &a[k], 0, k == 0 ? 64 : 1));
            }
        }
        for (unsigned k = 0; k < SENDERS; k++)
            ck_assert_msg(had[k] >= 60 && had[k] <= 68, "sender %u had %u of %u", k, had[k],
                          totals[i]);
    }
}
END_TEST

/** Alone, a sender has half of what is free; the next then half of the rest. */
START_TEST(half_of_what_is_free)
{
    pool_t pool;
    onic_grants_t g;
    onic_requester_t a = {0}, b = {0};
    onic_grant_t grant;

    pool_init(&pool, &g, 64);
    ck_assert(onic_grants_request(&g, &a, 1, 1000));
    ck_assert(onic_grants_next(&g, &grant));
    ck_assert(grant.requester == &a && grant.name == 1);
    ck_assert_int_eq(__builtin_popcountll(grant.slots), 32);
    ck_assert(!onic_grants_next(&g, &grant));
    ck_assert_int_eq(__builtin_popcountll(onic_grants_reserve(&g, &b, 1000)), 16);
    ck_assert_int_eq(__builtin_popcountll(onic_grants_reserve(&g, &b, 3)), 3);
    ck_assert_int_eq(pool_count(&pool), 13);
}
END_TEST

/** Who has more than its share lets one pass that came later and has nothing; a get is not taken
 *  before either. */
START_TEST(share_before_order)
{
    pool_t pool;
    onic_grants_t g;
    onic_requester_t a = {0}, b = {0};
    onic_grant_t grant;

    pool_init(&pool, &g, 4);
    for (uint32_t n = 0; n < 3; n++) {
        ck_assert(onic_grants_request(&g, &a, n, 4));
        ck_assert(onic_grants_next(&g, &grant));
    }
    ck_assert_int_eq(pool_count(&pool), 0);
    ck_assert(onic_grants_request(&g, &a, 3, 1));
    ck_assert(onic_grants_request(&g, &b, 0, 4));
    ck_assert(!onic_grants_next(&g, &grant));
    ck_assert(onic_grants_release(&g, &a, 1) == 0);
    ck_assert(onic_grants_reserve(&g, &b, 1) == 0);
    ck_assert(onic_grants_next(&g, &grant));
    ck_assert(grant.requester == &b && grant.slots == 1);
}
END_TEST

/** What a lost sender had and no transfer looks at is not free yet. */
START_TEST(lost)
{
    pool_t pool;
    onic_grants_t g;
    onic_requester_t a = {0}, b = {0};
    onic_grant_t grant;

    pool_init(&pool, &g, 8);
    ck_assert(onic_grants_request(&g, &a, 1, 4));
    ck_assert(onic_grants_next(&g, &grant));
    ck_assert(grant.slots == 0xf);
    ck_assert(onic_grants_request(&g, &a, 2, 4));
    ck_assert(onic_grants_release(&g, &a, 8) == 0);
    ck_assert_int_eq(pool_count(&pool), 5);
    ck_assert(onic_grants_lose(&g, &a, 0xf9) == 6);
    ck_assert(g.waiting == 0 && g.active == 0);
    ck_assert(onic_grants_release(&g, &a, 0xff) == 1);
    ck_assert(onic_grants_release(&g, &a, 1) == 0);
    ck_assert_int_eq(pool_count(&pool), 5);
    ck_assert(onic_grants_reserve(&g, &b, 1) == 8);
}
END_TEST

int main(void)
{
    const TTest *const each[] = {random_senders};
    const TTest *const tests[] = {all_get_as_much, half_of_what_is_free, share_before_order, lost};

    return unit_run_loop("mover_grant", each, 1, 5, tests, sizeof(tests) / sizeof(tests[0]));
}
