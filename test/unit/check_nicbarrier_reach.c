/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file By which address a partner is reached: some networks, and random ones beside a reference
 *  that works from all that has happened. */
#include "coll_nicbarrier/engines/datagram/reach.h"

#include "test/unit/unit.h"

enum { MSEC = 1000000, CANDIDATES_MAX = NICBARRIER_IPS_MAX + 1 };

/* ---- partners ------------------------------------------------------------------------------- */

static nicbarrier_address_t address(unsigned char which)
{
    return (nicbarrier_address_t){.bytes = {which}, .len = 1};
}

/* Its addresses have the numbers 1 .. n. */
static nicbarrier_partner_t partner(unsigned n)
{
    nicbarrier_partner_t p = {.member = 3};

    for (unsigned i = 0; i < n; i++)
        p.candidate[p.ncandidates++] = address((unsigned char)(1 + i));
    p.at = p.candidate[0];
    return p;
}

static int number(const nicbarrier_address_t *a)
{
    return a->bytes[0];
}

/* ---- some networks -------------------------------------------------------------------------- */

START_TEST(addresses_take_turns)
{
    const int order[] = {1, 1, 2, 2, 2, 3, 3, 3, 1, 1, 1, 2};
    nicbarrier_partner_t p = partner(3);

    for (unsigned i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        nicbarrier_reach_nack(&p, i % 2 != 0, 1 + i);
        ck_assert_int_eq(number(&p.at), order[i]);
    }
}
END_TEST

START_TEST(what_comes_proves_the_address)
{
    const nicbarrier_address_t from = address(2);
    const nicbarrier_address_t other = address(3);
    nicbarrier_partner_t p = partner(3);

    ck_assert(nicbarrier_reach_heard(&p, &from, _i == 0));
    ck_assert(p.proven && number(&p.at) == 2);
    ck_assert(!nicbarrier_reach_heard(&p, &other, true));
    ck_assert(!nicbarrier_reach_heard(&p, &other, false));
    for (unsigned i = 0; i < 100; i++)
        nicbarrier_reach_nack(&p, true, 1 + i * UINT64_C(1000) * MSEC);
    ck_assert_int_eq(number(&p.at), 2);
}
END_TEST

/* Asks at most so many times, until it is hopeless; returns how often. */
static unsigned until_hopeless(nicbarrier_partner_t *p, uint64_t step, unsigned most)
{
    unsigned n = 0;

    for (uint64_t now = 1; n < most && !nicbarrier_reach_is_lost(p, now); n++, now += step)
        nicbarrier_reach_nack(p, true, now);
    return n;
}

/* All addresses must have been asked again and again, whatever time that takes; and not too fast.
 */
START_TEST(hopeless)
{
    for (unsigned n = 1; n <= 9; n++) {
        const uint64_t second = UINT64_C(1000) * MSEC;
        nicbarrier_partner_t slow = partner(n), fast = slow, alone = partner(1);
        const unsigned least = NICBARRIER_REACH_TRIES * n;
        const unsigned asked = until_hopeless(&slow, 10 * second, 1000);
        ck_assert_uint_ge(asked, least);
        ck_assert_uint_lt(asked, 3 * least);
        ck_assert_uint_ge(until_hopeless(&fast, MSEC, 10000), 1000);
        ck_assert_uint_ge(until_hopeless(&alone, MSEC, 10000), 1000);
    }
}
END_TEST

/* Who was heard is there, who is not known to be there need not answer. */
START_TEST(not_hopeless)
{
    nicbarrier_partner_t heard = partner(3), asked = heard, slow = heard, once = heard;

    nicbarrier_reach_heard(&heard, &heard.candidate[2], true);
    nicbarrier_reach_heard(&asked, &asked.candidate[2], false);
    ck_assert_uint_eq(until_hopeless(&heard, 100 * MSEC, 10000), 10000);
    ck_assert_uint_eq(until_hopeless(&asked, 100 * MSEC, 10000), 10000);
    for (unsigned i = 1; i < 1000; i++) {
        nicbarrier_reach_nack(&slow, false, i * UINT64_C(100) * MSEC);
        ck_assert(!nicbarrier_reach_is_lost(&slow, i * UINT64_C(100) * MSEC));
    }
    nicbarrier_reach_nack(&once, true, 1);
    ck_assert(!nicbarrier_reach_is_lost(&once, UINT64_C(3600000) * MSEC));
}
END_TEST

