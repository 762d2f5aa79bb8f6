/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The plan: the cheapest method that can do it, unless one that can is forced. */
#include "osc_nicstride/methods/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mover/pipe/chunks.h"
#include "test/unit/method_rows.h"
#include "test/unit/unit.h"

#define KIB 1024ull

/** A kind of target. */
typedef struct target {
    uint32_t reach;
    nicstride_presence_t presence;
} target_t;

static const target_t far_away = {.reach = REACH_MESSAGE};
static const target_t same_node = {.reach = REACH_MESSAGE | REACH_COPY};
static const target_t with_slots = {.reach = REACH_MESSAGE | REACH_COPY | REACH_SLOTS};
static const target_t mapped = {.reach = REACH_MESSAGE | REACH_DIRECT};

/* Links of our own making, so that the defaults may be tuned: single copy is fast on the node. */
static const nicstride_path_t near_link = {.link = {.call = 500,
                                                    .piece = 500,
                                                    .copy = 0.09,
                                                    .block = 1,
                                                    .line = 1,
                                                    .page = 1,
                                                    .message = 1000,
                                                    .byte = 0.2,
                                                    .gap = 100,
                                                    .latency = 100,
                                                    .fragment = 1e9,
                                                    .bcopy = 20,
                                                    .bnet = 10},
                                           .mover_slot = ONIC_MOVER_SLOT,
                                           .mover_block = ONIC_MOVER_BLOCK,
                                           .sieve_piece = 512 * KIB};
static const nicstride_path_t far_link = {.link = {.fragment = 1e9,
                                                   .block = 1,
                                                   .line = 1,
                                                   .page = 1,
                                                   .message = 10000,
                                                   .byte = 0.5,
                                                   .gap = 100,
                                                   .latency = 100,
                                                   .bcopy = 20,
                                                   .bnet = 1,
                                                   .request = 200,
                                                   .doorbell = 500,
                                                   .batch = 8,
                                                   .entry = 20,
                                                   .entries = 4,
                                                   .window = 16,
                                                   .reads = 4},
                                          .mover_slot = ONIC_MOVER_SLOT,
                                          .mover_block = ONIC_MOVER_BLOCK,
                                          .sieve_piece = 512 * KIB};

static const nicstride_paths_t *defaults(void)
{
    static nicstride_paths_t paths;

    paths.node =
        (nicstride_path_t){onic_links_default.node, ONIC_MOVER_SLOT, ONIC_MOVER_BLOCK, 512 * KIB};
    paths.net =
        (nicstride_path_t){onic_links_default.net, ONIC_MOVER_SLOT, ONIC_MOVER_BLOCK, 512 * KIB};
    return &paths;
}

static nicstride_method_t plan_case(nicstride_method_t forced, nicstride_direction_t dir,
                                    const onic_layout_t *origin, const onic_layout_t *target,
                                    target_t there, const nicstride_path_t *path,
                                    onic_learned_t learned)
{
    const nicstride_case_t c = {rows,        forced,         dir,  origin, target,
                                there.reach, there.presence, path, learned};

    return nicstride_plan(&c);
}

static bool method_can(nicstride_method_t m, nicstride_direction_t dir, const onic_layout_t *origin,
                       const onic_layout_t *target, target_t there)
{
    const nicstride_case_t c = {
        .rows = rows, .dir = dir, .origin = origin, .target = target, .reach = there.reach};

    return nicstride_can(&c, m);
}

static double method_cost(nicstride_method_t m, const onic_layout_t *origin,
                          const onic_layout_t *target, const nicstride_path_t *path)
{
    const nicstride_case_t c = {
        .rows = rows, .dir = NICSTRIDE_GET, .origin = origin, .target = target, .path = path};

    return rows[m]->cost(&c);
}

/** `size` bytes in blocks of `block`, every other block of memory; contiguous for block 0. */
static onic_layout_t vector(uint64_t size, uint64_t block)
{
    onic_layout_t l;

    if (block == 0 || block >= size) {
        UNIT_CHECK(onic_layout_contig(&l, 0, size) == ONIC_LAYOUT_OK);
        return l;
    }
    UNIT_CHECK(onic_layout_contig(&l, 0, block) == ONIC_LAYOUT_OK);
    UNIT_CHECK(onic_layout_repeat(&l, size / block, 2 * (int64_t)block) == ONIC_LAYOUT_OK);
    return l;
}

