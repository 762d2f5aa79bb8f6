/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file By which address a partner is reached: some networks, and random ones beside a reference
 *  that works from all that has happened. */
#include "coll_nicbarrier/engines/datagram/reach.h"

#include "test/unit/unit.h"

enum { MSEC = 1000000, CANDIDATES_MAX = NICBARRIER_IPS_MAX + 2 };

/* ---- partners ------------------------------------------------------------------------------- */

static nicbarrier_address_t address(nicbarrier_via_t via, unsigned char which)
{
    return (nicbarrier_address_t){.bytes = {which}, .len = 1, .via = (uint8_t)via};
}

static nicbarrier_partner_t partner(bool verbs, unsigned udp)
{
    nicbarrier_partner_t p = {.member = 3};

    if (verbs)
        p.candidate[p.ncandidates++] = address(NICBARRIER_VIA_VERBS, 0);
    for (unsigned i = 0; i < udp; i++)
        p.candidate[p.ncandidates++] = address(NICBARRIER_VIA_UDP, (unsigned char)(1 + i));
    p.at = p.candidate[0];
    return p;
}

/* The number of an address: 0 is verbs, from 1 on they are UDP. */
static int number(const nicbarrier_address_t *a)
{
    return a != NULL ? a->bytes[0] : -1;
}

/* ---- some networks -------------------------------------------------------------------------- */

START_TEST(addresses_take_turns)
{
    const int order[] = {1, 1, 2, 2, 2, 3, 3, 3, 1, 1, 1, 2};
    nicbarrier_partner_t p = partner(false, 3);

    for (unsigned i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        ck_assert(!nicbarrier_reach_nack(&p, i % 2 != 0, 1 + i));
        ck_assert_int_eq(number(&p.at), order[i]);
    }
}
END_TEST

START_TEST(what_comes_proves_the_address)
{
    const nicbarrier_address_t from = address(NICBARRIER_VIA_UDP, 2);
    const nicbarrier_address_t other = address(NICBARRIER_VIA_UDP, 3);
    nicbarrier_partner_t p = partner(true, 3);

    nicbarrier_reach_received(&p, &from);
    ck_assert(p.proven && number(&p.at) == 2);
    nicbarrier_reach_received(&p, &other);
    for (unsigned i = 0; i < 100; i++)
        ck_assert(!nicbarrier_reach_nack(&p, true, 1 + i * UINT64_C(1000) * MSEC));
    ck_assert_int_eq(number(&p.at), 2);
}
END_TEST

/* Who asks from another address has not got what was sent to this one; nor was who answers from
 * another one after long silence. */
START_TEST(partners_move)
{
    nicbarrier_partner_t p = partner(false, 3);

    nicbarrier_reach_received(&p, &p.candidate[0]);
    ck_assert(nicbarrier_reach_nacked(&p, &p.candidate[1], 1));
    ck_assert(p.proven && number(&p.at) == 2);
    for (unsigned i = 0; i < NICBARRIER_REACH_TRIES; i++)
        (void)nicbarrier_reach_nack(&p, true, 1 + i);
    ck_assert(!nicbarrier_reach_received(&p, &p.candidate[2]));
    for (unsigned i = 0; i <= NICBARRIER_REACH_TRIES; i++)
        (void)nicbarrier_reach_nack(&p, true, 1 + i);
    ck_assert(nicbarrier_reach_received(&p, &p.candidate[2]));
    ck_assert(p.proven && number(&p.at) == 3);
}
END_TEST

/* Who was stopped finds NACKs from several addresses; later they come from one of them alone. */
START_TEST(partners_ask_from_everywhere)
{
    const uint64_t patience = NICBARRIER_REACH_OTHERS_PATIENCE;
    nicbarrier_partner_t p = partner(false, 3);

    nicbarrier_reach_received(&p, &p.candidate[0]);
    ck_assert(!nicbarrier_reach_nacked(&p, &p.candidate[0], 1));
    for (unsigned i = 0; i < 10; i++)
        ck_assert(!nicbarrier_reach_nacked(&p, &p.candidate[i % 3], 2 + i));
    const uint64_t last = 2 + 9;
    ck_assert(!nicbarrier_reach_nacked(&p, &p.candidate[1], last + patience));
    ck_assert(number(&p.at) == 1);
    ck_assert(nicbarrier_reach_nacked(&p, &p.candidate[1], last + patience + 1));
    ck_assert(p.proven && number(&p.at) == 2);
    ck_assert(!nicbarrier_reach_nacked(&p, &p.candidate[0], last + patience + 2));
}
END_TEST

