/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * How processes end, in a simulated job: nobody leaves while somebody may still need it,
 * everybody leaves, whatever the network loses, and where it loses nothing few packets are sent.
 */
#include "coll_nicbarrier/engines/datagram/linger.h"

#include <string.h>

#include "test/unit/unit.h"

#define USEC UINT64_C(1000)
#define MSEC UINT64_C(1000000)
#define SEC  UINT64_C(1000000000)

enum { PROCESSES_MAX = 12, PACKETS_MAX = 4096, COOKIE = 100 };

typedef struct job {
    int n;
    unsigned loss;    /* of 1000 packets */
    bool refuses;     /* hosts say that nobody listens; those packets are not lost */
    int dies;         /* dies at the start; -1: nobody */
    uint64_t slowest; /* nanoseconds until the last begins to leave */
    bool all;         /* all are peers of all, else some */
    unit_random_t random;
} job_t;

typedef struct process {
    nicbarrier_linger_t linger;
    uint64_t begins; /* to leave */
    uint64_t left;   /* 0: not yet */
    bool dead;
} process_t;

typedef struct flight {
    uint64_t arrives;
    int to, from;
    bool refusal; /* of one from `to` to `from` */
    nicbarrier_packet_t packet;
} flight_t;

typedef struct result {
    uint64_t took;    /* from when the last began to leave until the last had left */
    unsigned packets; /* sent */
} result_t;

static process_t process[PROCESSES_MAX];
static flight_t flight[PACKETS_MAX];
static int flights;
static bool peers[PROCESSES_MAX][PROCESSES_MAX];

static void transmit(job_t *j, result_t *r, uint64_t now, int from, const nicbarrier_packet_t *p)
{
    const int to = (int)p->cookie - COOKIE;

    r->packets++;
    if (unit_below(&j->random, 1000) < j->loss)
        return;
    ck_assert_int_lt(flights, PACKETS_MAX);
    flight[flights] =
        (flight_t){now + 5 * USEC + unit_below(&j->random, 20 * USEC), to, from, false, *p};
    flight[flights++].packet.back = (uint32_t)(COOKIE + from);
}

static bool is_away(const process_t *p)
{
    return p->dead || p->left != 0;
}

static void arrive(job_t *j, result_t *r, flight_t f)
{
    process_t *p = &process[f.to];
    const nicbarrier_packet_t reply = {.kind = NICBARRIER_PACKET_FIN_ACK, .cookie = f.packet.back};

    if (is_away(p)) {
        if (j->refuses && !f.refusal && !is_away(&process[f.from])) {
            f.arrives += 10 * USEC;
            f.refusal = true;
            f.to = f.from;
            flight[flights++] = f;
        }
        return;
    }
    if (f.refusal)
        nicbarrier_linger_refused(&p->linger, f.packet.cookie);
    else if (nicbarrier_linger_receive(&p->linger, &f.packet, f.arrives))
        transmit(j, r, f.arrives, f.to, &reply);
}

/* Has everybody begun to leave who may need this one? */
static void check_not_needed(const job_t *j, int i, uint64_t now)
{
    for (int k = 0; k < j->n; k++)
        if (peers[i][k] && !process[k].dead)
            UNIT_CHECK(process[k].begins <= now);
}

static void turn(job_t *j, result_t *r, int i, uint64_t now)
{
    process_t *p = &process[i];
    const nicbarrier_peer_t *peer;

    if (is_away(p) || p->begins > now)
        return;
    if (!p->linger.begun)
        nicbarrier_linger_begin(&p->linger, now);
    while ((peer = nicbarrier_linger_expire(&p->linger, now)) != NULL) {
        const nicbarrier_packet_t packet = {.kind = NICBARRIER_PACKET_FIN, .cookie = peer->cookie};
        transmit(j, r, now, i, &packet);
    }
    if (nicbarrier_linger_deadline(&p->linger) == UINT64_MAX) {
        check_not_needed(j, i, now);
        p->left = now;
    }
}