/** As above, in list form: blocks at growing distances. */
static onic_layout_t irregular(unsigned blocks)
{
    onic_runs_t runs = {0};
    onic_layout_t l;

    for (unsigned i = 0; i < blocks; i++)
        UNIT_CHECK(onic_runs_add(&runs, (onic_run_t){(int64_t)i * (i + 1) * 50, 8 + i % 3, 1, 0}) ==
                   ONIC_LAYOUT_OK);
    UNIT_CHECK(onic_layout_from_runs(&l, &runs, 0) == ONIC_LAYOUT_OK);
    UNIT_CHECK(l.nruns > 0);
    return l;
}

static nicstride_method_t plan(nicstride_direction_t dir, const onic_layout_t *target,
                               target_t there)
{
    const onic_layout_t origin = vector(target->size, 0);

    return plan_case(NICSTRIDE_METHOD_AUTO, dir, &origin, target, there,
                     (there.reach & REACH_COPY) != 0 ? &near_link : &far_link, ONIC_MODEL_ALONE);
}

static nicstride_method_t plan_vector(nicstride_direction_t dir, uint64_t size, uint64_t block,
                                      target_t there)
{
    const onic_layout_t target = vector(size, block);

    return plan(dir, &target, there);
}

START_TEST(what_can_do_what)
{
    const onic_layout_t flat = vector(4 * KIB, 0), strided = vector(4 * KIB, 64),
                        longer = vector(64 * KIB, 64);
    onic_layout_t list = irregular(20);

#define CAN(method, dir, origin, target, there)                                                    \
    method_can(NICSTRIDE_METHOD_##method, NICSTRIDE_##dir, origin, target, there)
    ck_assert(!CAN(AUTO, PUT, &flat, &flat, mapped));
    ck_assert(!CAN(LAST, PUT, &flat, &flat, mapped));
    ck_assert(CAN(DIRECT, PUT, &strided, &list, mapped));
    ck_assert(!CAN(DIRECT, GET, &flat, &flat, same_node));
    ck_assert(CAN(CMA, PUT, &flat, &list, same_node));
    ck_assert(!CAN(CMA, PUT, &flat, &flat, far_away));
    ck_assert(CAN(SIEVE, GET, &strided, &strided, same_node));
    ck_assert(!CAN(SIEVE, GET, &strided, &strided, far_away));
    ck_assert(!CAN(SIEVE, PUT, &strided, &strided, same_node));
    ck_assert(CAN(MOVER, PUT, &list, &longer, with_slots));
    ck_assert(!CAN(MOVER, PUT, &list, &strided, with_slots)); /* one block: nothing overlaps */
    ck_assert(!CAN(MOVER, PUT, &list, &longer, same_node));
    ck_assert(CAN(PACK, PUT, &list, &strided, far_away));
    ck_assert(CAN(PACK, GET, &flat, &list, mapped));
#undef CAN
    onic_layout_fini(&list);
}
END_TEST

/** All methods by hand: the plan is one that can, and none that can is cheaper. */
static void check_cheapest(nicstride_method_t chosen, nicstride_direction_t dir,
                           const onic_layout_t *origin, const onic_layout_t *target, target_t there,
                           const nicstride_path_t *cost)
{
    const double mine = method_cost(chosen, origin, target, cost);

    UNIT_CHECK(method_can(chosen, dir, origin, target, there));
    for (int i = NICSTRIDE_METHOD_DIRECT; i < NICSTRIDE_METHOD_LAST; i++) {
        const nicstride_method_t m = (nicstride_method_t)i;
        if (method_can(m, dir, origin, target, there))
            UNIT_CHECK(mine <= method_cost(m, origin, target, cost));
    }
}

START_TEST(cheapest_or_forced)
{
    unit_random_t r = {unit_seed()};
    unsigned chosen[NICSTRIDE_METHOD_LAST] = {0};

    for (int round = 0; round < 20000; round++) {
        const uint64_t size = 64ull << unit_below(&r, 20);
        const onic_layout_t origin =
            vector(size, unit_once_in(&r, 2) ? 0 : 1ull << unit_below(&r, 14));
        const onic_layout_t target =
            vector(size, unit_once_in(&r, 2) ? 0 : 1ull << unit_below(&r, 14));
        const target_t there = {.reach = REACH_MESSAGE | (unit_once_in(&r, 4) ? REACH_DIRECT : 0) |
                                         (unit_once_in(&r, 2) ? REACH_COPY : 0) |
                                         (unit_once_in(&r, 2) ? REACH_SLOTS : 0) |
                                         (unit_once_in(&r, 4) ? REACH_ADAPTER : 0)};
        const nicstride_path_t *cost = (there.reach & REACH_COPY) != 0 ? &near_link : &far_link;
        const nicstride_direction_t dir = unit_once_in(&r, 2) ? NICSTRIDE_PUT : NICSTRIDE_GET;
        const nicstride_method_t forced =
            (nicstride_method_t)unit_below(&r, NICSTRIDE_METHOD_LAST + 1);
        const nicstride_method_t m =
            plan_case(forced, dir, &origin, &target, there, cost, ONIC_MODEL_ALONE);

        chosen[m]++;
        if (method_can(forced, dir, &origin, &target, there))
            UNIT_CHECK(m == forced);
        else
            check_cheapest(m, dir, &origin, &target, there, cost);
    }
    for (int m = NICSTRIDE_METHOD_DIRECT; m < NICSTRIDE_METHOD_LAST; m++)
        ck_assert_uint_gt(chosen[m], 100);
}
END_TEST

/* The shapes that each method is there for, on links that are good at it. */
START_TEST(by_shape)
{
    for (uint64_t size = 8; size <= 1024 * KIB; size *= 2) {
        ck_assert_int_eq(plan_vector(NICSTRIDE_PUT, size, 8, mapped), NICSTRIDE_METHOD_DIRECT);
        ck_assert_int_eq(plan_vector(NICSTRIDE_GET, size, 0, mapped), NICSTRIDE_METHOD_DIRECT);
    }
    ck_assert_int_eq(plan_vector(NICSTRIDE_PUT, 1024 * KIB, 0, same_node), NICSTRIDE_METHOD_CMA);
    ck_assert_int_eq(plan_vector(NICSTRIDE_GET, 1024 * KIB, 0, same_node), NICSTRIDE_METHOD_CMA);
    ck_assert_int_eq(plan_vector(NICSTRIDE_PUT, 1024 * KIB, 64, same_node), NICSTRIDE_METHOD_PACK);
    ck_assert_int_eq(plan_vector(NICSTRIDE_GET, 4 * KIB, 64, same_node), NICSTRIDE_METHOD_SIEVE);
    ck_assert_int_eq(plan_vector(NICSTRIDE_PUT, 1024 * KIB, 64, with_slots),
                     NICSTRIDE_METHOD_MOVER);
    ck_assert_int_eq(plan_vector(NICSTRIDE_PUT, 8, 0, with_slots), NICSTRIDE_METHOD_CMA);
    ck_assert_int_eq(plan_vector(NICSTRIDE_PUT, 8, 0, far_away), NICSTRIDE_METHOD_PACK);
    ck_assert_int_eq(plan_vector(NICSTRIDE_PUT, 1024 * KIB, 64, far_away), NICSTRIDE_METHOD_PACK);
    ck_assert_int_eq(plan_vector(NICSTRIDE_PUT, 16 * KIB * KIB, 0, far_away),
                     NICSTRIDE_METHOD_PACK);

    onic_layout_t list = irregular(1000);
    ck_assert_int_eq(plan(NICSTRIDE_GET, &list, same_node), NICSTRIDE_METHOD_PACK);
    ck_assert_int_eq(plan(NICSTRIDE_PUT, &list, far_away), NICSTRIDE_METHOD_PACK);
    onic_layout_fini(&list);
}
END_TEST

/* The defaults make sense in the model: more bytes and more pieces never cost less. */
START_TEST(costs_grow)
{
    const nicstride_path_t *const costs[] = {&defaults()->node, &defaults()->net};

    for (size_t i = 0; i < 2; i++)
        for (int k = NICSTRIDE_METHOD_CMA; k < NICSTRIDE_METHOD_LAST; k++) {
            const nicstride_method_t m = (nicstride_method_t)k;
            for (uint64_t size = 1 * KIB; size <= 64 * KIB * KIB; size *= 2) {
                const onic_layout_t small = vector(size, 64), large = vector(2 * size, 64);
                const onic_layout_t fine = vector(size, 32);
                const double cost = method_cost(m, &small, &small, costs[i]);
                UNIT_CHECK(cost > 0);
                UNIT_CHECK(method_cost(m, &large, &large, costs[i]) > cost);
                UNIT_CHECK(method_cost(m, &fine, &small, costs[i]) >= cost);
                UNIT_CHECK(method_cost(m, &small, &fine, costs[i]) >= cost);
            }
        }
}
END_TEST

/* Equations (1) and (2) of the paper, with their terms by hand. */
START_TEST(equations)
{
    const nicstride_path_t cost = {.link = {.call = 1000,
                                            .piece = 100,
                                            .copy = 2,
                                            .block = 3,
                                            .line = 3,
                                            .page = 3,
                                            .message = 50,
                                            .fragment = 8192,
                                            .byte = 5,
                                            .gap = 10,
                                            .latency = 100,
                                            .bcopy = 16,
                                            .bnet = 8,
                                            .request = 40,
                                            .doorbell = 70,
                                            .batch = 8,
                                            .entry = 20,
                                            .entries = 4,
                                            .window = 32,
                                            .reads = 16},
                                   .mover_slot = ONIC_MOVER_SLOT,
                                   .mover_block = ONIC_MOVER_BLOCK,
                                   .sieve_piece = 1u << 20};
    const onic_layout_t flat = vector(4096, 0), strided = vector(4096, 64),
                        many = vector(32768, 64);

#define COST(method, origin, target) method_cost(NICSTRIDE_METHOD_##method, origin, target, &cost)
    ck_assert(COST(DIRECT, &strided, &strided) == 0);
    ck_assert(COST(CMA, &flat, &flat) == 1000 + 4096 * 2);
    ck_assert(COST(CMA, &flat, &strided) == 1000 + 63 * 100 + 4096 * 2);
    ck_assert(COST(CMA, &strided, &flat) == COST(CMA, &flat, &strided));
    ck_assert(COST(PACK, &flat, &strided) == 50 + 64 * 3 + 4096 * 5);
    /* One read of the extent, then the gather. */
    ck_assert(COST(SIEVE, &flat, &strided) == 1000 + (2 * 4096 - 64) * 2 + 64 * 3 + 4096 * 2);
    /* One chunk, whose bytes are moved; its last block is copied behind that (equation 9). */
    ck_assert(COST(MOVER, &flat, &flat) ==
              50 + 4096.0 / 16 + 10 + 4096.0 / 8 + (4096.0 / 16 - 200));
    /* Of one chunk nothing overlaps: it is gathered, then scattered. */
    ck_assert(COST(MOVER, &strided, &strided) == COST(MOVER, &flat, &flat) + 2 * 64 * 3);
    /* Blocks on both sides are gathered and scattered: at the same time, but for a first message.
     */
    ck_assert(COST(PACK, &strided, &strided) == 50 + 2 * 64 * 3 + 4096 * 5);
    ck_assert(COST(PACK, &many, &many) ==
              50 + 8192 * 5 + 2 * 128 * 3 + fmax(24576.0 / 8, 24576.0 / 16 + 3 * 10 + 384 * 3));
    /* One request, behind whose moving its answer comes; one for each block, in lists of 8. */
    ck_assert(COST(RDMA, &flat, &flat) == 40 + 70 + 4096.0 / 8 + 2 * 100);
    ck_assert(COST(NIC, &flat, &strided) == 40 + 70 + 63 * 40 + 7 * 70 + 2 * 100);
    /* Pieces of the origin's side are in the gather lists of requests. */
    ck_assert(COST(NIC, &strided, &flat) == 40 + 70 + 15 * 40 + 48 * 20 + 70 + 2 * 100);
#undef COST
}
END_TEST

/* A target that is away from MPI: methods that need it lose to any that takes less than the wait.
 */
START_TEST(away)
{
    const onic_layout_t flat = vector(65536, 0), short_blocks = vector(65536, 8);
    target_t there = same_node;
    nicstride_path_t cost = near_link;
    unit_random_t r = {unit_seed()};

    cost.link.message = 10;
    cost.link.byte = 0.001;
    cost.link.wake = cost.link.absence = 100000;
    for (int i = 0; i < 20; i++) {
        const nicstride_direction_t d = i % 2 == 0 ? NICSTRIDE_PUT : NICSTRIDE_GET;

        there.presence = NICSTRIDE_PRESENT;
        ck_assert_int_eq(
            plan_case(NICSTRIDE_METHOD_AUTO, d, &flat, &flat, there, &cost, ONIC_MODEL_ALONE),
            NICSTRIDE_METHOD_PACK);
        there.presence = unit_once_in(&r, 2) ? NICSTRIDE_SERVED : NICSTRIDE_ABSENT;
        ck_assert_int_eq(
            plan_case(NICSTRIDE_METHOD_AUTO, d, &flat, &flat, there, &cost, ONIC_MODEL_ALONE),
            NICSTRIDE_METHOD_CMA);
        ck_assert_int_eq(plan_case(NICSTRIDE_METHOD_AUTO, d, &flat, &short_blocks, there, &cost,
                                   ONIC_MODEL_ALONE),
                         d == NICSTRIDE_PUT ? NICSTRIDE_METHOD_PACK : NICSTRIDE_METHOD_SIEVE);
        ck_assert_int_eq(
            plan_case(NICSTRIDE_METHOD_PACK, d, &flat, &flat, there, &cost, ONIC_MODEL_ALONE),
            NICSTRIDE_METHOD_PACK);
    }
}
END_TEST

/* Who can be woken is waited for that long, and not until its helper finds out by itself. */
START_TEST(woken)
{
    const onic_layout_t l = vector(8192, 8);
    target_t there = same_node;

    /* 1024 pieces cost more than waking, and less than the time until nobody was needed for it. */
#define PLAN                                                                                       \
    plan_case(NICSTRIDE_METHOD_AUTO, NICSTRIDE_PUT, &l, &l, there, &defaults()->node,              \
              ONIC_MODEL_ALONE)
    there.presence = NICSTRIDE_ABSENT;
    ck_assert_int_eq(PLAN, NICSTRIDE_METHOD_CMA);
    there.presence = NICSTRIDE_SERVED;
    ck_assert_int_eq(PLAN, NICSTRIDE_METHOD_PACK);
#undef PLAN
}
END_TEST

/* Without a budget what was learned is used, nothing is tried, and nothing is noted; also where the
 * target is away, which counts beside it. */
START_TEST(learned_without_trials)
{
    const onic_layout_t l = vector(65536, 0);
    onic_learn_budget_t budget = {.spent = 0};
    onic_learn_cell_t cell = {.trial = 0}, before;
    target_t there = same_node;

    for (int i = 0; i < 200; i++) {
        onic_learn_note(&cell, &budget, NICSTRIDE_METHOD_CMA, l.size, 9000);
        onic_learn_note(&cell, &budget, NICSTRIDE_METHOD_PACK, l.size, 8000);
        onic_learn_note(&cell, &budget, NICSTRIDE_METHOD_SIEVE, l.size, 20000);
    }
    before = cell;
    for (int i = 0; i < 1000; i++) {
        there.presence = (nicstride_presence_t)(i % 3);
        const nicstride_method_t m = plan_case(NICSTRIDE_METHOD_AUTO, NICSTRIDE_PUT, &l, &l, there,
                                               &defaults()->node, (onic_learned_t){.cell = &cell});

        UNIT_CHECK(m == (i % 3 == 0 ? NICSTRIDE_METHOD_PACK : NICSTRIDE_METHOD_CMA));
    }
    ck_assert(memcmp(&cell, &before, sizeof(cell)) == 0);
}
END_TEST

/* The reason names what can be done, what was learned and what is waited for. */
START_TEST(reason)
{
    const onic_layout_t l = vector(65536, 64);
    onic_learn_budget_t budget = {.spent = 0};
    onic_learn_cell_t cell = {.trial = 0};
    nicstride_case_t c = {.rows = rows,
                          .dir = NICSTRIDE_GET,
                          .origin = &l,
                          .target = &l,
                          .reach = same_node.reach,
                          .path = &defaults()->node,
                          .learned = {.cell = &cell}};
    char text[512];
    FILE *to = fmemopen(text, sizeof(text), "w");

    nicstride_plan_reason(to, &c);
    fclose(to);
    ck_assert_ptr_nonnull(strstr(text, "cma"));
    ck_assert_ptr_nonnull(strstr(text, ", sieve"));
    ck_assert_ptr_nonnull(strstr(text, ", pack"));
    ck_assert_ptr_null(strstr(text, "mover"));
    ck_assert_ptr_null(strstr(text, "learned"));
    ck_assert_ptr_null(strstr(text, "wait"));
    for (int i = 0; i < 100; i++)
        onic_learn_note(&cell, &budget, NICSTRIDE_METHOD_PACK, l.size, 123450);
    c.presence = NICSTRIDE_ABSENT;
    to = fmemopen(text, sizeof(text), "w");
    nicstride_plan_reason(to, &c);
    fclose(to);
    ck_assert_ptr_nonnull(strstr(text, "(learned 123.45)"));
    ck_assert_ptr_nonnull(strstr(text, "messages wait 500"));
}
END_TEST

static void write_table(nicstride_method_t forced, char *text, size_t cap)
{
    FILE *to = fmemopen(text, cap, "w");

    nicstride_plan_table(to, rows, forced, defaults());
    fclose(to);
}

/* The table: a line for each case. */
START_TEST(table)
{
    static char text[16384];
    size_t lines = 0;

    write_table(NICSTRIDE_METHOD_AUTO, text, sizeof(text));
    for (const char *at = text; *at != '\0'; at++)
        lines += *at == '\n';
    ck_assert_uint_eq(lines, 1 + 5 * 2 * 6); /* a heading; kinds of peer, put and get, blocks */
    ck_assert_uint_lt(strlen(text), 8192);
    write_table(NICSTRIDE_METHOD_PACK, text, sizeof(text));
    ck_assert_ptr_nonnull(strstr(text, "pack"));
    for (int m = NICSTRIDE_METHOD_DIRECT; m < NICSTRIDE_METHOD_LAST; m++)
        if (m != NICSTRIDE_METHOD_PACK)
            ck_assert_ptr_null(strstr(text, rows[m]->name));
}
END_TEST

/* Many blocks that are no longer than a line, whatever form they have. */
START_TEST(lines)
{
    const onic_layout_t columns = vector(256 * 8, 8), whole_lines = vector(256 * 64, 64);
    const onic_layout_t fewer = vector(255 * 8, 8), longer = vector(256 * 72, 72);
    const onic_layout_t contiguous = vector(1 << 20, 0);
    onic_layout_t list = irregular(300), short_list = irregular(200);

    ck_assert(nicstride_shares_lines(&columns));
    ck_assert(nicstride_shares_lines(&whole_lines));
    ck_assert(nicstride_shares_lines(&list));
    ck_assert(!nicstride_shares_lines(&fewer));
    ck_assert(!nicstride_shares_lines(&longer));
    ck_assert(!nicstride_shares_lines(&contiguous));
    ck_assert(!nicstride_shares_lines(&short_list));
    /* Blocks that have their lines for themselves are at least so far apart. */
    for (int64_t stride = 16; stride <= 256; stride += 16) {
        onic_layout_t apart;

        onic_layout_contig(&apart, 0, 8);
        onic_layout_repeat(&apart, 1024, stride);
        ck_assert(nicstride_shares_lines(&apart));
        ck_assert_int_eq(nicstride_has_lines(&apart), stride >= ONIC_LINK_LINE);
    }
    onic_layout_fini(&list);
    onic_layout_fini(&short_list);
}
END_TEST

int main(void)
{
    return UNIT_RUN("plan", UNIT_ONCE(what_can_do_what), UNIT_ONCE(cheapest_or_forced),
                    UNIT_ONCE(by_shape), UNIT_ONCE(costs_grow), UNIT_ONCE(equations),
                    UNIT_ONCE(away), UNIT_ONCE(lines), UNIT_ONCE(table), UNIT_ONCE(woken),
                    UNIT_ONCE(learned_without_trials), UNIT_ONCE(reason));
}
