/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The simulator of perf/sim: cases that are computed by hand, the same again by the same
 *  seed, and what the papers say of their figures. */
#include <math.h>
#include <string.h>

#include "perf/sim/barrier.h"
#include "perf/sim/events.h"
#include "perf/sim/fence.h"
#include "perf/sim/machines.h"
#include "perf/sim/requests.h"
#include "perf/sim/transfer.h"
#include "test/unit/unit.h"

#define EQUAL(a, b) ck_assert_double_eq_tol(a, b, 1e-6)

/* ---- events ---------------------------------------------------------------------------------- */

/* By time, and those of one time in the order in which they were added. */
START_TEST(in_order)
{
    unit_random_t r = {unit_seed()};
    sim_events_t s;
    sim_event_t e, before = {0};

    sim_events_init(&s, 1);
    for (uint32_t i = 0; i < 10000; i++)
        sim_add(&s, (sim_event_t){.at = (double)unit_below(&r, 100), .who = i});
    for (uint32_t i = 0; i < 10000; i++, before = e) {
        ck_assert(sim_next(&s, &e));
        UNIT_CHECK(i == 0 || e.at > before.at || (e.at == before.at && e.who > before.who));
        UNIT_CHECK(s.now == e.at);
    }
    ck_assert(!sim_next(&s, &e));
    sim_events_fini(&s);
}
END_TEST

/* ---- barriers -------------------------------------------------------------------------------- */

static const sim_barrier_costs_t by_hand = {
    .enter = 1, .first = 2, .send = 3, .receive = 5, .latency = 10, .leave = 4};

static sim_barrier_result_t barrier(nicbarrier_schedule_kind_t schedule, int32_t members)
{
    return sim_barrier(&(sim_barrier_t){
        .costs = by_hand, .schedule = schedule, .members = members, .barriers = 1});
}

/* Two steps: 1 + (2 + 10 + 5) + (3 + 10 + 5) + 4. Four sons of a root: theirs are there at 1 + 2 +
 * 10, the last one is taken in 4 times 5 later; the last of four answers, each of which takes 3, is
 * there at 33 + 12 + 10, and 5 and 4 later its call ends. */
START_TEST(barriers_by_hand)
{
    const sim_barrier_result_t two = barrier(NICBARRIER_DISSEMINATION, 4),
                               pairs = barrier(NICBARRIER_PAIRWISE, 4),
                               tree = barrier(NICBARRIER_GATHER_BROADCAST, 5);

    EQUAL(two.time, 40);
    ck_assert_uint_eq(two.messages, 8);
    EQUAL(pairs.time, 40);
    EQUAL(tree.time, 64);
    ck_assert_uint_eq(tree.messages, 8);
}
END_TEST

static sim_barrier_result_t lossy(int32_t members, uint64_t seed)
{
    return sim_barrier(&(sim_barrier_t){.costs = sim_lanai_xp,
                                        .members = members,
                                        .barriers = 5,
                                        .jitter = 500,
                                        .loss = 0.02,
                                        .silence = 1000000,
                                        .seed = seed});
}

/* The same seed: the same to the bit. Lost messages are asked for. */
START_TEST(by_seed)
{
    const sim_barrier_result_t a = lossy(300, 1), b = lossy(300, 1), c = lossy(300, 2);

    ck_assert_mem_eq(&a, &b, sizeof(a));
    ck_assert(a.time != c.time);
    ck_assert(a.complete && !a.early && a.lost > 0 && a.nacks > 0 && a.repeats > 0);
    /* One timer at least, and no more than one for each barrier and step. */
    ck_assert(a.longest > 1e6 && a.longest < 9 * 16e6);
}
END_TEST

START_TEST(a_hundred_thousand)
{
    const sim_barrier_result_t r = sim_barrier(
        &(sim_barrier_t){.costs = sim_elan3, .members = 100000, .barriers = 1, .jitter = 10});

    ck_assert(r.complete && !r.early);
    ck_assert_uint_eq(r.messages, 1700000);
    ck_assert_double_ge(r.time, sim_barrier_model(&sim_model_quadrics, 100000));
}
END_TEST

/* Sections 8.1 to 8.3. */
START_TEST(barrier_paper)
{
    static const struct {
        const sim_barrier_costs_t *costs;
        nicbarrier_schedule_kind_t schedule;
        int32_t members;
        double reported, within;
    } rows[] = {{&sim_lanai_xp, NICBARRIER_DISSEMINATION, 8, 14200, 0.02},
                {&sim_lanai_xp, NICBARRIER_DISSEMINATION, 1024, 38940, 0.001},
                {&sim_lanai_xp_host, NICBARRIER_PAIRWISE, 8, 2.64 * 14200, 0.01},
                {&sim_lanai_9, NICBARRIER_PAIRWISE, 16, 25720, 0.01},
                {&sim_lanai_9_host, NICBARRIER_DISSEMINATION, 16, 3.38 * 25720, 0.01},
                {&sim_elan3, NICBARRIER_DISSEMINATION, 8, 5600, 0.06},
                {&sim_elan3, NICBARRIER_DISSEMINATION, 1024, 22130, 0.001},
                {&sim_elan3_host, NICBARRIER_GATHER_BROADCAST, 8, 2.48 * 5600, 0.06}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const sim_barrier_result_t r = sim_barrier(&(sim_barrier_t){.costs = *rows[i].costs,
                                                                    .schedule = rows[i].schedule,
                                                                    .members = rows[i].members,
                                                                    .barriers = 10});

        ck_assert_double_eq_tol(r.time / rows[i].reported, 1, rows[i].within);
    }
}
END_TEST