/* An interface of this host is gone, and with it the way to one address. */
START_TEST(no_way)
{
    nicbarrier_partner_t p = partner(false, 3), alone = partner(false, 1), verbs = partner(true, 2);

    nicbarrier_reach_received(&p, &p.candidate[0]);
    ck_assert(nicbarrier_reach_no_way(&p) && !p.proven && number(&p.at) == 2);
    ck_assert(nicbarrier_reach_no_way(&p) && number(&p.at) == 3);
    ck_assert(nicbarrier_reach_no_way(&p) && number(&p.at) == 1);
    nicbarrier_reach_received(&alone, &alone.candidate[0]);
    ck_assert(!nicbarrier_reach_no_way(&alone) && alone.proven);
    verbs.at = verbs.candidate[verbs.next = 2];
    ck_assert(nicbarrier_reach_no_way(&verbs) && number(&verbs.at) == 1);
}
END_TEST

/* It keeps silent though it is there: verbs is given up, and does not come back by itself. */
START_TEST(verbs_is_given_up)
{
    const uint64_t patience = NICBARRIER_REACH_VERBS_PATIENCE;
    nicbarrier_partner_t p = partner(true, 2);

    for (unsigned i = 1; i <= NICBARRIER_REACH_TRIES; i++)
        ck_assert(!nicbarrier_reach_nack(&p, true, i));
    ck_assert(!nicbarrier_reach_nack(&p, true, 1 + patience));
    ck_assert_int_eq(number(&p.at), 0);
    ck_assert(nicbarrier_reach_nack(&p, true, 2 + patience));
    for (unsigned i = 0; i < 20; i++) {
        ck_assert_int_eq(number(&p.at), 1 + (int)(i / 3 % 2));
        ck_assert(!nicbarrier_reach_nack(&p, true, 3 + patience + i));
    }
}
END_TEST

/* Only the silence of who is there counts, only as long as it is without a gap, and only if it was
 * asked for. */
START_TEST(slow_is_not_given_up)
{
    const uint64_t patience = NICBARRIER_REACH_VERBS_PATIENCE;
    nicbarrier_partner_t p = partner(true, 2);

    for (uint64_t now = 1; now < 20 * patience; now += patience / 2)
        ck_assert(!nicbarrier_reach_nack(&p, false, now));
    ck_assert(!nicbarrier_reach_nack(&p, true, 20 * patience));
    ck_assert(!nicbarrier_reach_nack(&p, false, 21 * patience));
    for (unsigned i = 0; i < NICBARRIER_REACH_TRIES; i++)
        ck_assert(!nicbarrier_reach_nack(&p, true, (22 + 2 * i) * patience));
    ck_assert_int_eq(number(&p.at), 0);
    ck_assert(nicbarrier_reach_nack(&p, true, 50 * patience));
}
END_TEST

/* Asks at most so many times, until it is hopeless; returns how often. */
static unsigned until_hopeless(nicbarrier_partner_t *p, uint64_t step, unsigned most)
{
    unsigned n = 0;

    for (uint64_t now = 1; n < most && !nicbarrier_reach_is_lost(p, now); n++, now += step)
        (void)nicbarrier_reach_nack(p, true, now);
    return n;
}

/* All addresses must have been asked again and again, whatever time that takes; and not too fast.
 */
START_TEST(hopeless)
{
    for (unsigned udp = 1; udp <= 9; udp++) {
        const uint64_t second = UINT64_C(1000) * MSEC;
        nicbarrier_partner_t slow = partner(true, udp), fast = slow, alone = partner(false, 1);
        const unsigned least = NICBARRIER_REACH_TRIES * (udp + 1);
        const unsigned n = until_hopeless(&slow, 10 * second, 1000);
        ck_assert_uint_ge(n, least);
        ck_assert_uint_lt(n, 3 * least);
        ck_assert_uint_ge(until_hopeless(&fast, MSEC, 10000), 1000);
        ck_assert_uint_ge(until_hopeless(&alone, MSEC, 10000), 1000);
    }
}
END_TEST