/* A host refuses what is sent to who is dead, to who has not begun, and to another's port. */
START_TEST(refusals)
{
    nicbarrier_partner_t p = partner(1);

    for (int i = 0; i < 10; i++) {
        nicbarrier_reach_nack(&p, true, 1);
        ck_assert(!nicbarrier_reach_refused(&p, &p.at));
    }
    nicbarrier_reach_heard(&p, &p.candidate[0], true);
    for (int i = 0; i < 10; i++)
        ck_assert(!nicbarrier_reach_refused(&p, &p.at)); /* nobody waits for it */
    nicbarrier_reach_heard(&p, &p.candidate[0], true);
    nicbarrier_reach_nack(&p, true, 1);
    for (int i = 1; i < NICBARRIER_REACH_REFUSALS; i++)
        ck_assert(!nicbarrier_reach_refused(&p, &p.at));
    ck_assert(nicbarrier_reach_refused(&p, &p.at));
}
END_TEST

/* Another address than the proven one may belong to somebody else. */
START_TEST(refusals_of_others)
{
    nicbarrier_partner_t p = partner(3);

    nicbarrier_reach_heard(&p, &p.candidate[1], true);
    nicbarrier_reach_nack(&p, true, 1);
    for (int i = 0; i < 10; i++) {
        ck_assert(!nicbarrier_reach_refused(&p, &p.candidate[0]));
        ck_assert(!nicbarrier_reach_refused(&p, &p.candidate[2]));
    }
    for (int i = 1; i < NICBARRIER_REACH_REFUSALS; i++)
        ck_assert(!nicbarrier_reach_refused(&p, &p.candidate[1]));
    ck_assert(nicbarrier_reach_refused(&p, &p.candidate[1]));
}
END_TEST

/* ---- random networks ------------------------------------------------------------------------ */

enum { EVENTS = 200 };

typedef enum kind { HEARD, ASKED, NACK } kind_t;

typedef struct event {
    kind_t kind;
    nicbarrier_address_t from; /* HEARD, ASKED */
    bool expected;             /* NACK */
    uint64_t now;
} event_t;

typedef struct history {
    int addresses, n;
    event_t event[EVENTS];
} history_t;

/* The address that is proven, or -1: the first that anything came from. */
static int reference_proven(const history_t *h)
{
    for (int i = 0; i < h->n; i++)
        if (h->event[i].kind != NACK)
            return number(&h->event[i].from);
    return -1;
}

/* The address that NACKs go to. */
static int reference_at(const history_t *h)
{
    const int proven = reference_proven(h);

    return proven >= 0 ? proven : 1 + h->n / (NICBARRIER_REACH_PATIENCE + 1) % h->addresses;
}

/* NACKs since a message came. */
static unsigned reference_unanswered(const history_t *h)
{
    unsigned n = 0;

    for (int i = 0; i < h->n; i++)
        n = h->event[i].kind == HEARD ? 0 : n + (h->event[i].kind == NACK);
    return n;
}

static event_t random_event(unit_random_t *random, const history_t *h, bool expected, uint64_t now)
{
    const bool silent = !unit_once_in(random, 20);

    return (event_t){
        .kind = silent                    ? NACK
                : unit_once_in(random, 2) ? ASKED
                                          : HEARD,
        .from = address((unsigned char)(1 + unit_below(random, (uint64_t)h->addresses + 1))),
        .expected = expected,
        .now = now,
    };
}

START_TEST(as_the_reference)
{
    unit_random_t random = {unit_seed() + (uint64_t)_i};
    history_t h = {.addresses = 1 + (int)unit_below(&random, CANDIDATES_MAX)};
    nicbarrier_partner_t p = partner((unsigned)h.addresses);
    bool expected = false;
    uint64_t now = 1;

    while (h.n < EVENTS) {
        now += unit_below(&random, 100 * MSEC);
        expected ^= unit_once_in(&random, 20);
        const event_t e = h.event[h.n++] = random_event(&random, &h, expected, now);
        if (e.kind == NACK)
            nicbarrier_reach_nack(&p, e.expected, e.now);
        else
            nicbarrier_reach_heard(&p, &e.from, e.kind == HEARD);
        UNIT_CHECK(number(&p.at) == reference_at(&h));
        UNIT_CHECK(p.unanswered == reference_unanswered(&h));
        UNIT_CHECK(p.proven == (reference_proven(&h) >= 0));
    }
}
END_TEST

int main(void)
{
    return UNIT_RUN("nicbarrier_reach", UNIT_LOOP(as_the_reference, 0, 200),
                    UNIT_ONCE(addresses_take_turns), UNIT_LOOP(what_comes_proves_the_address, 0, 2),
                    UNIT_ONCE(hopeless), UNIT_ONCE(not_hopeless), UNIT_ONCE(refusals),
                    UNIT_ONCE(refusals_of_others));
}