/* ---- transfers ------------------------------------------------------------------------------- */

static const sim_machine_t machine = {
    .latency = 100, .gap = 10, .overhead = 0, .bnet = 1, .copy = {{INFINITY, 2}}};

static sim_transfer_t transfer(uint64_t bytes, double chunk, unsigned buffers)
{
    sim_transfer_t t = {
        .machine = &machine, .bytes = bytes, .buffers = buffers, .buffer_bytes = 1 << 20};

    onic_schedule_growing(&t.schedule, chunk, 1, 1, 1 << 20);
    return t;
}

/* 1000 bytes are copied in 500, and moved in 10 + 1000 and 100 more. */
START_TEST(transfers_by_hand)
{
    sim_transfer_t t = transfer(1000, 1000, 1);
    sim_transferred_t r = sim_transfer(&t);

    EQUAL(r.time, 500 + 10 + 1000 + 100 + 500);
    ck_assert_uint_eq(r.chunks, 1);
    EQUAL(r.time, sim_copied(&machine, 1000));

    /* Two chunks, the second of which is copied while the first is moved. */
    t = transfer(2000, 1000, 2);
    EQUAL(sim_transfer(&t).time, 500 + 2 * (10 + 1000) + 100 + 500);

    /* In one buffer: the second is copied when the first has been acknowledged. */
    t = transfer(2000, 1000, 1);
    r = sim_transfer(&t);
    EQUAL(r.time, 2 * (500 + 10 + 1000 + 100 + 500) + 100);
    ck_assert_uint_eq(r.waits, 1);

    /* Blocks: of the last chunk only the last block is copied when all is there. */
    t = transfer(2000, 1000, 2);
    t.block = 100;
    EQUAL(sim_transfer(&t).time, 500 + 2 * (10 + 1000) + 100 + 50);

    /* A handshake hides the first copy, if it is longer. */
    t = transfer(2000, 1000, 2);
    t.grant = 700;
    EQUAL(sim_transfer(&t).time, 700 + 2 * (10 + 1000) + 100 + 500);
}
END_TEST

/* A. Denis, section 5: overhead over a raw write, and how good 12 KiB and 1.5 are. */
START_TEST(superpipeline_paper)
{
    for (double bytes = 16384; bytes < 4 << 20; bytes *= 2) {
        sim_transfer_t t = {.machine = &sim_graphene,
                            .bytes = (uint64_t)bytes,
                            .buffers = 16,
                            .buffer_bytes = 4 << 20,
                            .block = 4096};

        onic_schedule_growing(&t.schedule, SIM_C0, SIM_Q, 1, t.buffer_bytes);
        const double over = sim_transfer(&t).time / sim_raw(&sim_graphene, bytes);
        ck_assert_double_lt(over, bytes < 65536 ? 1.16 : bytes > 65536 ? 1.05 : 1.06);
    }
}
END_TEST

/* ---- requests and fences --------------------------------------------------------------------- */

/* A doorbell, a request, 64 bytes on the wire, there and back; the second request is made while the
 * first is under way, and each has its own 64 bytes. */
START_TEST(requests_by_hand)
{
    onic_link_t k = onic_links_default("other").adapter;
    onic_layout_t one, two;

    k.doorbell = 20, k.request = 50, k.latency = 100, k.bnet = 1, k.batch = 1, k.window = 2;
    k.entries = 4, k.entry = 5;
    UNIT_CHECK(onic_layout_contig(&one, 0, 64) == ONIC_LAYOUT_OK);
    UNIT_CHECK(onic_layout_contig(&two, 0, 64) == ONIC_LAYOUT_OK);
    UNIT_CHECK(onic_layout_repeat(&two, 2, 128) == ONIC_LAYOUT_OK);
    EQUAL(sim_requests(&k, false, false, 0, &one, &one).time, 20 + 50 + 64 + 200);
    EQUAL(sim_requests(&k, true, false, 0, &one, &one).time, 20 + 50 + 64 + 200);
    const sim_requested_t r = sim_requests(&k, false, false, 0, &two, &two);
    EQUAL(r.time, 20 + 50 + 2 * 64 + 200);
    ck_assert_uint_eq(r.requests, 2);
    ck_assert_uint_eq(r.doorbells, 2);
    ck_assert_uint_eq(r.completions, 2);
}
END_TEST

/* One after the other: there, served, and back, each time with the caller's part at both ends; two
 * at a time: the second question leaves 1 after the first. */
START_TEST(fences_by_hand)
{
    sim_fence_t f = {
        .processes = 3, .callers = 1, .outstanding = 1, .overhead = 1, .latency = 10, .server = 5};

    EQUAL(sim_fence(&f), 2 * (1 + 10 + 5 + 10 + 1));
    f.outstanding = 2;
    EQUAL(sim_fence(&f), 1 + 1 + 10 + 5 + 10 + 1);
    f.callers = 3;
    f.order = SIM_RANDOM;
    EQUAL(sim_fence(&f), sim_fence(&f));
}
END_TEST

int main(void)
{
    return UNIT_RUN("sim", UNIT_ONCE(in_order), UNIT_ONCE(barriers_by_hand), UNIT_ONCE(by_seed),
                    UNIT_ONCE(a_hundred_thousand), UNIT_ONCE(barrier_paper),
                    UNIT_ONCE(transfers_by_hand), UNIT_ONCE(superpipeline_paper),
                    UNIT_ONCE(requests_by_hand), UNIT_ONCE(fences_by_hand));
}