/* Who was heard is there, who is not known to be there need not answer. */
START_TEST(not_hopeless)
{
    nicbarrier_partner_t heard = partner(true, 2), asked = heard, slow = heard, once = heard;

    nicbarrier_reach_received(&heard, &heard.candidate[2]);
    nicbarrier_reach_nacked(&asked, &asked.candidate[2], 1);
    ck_assert_uint_eq(until_hopeless(&heard, 100 * MSEC, 10000), 10000);
    ck_assert_uint_eq(until_hopeless(&asked, 100 * MSEC, 10000), 10000);
    for (unsigned i = 1; i < 1000; i++) {
        (void)nicbarrier_reach_nack(&slow, false, i * UINT64_C(100) * MSEC);
        ck_assert(!nicbarrier_reach_is_lost(&slow, i * UINT64_C(100) * MSEC));
    }
    (void)nicbarrier_reach_nack(&once, true, 1);
    ck_assert(!nicbarrier_reach_is_lost(&once, UINT64_C(3600000) * MSEC));
}
END_TEST

/* A host refuses what is sent to who is dead, to who has not begun, and to another's port. */
START_TEST(refusals)
{
    nicbarrier_partner_t p = partner(false, 1);

    for (int i = 0; i < 10; i++) {
        (void)nicbarrier_reach_nack(&p, true, 1);
        ck_assert(!nicbarrier_reach_refused(&p, &p.at));
    }
    nicbarrier_reach_received(&p, &p.candidate[0]);
    for (int i = 0; i < 10; i++)
        ck_assert(!nicbarrier_reach_refused(&p, &p.at)); /* nobody waits for it */
    nicbarrier_reach_received(&p, &p.candidate[0]);
    (void)nicbarrier_reach_nack(&p, true, 1);
    for (int i = 1; i < NICBARRIER_REACH_REFUSALS; i++)
        ck_assert(!nicbarrier_reach_refused(&p, &p.at));
    ck_assert(nicbarrier_reach_refused(&p, &p.at));
}
END_TEST

/* Another address than the proven one may belong to somebody else. */
START_TEST(refusals_of_others)
{
    nicbarrier_partner_t p = partner(false, 3);

    nicbarrier_reach_received(&p, &p.candidate[1]);
    (void)nicbarrier_reach_nack(&p, true, 1);
    for (int i = 0; i < 10; i++) {
        ck_assert(!nicbarrier_reach_refused(&p, &p.candidate[0]));
        ck_assert(!nicbarrier_reach_refused(&p, &p.candidate[2]));
    }
    for (int i = 1; i < NICBARRIER_REACH_REFUSALS; i++)
        ck_assert(!nicbarrier_reach_refused(&p, &p.candidate[1]));
    ck_assert(nicbarrier_reach_refused(&p, &p.candidate[1]));
}
END_TEST

/* Where none is proven any more, the partner is dead only if it is at none of them. */
START_TEST(refusals_of_all)
{
    nicbarrier_partner_t p = partner(true, 2);

    nicbarrier_reach_received(&p, &p.candidate[0]);
    ck_assert(nicbarrier_reach_no_way(&p) && !p.proven);
    (void)nicbarrier_reach_nack(&p, true, 1);
    for (int i = 0; i < 10; i++)
        ck_assert(!nicbarrier_reach_refused(&p, &p.candidate[1]));
    for (int i = 1; i < NICBARRIER_REACH_REFUSALS; i++)
        ck_assert(!nicbarrier_reach_refused(&p, &p.candidate[2]));
    ck_assert(nicbarrier_reach_refused(&p, &p.candidate[2]));
}
END_TEST

/* What is proven can end, or carry in one direction only. */
START_TEST(proven_verbs_is_given_up)
{
    const uint64_t patience = NICBARRIER_REACH_ALL_PATIENCE;
    nicbarrier_partner_t p = partner(true, 2);

    nicbarrier_reach_received(&p, &p.candidate[0]);
    for (unsigned i = 0; i < 20; i++)
        ck_assert(!nicbarrier_reach_nack(&p, true, 1 + i));
    /* Any answer counts. */
    nicbarrier_reach_received(&p, &p.candidate[0]);
    for (unsigned i = 0; i <= NICBARRIER_REACH_TRIES - 1; i++)
        ck_assert(!nicbarrier_reach_nack(&p, true, (2 + 2 * i) * patience));
    ck_assert_int_eq(number(&p.at), 0);
    ck_assert(nicbarrier_reach_nack(&p, true, 20 * patience));
    ck_assert(number(&p.at) > 0 && !p.proven);
    /* But it may come back, and be the only one that ever worked. */
    bool again = false;
    for (unsigned i = 0; i < 4 * (NICBARRIER_REACH_PATIENCE + 1); i++) {
        ck_assert(!nicbarrier_reach_nack(&p, false, 21 * patience + i));
        again |= number(&p.at) == 0;
    }
    ck_assert(again && number(&p.at) > 0);
    nicbarrier_reach_received(&p, &p.candidate[0]);
    ck_assert(number(&p.at) == 0 && p.proven);
}
END_TEST