static void begin(job_t *j)
{
    const nicbarrier_address_t nowhere = {.len = 1};

    memset(process, 0, sizeof(process));
    memset(peers, 0, sizeof(peers));
    flights = 0;
    for (int i = 0; i < j->n; i++) {
        process[i].begins = 1 + unit_below(&j->random, j->slowest + 1);
        process[i].dead = i == j->dies;
        for (int k = 0; k < i; k++)
            if (j->all || unit_once_in(&j->random, 2))
                peers[i][k] = peers[k][i] = true;
    }
    for (int i = 0; i < j->n; i++)
        for (int k = 0; k < j->n; k++)
            if (peers[i][k])
                nicbarrier_linger_add(&process[i].linger, (uint32_t)(COOKIE + k), &nowhere);
}

static uint64_t next_event(const job_t *j, uint64_t now)
{
    uint64_t next = UINT64_MAX;

    for (int i = 0; i < flights; i++)
        next = flight[i].arrives < next ? flight[i].arrives : next;
    for (int i = 0; i < j->n; i++) {
        const process_t *p = &process[i];
        const uint64_t at = is_away(p)        ? UINT64_MAX
                            : p->begins > now ? p->begins
                            : p->linger.begun ? nicbarrier_linger_deadline(&p->linger)
                                              : now;
        next = at < next ? at : next;
    }
    return next;
}

static result_t simulate(job_t *j)
{
    result_t r = {0};
    uint64_t now = 0, last = 0;

    begin(j);
    for (int i = 0; i < j->n; i++)
        last = process[i].begins > last ? process[i].begins : last;
    while ((now = next_event(j, now)) != UINT64_MAX) {
        UNIT_CHECK(now < last + 100 * SEC);
        for (int i = 0; i < flights; i++) {
            if (flight[i].arrives <= now) {
                const flight_t f = flight[i];
                flight[i--] = flight[--flights];
                arrive(j, &r, f);
            }
        }
        for (int i = 0; i < j->n; i++)
            turn(j, &r, i, now);
    }
    for (int i = 0; i < j->n; i++) {
        UNIT_CHECK(is_away(&process[i]));
        r.took = process[i].left > last && process[i].left - last > r.took ? process[i].left - last
                                                                           : r.took;
    }
    return r;
}

/* ---- jobs ----------------------------------------------------------------------------------- */

/* Four packets for each pair, a round trip, and a question now and then where one is much later. */
START_TEST(nothing_is_lost)
{
    for (int n = 1; n <= PROCESSES_MAX; n++) {
        job_t j = {.n = n, .dies = -1, .slowest = MSEC, .all = true, .random = {unit_seed()}};
        const result_t r = simulate(&j);
        ck_assert_uint_le(r.packets, (unsigned)(4 * n * (n - 1) / 2));
        ck_assert_uint_lt(r.took, 100 * USEC);
    }
    job_t j = {.n = 2, .dies = -1, .slowest = 10 * SEC, .all = true, .random = {unit_seed()}};
    const result_t r = simulate(&j);
    ck_assert_uint_lt(r.packets, 2 * 60);
    ck_assert_uint_lt(r.took, 100 * USEC);
}
END_TEST

/* Whatever is lost, nobody leaves too early (checked in `turn`) and all leave soon. */
START_TEST(much_is_lost)
{
    static const unsigned losses[] = {10, 50, 200, 400};
    unit_random_t random = {unit_seed() + (uint64_t)_i};

    for (int times = 0; times < 100; times++) {
        job_t j = {.n = 2 + (int)unit_below(&random, PROCESSES_MAX - 1),
                   .loss = losses[_i % 4],
                   .refuses = unit_once_in(&random, 2),
                   .dies = -1,
                   .slowest = unit_once_in(&random, 4) ? 2 * SEC : 10 * MSEC,
                   .all = unit_once_in(&random, 2),
                   .random = {unit_random64(&random)}};
        const result_t r = simulate(&j);
        /* Where a peer cannot even be refused, the last word may be silence. */
        const uint64_t limit = j.refuses ? SEC : NICBARRIER_LINGER_PATIENCE + SEC;
        if (r.took > limit)
            ck_abort_msg("n %d loss %u refuses %d: %" PRIu64 " ms", j.n, j.loss, j.refuses,
                         r.took / MSEC);
    }
}
END_TEST

/* Mostly silence is not needed. */
START_TEST(silence_is_the_last_resort)
{
    int slow = 0;

    for (unsigned i = 0; i < 500; i++) {
        job_t j = {.n = 4,
                   .loss = 50,
                   .dies = -1,
                   .slowest = 10 * MSEC,
                   .all = true,
                   .random = {unit_seed() + i}};
        slow += simulate(&j).took > 500 * MSEC;
    }
    ck_assert_int_eq(slow, 0);
}
END_TEST

/* Who dies is not waited for: not long where its host says so, else until it has been silent for
 * long. */
START_TEST(the_dead_are_not_waited_for)
{
    for (unsigned i = 0; i < 50; i++) {
        job_t j = {.n = 5,
                   .refuses = i % 2 == 0,
                   .slowest = 10 * MSEC,
                   .all = true,
                   .random = {unit_seed() + i}};
        const result_t r = simulate(&j);
        ck_assert_uint_lt(r.took, j.refuses ? 10 * MSEC : NICBARRIER_LINGER_PATIENCE + SEC);
        if (!j.refuses)
            ck_assert_uint_gt(r.took, NICBARRIER_LINGER_PATIENCE - SEC);
    }
}
END_TEST

/* ---- one process ---------------------------------------------------------------------------- */

/* Its own stop is not the others' silence. */
START_TEST(who_was_stopped_asks_again)
{
    static nicbarrier_linger_t l;
    const nicbarrier_address_t nowhere = {.len = 1};
    uint64_t now = SEC;

    memset(&l, 0, sizeof(l));
    nicbarrier_linger_add(&l, 7, &nowhere);
    nicbarrier_linger_begin(&l, now);
    ck_assert_ptr_nonnull(nicbarrier_linger_expire(&l, now));
    now += 3600 * SEC;
    for (int i = 1; i < NICBARRIER_LINGER_ASKED; i++) {
        ck_assert_ptr_nonnull(nicbarrier_linger_expire(&l, now));
        now = nicbarrier_linger_deadline(&l);
    }
    ck_assert_ptr_null(nicbarrier_linger_expire(&l, now));
    ck_assert_uint_eq(nicbarrier_linger_deadline(&l), UINT64_MAX);
}
END_TEST

/* Of too many peers the first are forgotten; one that is added again keeps its place. */
START_TEST(peers_are_bounded)
{
    static nicbarrier_linger_t l;
    const nicbarrier_address_t nowhere = {.len = 1}, there = {.len = 2};
    unsigned asked = 0;
    bool first = false, moved = false;

    memset(&l, 0, sizeof(l));
    for (uint32_t i = 0; i < NICBARRIER_PEERS; i++)
        nicbarrier_linger_add(&l, 1 + i, &nowhere);
    nicbarrier_linger_add(&l, 10000, &nowhere);
    nicbarrier_linger_add(&l, 2, &there);
    nicbarrier_linger_begin(&l, 1);
    for (const nicbarrier_peer_t *p; (p = nicbarrier_linger_expire(&l, 1)) != NULL;) {
        first |= p->cookie == 1;
        moved |= p->cookie == 2 && p->at.len == 2;
        asked++;
    }
    ck_assert_uint_eq(asked, NICBARRIER_PEERS);
    ck_assert(moved && !first);
}
END_TEST

/* A process that is asked by one that is no peer answers, and is not changed by it. */
START_TEST(no_peers)
{
    static nicbarrier_linger_t l;
    const nicbarrier_packet_t fin = {.kind = NICBARRIER_PACKET_FIN, .back = 9};
    const nicbarrier_packet_t ack = {.kind = NICBARRIER_PACKET_FIN_ACK, .back = 9};

    memset(&l, 0, sizeof(l));
    ck_assert(nicbarrier_linger_receive(&l, &fin, 1));
    ck_assert(!nicbarrier_linger_receive(&l, &ack, 1));
    nicbarrier_linger_begin(&l, 1);
    ck_assert(nicbarrier_linger_receive(&l, &fin, 1));
    nicbarrier_linger_refused(&l, 9);
    ck_assert_uint_eq(nicbarrier_linger_deadline(&l), UINT64_MAX);
}
END_TEST

int main(void)
{
    return UNIT_RUN("nicbarrier_linger", UNIT_LOOP(much_is_lost, 0, 8), UNIT_ONCE(nothing_is_lost),
                    UNIT_ONCE(silence_is_the_last_resort), UNIT_ONCE(the_dead_are_not_waited_for),
                    UNIT_ONCE(who_was_stopped_asks_again), UNIT_ONCE(peers_are_bounded),
                    UNIT_ONCE(no_peers));
}