/* A stopped partner is still at its proven address; one that has lost that interface answers at
 * another one. */
START_TEST(silent_is_asked_at_the_others)
{
    const uint64_t second = UINT64_C(1000) * MSEC, patience = NICBARRIER_REACH_OTHERS_PATIENCE;
    nicbarrier_partner_t p = partner(true, 3);
    unsigned asked[4] = {0};

    nicbarrier_reach_received(&p, &p.candidate[2]);
    for (uint64_t now = second; now <= second + patience; now += 16 * MSEC) {
        (void)nicbarrier_reach_nack(&p, true, now);
        ck_assert_int_eq(number(nicbarrier_reach_ask_at(&p, now)), 2);
    }
    for (unsigned i = 0; i < 16; i++) {
        const uint64_t now = 2 * second + patience + i * MSEC;
        (void)nicbarrier_reach_nack(&p, true, now);
        asked[number(nicbarrier_reach_ask_at(&p, now))]++;
    }
    ck_assert(p.proven && number(&p.at) == 2);
    ck_assert(asked[0] == 0 && asked[1] >= 2 && asked[2] >= 8 && asked[3] >= 2);
    ck_assert(nicbarrier_reach_received(&p, &p.candidate[3]));
    ck_assert(p.proven && number(&p.at) == 3);
    (void)nicbarrier_reach_nack(&p, true, 3 * second + patience);
    ck_assert_int_eq(number(nicbarrier_reach_ask_at(&p, 3 * second + patience)), 3);
}
END_TEST

/* Verbs or nothing: there is no other way. */
START_TEST(verbs_alone_is_kept)
{
    nicbarrier_partner_t p = partner(true, 0);

    for (uint64_t i = 1; i < 100; i++)
        ck_assert(!nicbarrier_reach_nack(&p, true, i * 100 * MSEC));
    nicbarrier_reach_received(&p, &p.candidate[0]);
    for (uint64_t i = 100; i < 200; i++)
        ck_assert(!nicbarrier_reach_nack(&p, true, i * 100 * MSEC));
    ck_assert_int_eq(number(&p.at), 0);
}
END_TEST

/* Who asks by the other transport alone is answered by it from then on; a message says nothing. */
START_TEST(questions_change_the_transport)
{
    const nicbarrier_address_t udp = address(NICBARRIER_VIA_UDP, 2);
    nicbarrier_partner_t p = partner(true, 2);

    const uint64_t later = 2 + NICBARRIER_REACH_OTHERS_PATIENCE;
    nicbarrier_reach_nacked(&p, &p.candidate[0], 1);
    ck_assert(p.proven && number(&p.at) == 0);
    nicbarrier_reach_received(&p, &udp);
    ck_assert_int_eq(number(&p.at), 0);
    nicbarrier_reach_nacked(&p, &udp, later);
    ck_assert_int_eq(number(&p.at), 2);
    nicbarrier_reach_received(&p, &p.candidate[0]);
    ck_assert_int_eq(number(&p.at), 2);
    nicbarrier_reach_nacked(&p, &p.candidate[0], 2 * later);
    ck_assert_int_eq(number(&p.at), 0);
}
END_TEST

/* ---- random networks ------------------------------------------------------------------------ */

enum { EVENTS = 200 };

typedef enum kind { HEARD, ASKED, NACK } kind_t;

typedef struct event {
    kind_t kind;
    nicbarrier_address_t from; /* HEARD, ASKED */
    bool can;                  /* likewise: the partner has such an address */
    bool expected;             /* NACK */
    uint64_t now;
} event_t;

typedef struct history {
    bool verbs;
    int udp; /* addresses */
    int n;
    event_t event[EVENTS];
} history_t;

/* Was verbs given up with this NACK, or could it have been? */
static bool gives_up(const history_t *h, int i)
{
    uint64_t first = h->event[i].now;
    int before = -1;

    for (int j = i; j >= 0; j--) {
        if (h->event[j].kind != NACK)
            continue;
        if (!h->event[j].expected)
            break;
        first = h->event[j].now;
        before++;
    }
    return before >= NICBARRIER_REACH_TRIES &&
           h->event[i].now - first > NICBARRIER_REACH_VERBS_PATIENCE;
}

/* The address that NACKs go to while nothing is proven. */
static int reference_unproven(const history_t *h)
{
    bool by_verbs = h->verbs;
    int nacks = 0; /* by UDP; where verbs was given up the first one has no number */

    for (int i = 0; i < h->n; i++) {
        if (h->event[i].kind != NACK)
            continue;
        if (!by_verbs)
            nacks++;
        else if (h->udp > 0 && gives_up(h, i))
            by_verbs = false;
    }
    return by_verbs ? 0 : 1 + nacks / (NICBARRIER_REACH_PATIENCE + 1) % h->udp;
}

/* The address that is proven, or -1. */
static int reference_proven(const history_t *h)
{
    int at = -1, unanswered = 0, last = -1; /* the last NACK of its from there */

    for (int i = 0; i < h->n; i++) {
        const event_t *e = &h->event[i];
        const bool elsewhere =
            last < 0 || e->now - h->event[last].now > NICBARRIER_REACH_OTHERS_PATIENCE;
        const bool moves = e->kind == ASKED ? elsewhere : unanswered > NICBARRIER_REACH_TRIES;
        if (e->kind != NACK && e->can && (at < 0 || moves)) {
            last = at == number(&e->from) ? last : -1;
            at = number(&e->from);
        }
        if (e->kind == ASKED && at == number(&e->from))
            last = i;
        unanswered = e->kind == HEARD ? 0 : unanswered + (e->kind == NACK);
    }
    return at;
}

static int reference_at(const history_t *h)
{
    const int proven = reference_proven(h);

    return proven >= 0 ? proven : reference_unproven(h);
}

static event_t random_event(unit_random_t *random, const history_t *h, bool expected, uint64_t now)
{
    const int which = (int)unit_below(random, (uint64_t)h->udp + 2);
    const bool silent = !unit_once_in(random, 20);

    return (event_t){
        .kind = silent                    ? NACK
                : unit_once_in(random, 2) ? ASKED
                                          : HEARD,
        .from =
            address(which == 0 ? NICBARRIER_VIA_VERBS : NICBARRIER_VIA_UDP, (unsigned char)which),
        .can = which == 0 ? h->verbs : h->udp > 0,
        .expected = expected,
        .now = now,
    };
}

START_TEST(as_the_reference)
{
    unit_random_t random = {unit_seed() + (uint64_t)_i};
    history_t h = {.verbs = unit_once_in(&random, 2)};
    bool expected = false;
    uint64_t now = 1;

    h.udp = (int)unit_below(&random, CANDIDATES_MAX);
    h.udp += h.udp == 0 && !h.verbs;
    nicbarrier_partner_t p = partner(h.verbs, (unsigned)h.udp);
    while (h.n < EVENTS) {
        const int before = reference_at(&h);
        const bool was_proven = reference_proven(&h) >= 0;

        now += unit_below(&random, 100 * MSEC);
        expected ^= unit_once_in(&random, 20);
        const event_t e = h.event[h.n++] = random_event(&random, &h, expected, now);
        if (e.kind == NACK) {
            const bool verbs_proven = was_proven && before == 0 && h.udp > 0;
            const bool silent = p.unanswered >= NICBARRIER_REACH_TRIES &&
                                e.now - p.silent_since > NICBARRIER_REACH_ALL_PATIENCE;
            const bool fallback = nicbarrier_reach_nack(&p, e.expected, e.now);
            if (verbs_proven && silent) {
                UNIT_CHECK(fallback);
                break;
            }
            UNIT_CHECK(fallback == (!was_proven && before == 0 && reference_at(&h) != 0));
        } else if (e.kind == ASKED)
            nicbarrier_reach_nacked(&p, &e.from, e.now);
        else
            nicbarrier_reach_received(&p, &e.from);
        UNIT_CHECK(number(&p.at) == reference_at(&h));
        UNIT_CHECK(p.proven == (reference_proven(&h) >= 0));
    }
}
END_TEST

int main(void)
{
    return UNIT_RUN(
        "nicbarrier_reach", UNIT_LOOP(as_the_reference, 0, 200), UNIT_ONCE(addresses_take_turns),
        UNIT_ONCE(what_comes_proves_the_address), UNIT_ONCE(partners_move),
        UNIT_ONCE(partners_ask_from_everywhere), UNIT_ONCE(no_way), UNIT_ONCE(verbs_is_given_up),
        UNIT_ONCE(slow_is_not_given_up), UNIT_ONCE(verbs_alone_is_kept),
        UNIT_ONCE(proven_verbs_is_given_up), UNIT_ONCE(questions_change_the_transport),
        UNIT_ONCE(silent_is_asked_at_the_others), UNIT_ONCE(hopeless), UNIT_ONCE(not_hopeless),
        UNIT_ONCE(refusals), UNIT_ONCE(refusals_of_others), UNIT_ONCE(refusals_of_all));
}
