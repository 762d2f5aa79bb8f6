/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The plan: the cheapest method that can do it, unless one that can is forced. */
#include "osc_nicstride/methods/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/pipeline/core/chunks.h"
#include "osc_nicstride/methods/sieve.h"
#include "test/unit/cost_of.h"
#include "test/unit/method_rows.h"
#include "test/unit/unit.h"

#define KIB 1024ull

#define N_NUMBERS (sizeof(onic_link_t) / sizeof(double))
#define N_COSTS   (sizeof(onic_costs_t) * ONIC_DISTANCES / (sizeof(double)))

/** Ways of reaching a target. */
#define FAR_AWAY   REACH_MESSAGE
#define SAME_NODE  (REACH_MESSAGE | REACH_COPY)
#define WITH_SLOTS (REACH_MESSAGE | REACH_COPY | REACH_SLOTS)
#define MAPPED     (REACH_MESSAGE | REACH_DIRECT)
#define BY_ADAPTER (REACH_MESSAGE | REACH_SLOTS | REACH_ADAPTER)

/* ---- cases ----------------------------------------------------------------------------------- */

/** `size` bytes in blocks of `block` with gaps between them; contiguous for block 0. */
static onic_layout_t spaced(uint64_t size, uint64_t block, uint64_t gap)
{
    onic_layout_t l;

    if (block == 0 || block >= size) {
        UNIT_CHECK(onic_layout_contig(&l, 0, size) == ONIC_LAYOUT_OK);
        return l;
    }
    UNIT_CHECK(onic_layout_contig(&l, 0, block) == ONIC_LAYOUT_OK);
    UNIT_CHECK(onic_layout_repeat(&l, size / block, (int64_t)(block + gap)) == ONIC_LAYOUT_OK);
    return l;
}

/** Every other block of memory. */
static onic_layout_t vector(uint64_t size, uint64_t block)
{
    return spaced(size, block, block);
}

/** In list form: blocks of 9 bytes on average at growing distances. */
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

static bool method_can(nicstride_method_t m, nicstride_direction_t dir, const onic_layout_t *origin,
                       const onic_layout_t *target, uint32_t reach)
{
    const nicstride_case_t c = {
        .rows = rows, .dir = dir, .origin = origin, .target = target, .reach = reach};

    return nicstride_can(&c, m);
}

static double method_cost(nicstride_method_t m, nicstride_direction_t dir,
                          const onic_layout_t *origin, const onic_layout_t *target,
                          const nicstride_path_t *path)
{
    const nicstride_case_t c = {
        .rows = rows, .dir = dir, .origin = origin, .target = target, .path = path};

    return rows[m]->cost(&c);
}

/** A transfer, by numbers: its layouts are made from them each time. */
typedef struct transfer {
    onic_kind_t kind;
    nicstride_direction_t dir;
    nicstride_presence_t presence;
    bool many;
    uint32_t reach;
    uint64_t size, origin_block, target_block; /**< 0: contiguous */
    uint64_t gap;                              /**< between the target's blocks */
    unsigned list;                             /**< not 0: the target's side is of so many blocks */
} transfer_t;

static transfer_t any_transfer(unit_random_t *r)
{
    transfer_t t = {.kind = (onic_kind_t)unit_below(r, ONIC_KINDS),
                    .dir = (nicstride_direction_t)unit_below(r, NICSTRIDE_DIRECTIONS),
                    .presence = (nicstride_presence_t)unit_below(r, NICSTRIDE_PRESENCES),
                    .many = unit_once_in(r, 2),
                    .reach = REACH_MESSAGE | (unit_once_in(r, 4) ? REACH_DIRECT : 0) |
                             (unit_once_in(r, 2) ? REACH_COPY : 0) |
                             (unit_once_in(r, 2) ? REACH_SLOTS : 0) |
                             (unit_once_in(r, 2) ? REACH_ADAPTER : 0),
                    .list = unit_once_in(r, 10) ? 3 + (unsigned)unit_below(r, 300) : 0};

    if (t.list > 0) {
        onic_layout_t l = irregular(t.list);

        t.size = l.size;
        onic_layout_fini(&l);
        return t;
    }
    t.origin_block =
        unit_once_in(r, 2) ? 0 : 1 + (unit_random64(r) >> (64 - unit_below(r, 18) - 1));
    t.target_block =
        unit_once_in(r, 2) ? 0 : 1 + (unit_random64(r) >> (64 - unit_below(r, 18) - 1));
    t.size = 1 + unit_below(r, 1ull << (3 + unit_below(r, 22)));
    /* In whole blocks of both. */
    const uint64_t a = t.origin_block > 0 ? t.origin_block : 1,
                   b = t.target_block > 0 ? t.target_block : 1;
    if (a != b && a > 1 && b > 1)
        t.target_block = a > b ? a / (a / b) : b, t.origin_block = t.target_block;
    t.gap = unit_below(r, 5 * t.target_block + 1);
    const uint64_t unit = t.origin_block > t.target_block ? t.origin_block : t.target_block;
    if (unit > 1)
        t.size = (t.size / unit + 1) * unit;
    return t;
}

/** The case of a transfer, with layouts that are kept in `l`, to be freed. */
static nicstride_case_t case_of(const transfer_t *t, const nicstride_path_t *table,
                                onic_layout_t l[2])
{
    l[0] = vector(t->size, t->origin_block);
    l[1] = t->list > 0 ? irregular(t->list) : spaced(t->size, t->target_block, t->gap);
    UNIT_CHECK(l[0].size == l[1].size);
    return (nicstride_case_t){.rows = rows,
                              .dir = t->dir,
                              .presence = t->presence,
                              .many = t->many,
                              .reach = t->reach,
                              .origin = &l[0],
                              .target = &l[1],
                              .path = &table[t->kind]};
}

static nicstride_method_t plan_transfer(const nicstride_path_t *table, const transfer_t *t,
                                        nicstride_method_t forced)
{
    onic_layout_t l[2];
    nicstride_case_t c = case_of(t, table, l);

    c.forced = forced;
    const nicstride_method_t m = plan_for(table, t->kind, c);

    onic_layout_fini(&l[0]);
    onic_layout_fini(&l[1]);
    return m;
}

/** Numbers as far apart as they are on machines. */
static void any_numbers(unit_random_t *r, onic_links_t *links)
{
    double *cost = (double *)links->costs;
    onic_link_t *const link[] = {&links->node, &links->net, &links->adapter};

    *links = onic_links_default("other");
    for (size_t k = 0; k < 3; k++)
        for (size_t i = 0; i < N_NUMBERS; i++)
            ((double *)link[k])[i] *= pow(2, (double)unit_below(r, 9) - 4);
    for (size_t i = 0; i < N_COSTS; i++)
        cost[i] *= pow(2, (double)unit_below(r, 9) - 4);
}

/* ---- what can do what ------------------------------------------------------------------------ */

START_TEST(what_can_do_what)
{
    const onic_layout_t flat = vector(4 * KIB, 0), strided = vector(4 * KIB, 64),
                        longer = vector(64 * KIB, 64), block = vector(ONIC_PIPELINE_BLOCK - 64, 64),
                        empty = vector(0, 0);
    onic_layout_t list = irregular(20);

#define CAN(method, dir, origin, target, reach)                                                    \
    method_can(NICSTRIDE_METHOD_##method, NICSTRIDE_##dir, origin, target, reach)
    ck_assert(!CAN(AUTO, PUT, &flat, &flat, MAPPED));
    ck_assert(!CAN(LAST, PUT, &flat, &flat, UINT32_MAX)); /* there is no such row */
    ck_assert(
        !method_can((nicstride_method_t)NICSTRIDE_METHODS_MAX, NICSTRIDE_PUT, &flat, &flat, ~0U));
    ck_assert(CAN(DIRECT, PUT, &strided, &list, MAPPED));
    ck_assert(!CAN(DIRECT, GET, &flat, &flat, SAME_NODE));
    ck_assert(CAN(CMA, PUT, &flat, &list, SAME_NODE));
    ck_assert(!CAN(CMA, PUT, &flat, &flat, FAR_AWAY));
    ck_assert(CAN(SIEVE, GET, &strided, &strided, SAME_NODE));
    ck_assert(!CAN(SIEVE, GET, &strided, &strided, FAR_AWAY));
    ck_assert(!CAN(SIEVE, PUT, &strided, &strided, SAME_NODE));
    ck_assert(!CAN(SIEVE, ACC, &strided, &strided, SAME_NODE));
    ck_assert(!CAN(SIEVE, GET, &strided, &list, SAME_NODE)); /* it knows strides only */
    ck_assert(!CAN(SIEVE, GET, &empty, &empty, SAME_NODE));
    ck_assert(CAN(PIPELINE, PUT, &list, &longer, WITH_SLOTS));
    ck_assert(CAN(PIPELINE, ACC, &list, &longer, WITH_SLOTS));
    ck_assert(!CAN(PIPELINE, PUT, &list, &block, WITH_SLOTS)); /* below one: nothing overlaps */
    ck_assert(!CAN(PIPELINE, PUT, &list, &longer, SAME_NODE));
    ck_assert(CAN(PACK, PUT, &list, &strided, FAR_AWAY));
    ck_assert(CAN(PACK, GET, &flat, &list, MAPPED));
    ck_assert(CAN(RDMA, PUT, &flat, &flat, BY_ADAPTER));
    ck_assert(CAN(RDMA, GET, &flat, &flat, BY_ADAPTER));
    ck_assert(!CAN(RDMA, ACC, &flat, &flat, BY_ADAPTER));
    ck_assert(!CAN(RDMA, PUT, &strided, &flat, BY_ADAPTER));
    ck_assert(!CAN(RDMA, PUT, &flat, &strided, BY_ADAPTER));
    ck_assert(!CAN(RDMA, PUT, &empty, &empty, BY_ADAPTER));
    ck_assert(!CAN(RDMA, PUT, &flat, &flat, WITH_SLOTS));
    ck_assert(CAN(NIC, PUT, &strided, &list, BY_ADAPTER));
    ck_assert(!CAN(NIC, ACC, &strided, &strided, BY_ADAPTER));
    ck_assert(!CAN(NIC, GET, &empty, &empty, BY_ADAPTER));
#undef CAN
    onic_layout_fini(&list);
}
END_TEST

/* What is too sparse costs more to read than it is worth; however long its blocks are. */
START_TEST(sparse)
{
    for (uint64_t block = 1; block <= 4096; block *= 4)
        for (uint64_t apart = 2; apart <= 10; apart++) {
            onic_layout_t l;

            onic_layout_contig(&l, 0, block);
            onic_layout_repeat(&l, 1000, (int64_t)(apart * block));
            /* The last block has no gap behind it. */
            ck_assert_int_eq(method_can(NICSTRIDE_METHOD_SIEVE, NICSTRIDE_GET, &l, &l, SAME_NODE),
                             (999 * apart + 1) * block / NICSTRIDE_SIEVE_SPARSE <= 1000 * block);
        }
    const onic_layout_t half = vector(64 * KIB, 64);
    onic_layout_t tenth;

    onic_layout_contig(&tenth, 0, 64);
    onic_layout_repeat(&tenth, 1000, 640);
    ck_assert(method_can(NICSTRIDE_METHOD_SIEVE, NICSTRIDE_GET, &half, &half, SAME_NODE));
    ck_assert(!method_can(NICSTRIDE_METHOD_SIEVE, NICSTRIDE_GET, &tenth, &tenth, SAME_NODE));
}
END_TEST

/* ---- the plan -------------------------------------------------------------------------------- */

/** What a method costs; infinite where it does not fit, or there is none. */
static double transfer_cost(const nicstride_case_t *c, unsigned m)
{
    const double waits[] = {0, c->path->link.wake, c->path->link.absence};

    if (m == NICSTRIDE_METHOD_AUTO || m >= NICSTRIDE_METHOD_LAST ||
        (rows[m]->fits != NULL && !rows[m]->fits(c)))
        return INFINITY;
    return rows[m]->cost(c) + (rows[m]->needs_target ? waits[c->presence] : 0);
}

/** The cheapest of those that can; of equal ones the first. */
static nicstride_method_t naive_plan(const nicstride_path_t *table, const transfer_t *t)
{
    onic_layout_t l[2];
    const nicstride_case_t c = case_of(t, table, l);
    nicstride_method_t best = NICSTRIDE_METHOD_PACK;
    double least = transfer_cost(&c, best);

    for (unsigned m = NICSTRIDE_METHOD_DIRECT; m < NICSTRIDE_METHOD_LAST; m++) {
        const double cost = transfer_cost(&c, m);

        /* Lists are not got through slots of the node. */
        if (m == NICSTRIDE_METHOD_PIPELINE && t->list > 0 && t->dir == NICSTRIDE_GET &&
            t->kind < ONIC_NET)
            continue;
        if (nicstride_can(&c, m) && (cost < least || (cost == least && m < best))) {
            least = cost;
            best = (nicstride_method_t)m;
        }
    }
    onic_layout_fini(&l[0]);
    onic_layout_fini(&l[1]);
    return best;
}

/* Whatever the numbers are; and what is forced, where it can do it. */
START_TEST(cheapest_or_forced)
{
    static nicstride_path_t table[ONIC_KINDS];
    unit_random_t r = {unit_seed() + (uint64_t)_i};
    unsigned chosen[NICSTRIDE_METHODS_MAX] = {0}, by_force = 0;

    for (int set = 0; set < 50; set++) {
        onic_links_t links;

        any_numbers(&r, &links);
        nicstride_paths_set(table, &links);
        for (int n = 0; n < 1000; n++) {
            const transfer_t t = any_transfer(&r);
            const nicstride_method_t forced =
                (nicstride_method_t)unit_below(&r, NICSTRIDE_METHODS_MAX + 2);
            const nicstride_method_t m = plan_transfer(table, &t, NICSTRIDE_METHOD_AUTO),
                                     f = plan_transfer(table, &t, forced);
            onic_layout_t l[2];
            const nicstride_case_t c = case_of(&t, table, l);
            const bool can = nicstride_can(&c, forced);

            onic_layout_fini(&l[0]);
            onic_layout_fini(&l[1]);
            UNIT_CHECK(m == naive_plan(table, &t));
            UNIT_CHECK(f == (can ? forced : m));
            chosen[m]++;
            by_force += f != m;
        }
    }
    for (int m = NICSTRIDE_METHOD_DIRECT; m < NICSTRIDE_METHOD_LAST; m++)
        ck_assert_msg(chosen[m] > 50, "%s: %u", rows[m]->name, chosen[m]);
    ck_assert_uint_gt(by_force, 1000);
}
END_TEST

/* ---- numbers of our own making --------------------------------------------------------------- */

/** The same costs for all ways, distances, one and many. */
static void set_way(onic_links_t *links, onic_way_t way, onic_cost_t cost)
{
    for (unsigned d = 0; d < ONIC_DISTANCES; d++)
        links->costs[d].of[way][0] = links->costs[d].of[way][1] = cost;
}

/** Single copy is fast, but for each piece; networks are slow. */
static const nicstride_path_t *own_table(void)
{
    static nicstride_path_t table[ONIC_KINDS];
    static onic_links_t links;

    links = onic_links_default("other");
    set_way(&links, ONIC_WAY_cma_put, plain_cost(500, 500, 0.09));
    set_way(&links, ONIC_WAY_cma_get, plain_cost(500, 500, 0.09));
    set_way(&links, ONIC_WAY_sieve, plain_cost(500, 1, 0.18));
    set_way(&links, ONIC_WAY_pack_put, plain_cost(1000, 2, 0.2));
    set_way(&links, ONIC_WAY_pack_get, plain_cost(1000, 2, 0.2));
    set_way(&links, ONIC_WAY_pipeline_put, plain_cost(2500, 1, 0.12));
    set_way(&links, ONIC_WAY_pipeline_get, plain_cost(2500, 1, 0.12));
    links.node.wake = 20000;
    links.node.absence = 1000000;
    nicstride_paths_set(table, &links);
    return table;
}

static nicstride_method_t plan(onic_kind_t kind, nicstride_direction_t dir,
                               const onic_layout_t *target, uint32_t reach)
{
    const onic_layout_t origin = vector(target->size, 0);
    const nicstride_case_t c = {
        .rows = rows, .dir = dir, .origin = &origin, .target = target, .reach = reach};

    return plan_for(own_table(), kind, c);
}

static nicstride_method_t plan_vector(onic_kind_t kind, nicstride_direction_t dir, uint64_t size,
                                      uint64_t block, uint32_t reach)
{
    const onic_layout_t target = vector(size, block);

    return plan(kind, dir, &target, reach);
}

/* The shapes that each method is there for. */
START_TEST(by_shape)
{
#define USES(method, kind, dir, size, block, reach)                                                \
    ck_assert_int_eq(plan_vector(ONIC_##kind, NICSTRIDE_##dir, size, block, reach),                \
                     NICSTRIDE_METHOD_##method)
    for (uint64_t size = 8; size <= 1024 * KIB; size *= 2) {
        USES(DIRECT, NEAR, PUT, size, 8, MAPPED);
        USES(DIRECT, FAR, GET, size, 0, MAPPED);
    }
    USES(CMA, NEAR, PUT, 1024 * KIB, 0, SAME_NODE);
    USES(CMA, PACKAGE, GET, 1024 * KIB, 0, SAME_NODE);
    USES(PACK, NEAR, PUT, 1024 * KIB, 64, SAME_NODE);
    USES(SIEVE, NEAR, GET, 4 * KIB, 8, SAME_NODE);
    USES(PACK, NEAR, PUT, 4 * KIB, 8, SAME_NODE);
    USES(PIPELINE, FAR, PUT, 1024 * KIB, 64, WITH_SLOTS);
    USES(CMA, NEAR, PUT, 8, 0, WITH_SLOTS);
    USES(PACK, NET, PUT, 8, 0, FAR_AWAY);
    USES(PACK, NET, PUT, 1024 * KIB, 64, FAR_AWAY);
    USES(PACK, NET, GET, 16 * KIB * KIB, 0, FAR_AWAY);
    USES(RDMA, ADAPTER, PUT, 1024 * KIB, 0, BY_ADAPTER);
    USES(RDMA, ADAPTER, GET, 1024 * KIB, 0, BY_ADAPTER);
    USES(NIC, ADAPTER, PUT, 1024 * KIB, 16 * KIB, BY_ADAPTER);
    USES(PIPELINE, ADAPTER, PUT, 1024 * KIB, 64, BY_ADAPTER);
#undef USES

    onic_layout_t list = irregular(1000);
    ck_assert_int_eq(plan(ONIC_NEAR, NICSTRIDE_GET, &list, SAME_NODE), NICSTRIDE_METHOD_PACK);
    ck_assert_int_eq(plan(ONIC_NET, NICSTRIDE_PUT, &list, FAR_AWAY), NICSTRIDE_METHOD_PACK);
    onic_layout_fini(&list);
}
END_TEST

/* What a sieve reads beside the wanted bytes counts. */
START_TEST(by_density)
{
    static const struct {
        uint64_t size, gap; /**< between blocks of 64 bytes */
        nicstride_method_t method;
    } gets[] = {{2 * KIB, 8, NICSTRIDE_METHOD_SIEVE},      /* 0.9 us, by message 1.5 */
                {2 * KIB, 64, NICSTRIDE_METHOD_SIEVE},     /* 1.3 */
                {2 * KIB, 3 * 64, NICSTRIDE_METHOD_PACK},  /* 2.0 */
                {64 * KIB, 8, NICSTRIDE_METHOD_SIEVE},     /* 15, by message 16 */
                {64 * KIB, 64, NICSTRIDE_METHOD_PACK},     /* 25 */
                {64 * KIB, 3 * 64, NICSTRIDE_METHOD_PACK}, /* 49 */
                {64 * KIB, 9 * 64, NICSTRIDE_METHOD_PACK}};

    for (size_t i = 0; i < sizeof(gets) / sizeof(gets[0]); i++) {
        const onic_layout_t l = spaced(gets[i].size, 64, gets[i].gap);

        ck_assert_int_eq(plan(ONIC_NEAR, NICSTRIDE_GET, &l, SAME_NODE), gets[i].method);
    }
}
END_TEST

/* Each number of a distance counts for that alone; those of many for many. */
START_TEST(distances_and_many)
{
    static nicstride_path_t table[ONIC_KINDS];
    const onic_layout_t l = vector(64 * KIB, 0);

    for (unsigned d = 0; d < ONIC_DISTANCES; d++)
        for (int many = 0; many < 2; many++)
            for (int dir = NICSTRIDE_PUT; dir <= NICSTRIDE_GET; dir++) {
                const bool get = dir == NICSTRIDE_GET;
                onic_links_t links = onic_links_default("other");

                for (onic_way_t w = 0; w < ONIC_N_WAYS; w++)
                    set_way(&links, w, plain_cost(1000, 1, 0.1));
                set_way(&links, ONIC_WAY_sieve, plain_cost(5000, 1, 0.1));
                set_way(&links, get ? ONIC_WAY_cma_get : ONIC_WAY_cma_put, plain_cost(900, 1, 0.1));
                links.costs[d].of[get ? ONIC_WAY_pipeline_get : ONIC_WAY_pipeline_put][many].start =
                    800;
                nicstride_paths_set(table, &links);
                for (unsigned k = 0; k < ONIC_DISTANCES; k++)
                    for (int n = 0; n < 2; n++)
                        for (int to = NICSTRIDE_PUT; to <= NICSTRIDE_GET; to++) {
                            const nicstride_case_t c = {.rows = rows,
                                                        .dir = (nicstride_direction_t)to,
                                                        .many = n != 0,
                                                        .origin = &l,
                                                        .target = &l,
                                                        .reach = WITH_SLOTS};
                            const nicstride_method_t m = plan_for(table, (onic_kind_t)k, c);

                            if (to != dir) /* all cost the same: the first one */
                                ck_assert_int_eq(m, NICSTRIDE_METHOD_CMA);
                            else
                                ck_assert_int_eq(m, k == d && n == many ? NICSTRIDE_METHOD_PIPELINE
                                                                        : NICSTRIDE_METHOD_CMA);
                        }
            }
}
END_TEST

/* ---- costs ----------------------------------------------------------------------------------- */

/* The defaults make sense in the model: more bytes and more pieces never cost less. */
START_TEST(costs_grow)
{
    static nicstride_path_t table[ONIC_KINDS];
    const onic_links_t links = onic_links_default("other");

    nicstride_paths_set(table, &links);
    for (unsigned kind = 0; kind < ONIC_KINDS; kind++)
        for (int k = NICSTRIDE_METHOD_CMA; k < NICSTRIDE_METHOD_LAST; k++) {
            const nicstride_method_t m = (nicstride_method_t)k;
            const nicstride_path_t *path = &table[kind];

            for (uint64_t size = 1 * KIB; size <= 64 * KIB * KIB; size *= 2)
                for (int dir = NICSTRIDE_PUT; dir <= NICSTRIDE_GET; dir++) {
                    const nicstride_direction_t to = (nicstride_direction_t)dir;
                    const onic_layout_t small = vector(size, 64), large = vector(2 * size, 64);
                    const onic_layout_t fine = vector(size, 32);
                    const double cost = method_cost(m, to, &small, &small, path);

                    /* On a node there is no adapter, and across a network no single copy. */
                    if (isinf(cost))
                        continue;
                    UNIT_CHECK(cost > 0);
                    UNIT_CHECK(method_cost(m, to, &large, &large, path) > cost);
                    /* What was measured may say else: caches like some lengths. */
                    if (path->costs != NULL)
                        continue;
                    UNIT_CHECK(method_cost(m, to, &fine, &small, path) >= cost);
                    UNIT_CHECK(method_cost(m, to, &small, &fine, path) >= cost);
                }
        }
}
END_TEST

/* Across networks equations (1) and (2) of the paper, with their terms by hand. */
START_TEST(equations)
{
    const nicstride_path_t cost = {.link = {.block = 3,
                                            .line = 3,
                                            .page = 3,
                                            .message = 50,
                                            .fragment = 8192,
                                            .byte = 5,
                                            .grant = 1000,
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
                                            .reads = 16,
                                            .chunk = 16384,
                                            .growth = 1.5}};
    const onic_layout_t flat = vector(4096, 0), strided = vector(4096, 64),
                        many = vector(32768, 64);

#define COST(method, dir, origin, target)                                                          \
    method_cost(NICSTRIDE_METHOD_##method, NICSTRIDE_##dir, origin, target, &cost)
    ck_assert(COST(DIRECT, GET, &strided, &strided) == 0);
    /* There is no single copy. */
    ck_assert(isinf(COST(CMA, PUT, &flat, &flat)) && isinf(COST(SIEVE, GET, &flat, &flat)));
    ck_assert(COST(PACK, GET, &flat, &strided) == 50 + 64 * 3 + 4096 * 5);
    /* One chunk, whose bytes are moved; its last block is copied behind that (equation 9). A put
     * waits for its grant; what it packs meanwhile a get packs behind that. */
    ck_assert(COST(PIPELINE, PUT, &flat, &flat) ==
              50 + 1000 + (4096.0 / 16 - 200) + 10 + 4096.0 / 8 + 4096.0 / 16);
    ck_assert(COST(PIPELINE, GET, &flat, &flat) ==
              50 + 200 + (4096.0 / 16 - 200) + 10 + 4096.0 / 8 + 4096.0 / 16);
    /* Of one chunk nothing overlaps: it is gathered, then scattered. */
    ck_assert(COST(PIPELINE, PUT, &strided, &strided) ==
              COST(PIPELINE, PUT, &flat, &flat) + 2 * 64 * 3);
    /* Blocks on both sides are gathered and scattered: at the same time, but for a first message.
     */
    ck_assert(COST(PACK, PUT, &strided, &strided) == 50 + 2 * 64 * 3 + 4096 * 5);
    ck_assert(COST(PACK, PUT, &many, &many) ==
              50 + 8192 * 5 + 2 * 128 * 3 + fmax(24576.0 / 8, 24576.0 / 16 + 3 * 10 + 384 * 3));
    /* One request, behind whose moving its answer comes; one for each block, in lists of 8. */
    ck_assert(COST(RDMA, PUT, &flat, &flat) == 40 + 70 + 4096.0 / 8 + 2 * 100);
    ck_assert(COST(NIC, PUT, &flat, &strided) == 40 + 70 + 63 * 40 + 7 * 70 + 2 * 100);
    /* Pieces of the origin's side are in the gather lists of requests. */
    ck_assert(COST(NIC, PUT, &strided, &flat) == 40 + 70 + 15 * 40 + 48 * 20 + 70 + 2 * 100);
#undef COST
}
END_TEST

/* The window bounds writes and reads, each by its own number. */
START_TEST(windows)
{
    const nicstride_path_t cost = {.link = {.latency = 1000,
                                            .bnet = 1000,
                                            .request = 1,
                                            .doorbell = 1,
                                            .batch = 1000,
                                            .entry = 1,
                                            .entries = 1,
                                            .window = 16,
                                            .reads = 4}};
    const onic_layout_t flat = vector(4096, 0), strided = vector(4096, 64);

    ck_assert(method_cost(NICSTRIDE_METHOD_NIC, NICSTRIDE_PUT, &flat, &strided, &cost) ==
              2 + fmax(4096 / 1000.0, (64 / 16 - 1) * 2000.0) + 2000);
    ck_assert(method_cost(NICSTRIDE_METHOD_NIC, NICSTRIDE_GET, &flat, &strided, &cost) ==
              2 + (64 / 4 - 1) * 2000.0 + 2000);
}
END_TEST

/* On the node each way is linear in its own numbers: pieces of the side that has more of them;
 * sieving reads the extent. */
START_TEST(ways_of_the_node)
{
    static const struct {
        nicstride_method_t method;
        onic_way_t put, get;
    } ways[] = {{NICSTRIDE_METHOD_CMA, ONIC_WAY_cma_put, ONIC_WAY_cma_get},
                {NICSTRIDE_METHOD_SIEVE, ONIC_WAY_sieve, ONIC_WAY_sieve},
                {NICSTRIDE_METHOD_PACK, ONIC_WAY_pack_put, ONIC_WAY_pack_get},
                {NICSTRIDE_METHOD_PIPELINE, ONIC_WAY_pipeline_put, ONIC_WAY_pipeline_get}};
    static nicstride_path_t table[ONIC_KINDS];
    unit_random_t r = {unit_seed()};

    for (int n = 0; n < 2000; n++) {
        onic_links_t links;
        transfer_t t = any_transfer(&r);
        onic_layout_t l[2];

        any_numbers(&r, &links);
        nicstride_paths_set(table, &links);
        t.kind = (onic_kind_t)unit_below(&r, ONIC_DISTANCES);
        const nicstride_case_t c = case_of(&t, table, l);
        const uint64_t a = onic_layout_blocks(&l[0]), b = onic_layout_blocks(&l[1]);

        for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
            const onic_way_t way = t.dir == NICSTRIDE_GET ? ways[w].get : ways[w].put;
            const onic_cost_t *of = &links.costs[t.kind].of[way][t.many];
            const double bytes = ways[w].method == NICSTRIDE_METHOD_SIEVE
                                     ? (double)(l[1].ub - l[1].lb)
                                     : (double)t.size;
            const double pieces = (double)(a > b ? a : b);
            const double expected = naive_cost(of, pieces, (double)t.size / pieces, bytes);

            UNIT_CHECK(fabs(rows[ways[w].method]->cost(&c) - expected) <= 1e-9 * expected);
        }
        onic_layout_fini(&l[0]);
        onic_layout_fini(&l[1]);
    }
}
END_TEST

/* ---- a target that is away ------------------------------------------------------------------- */

/* Methods that need it lose to any that takes less than the wait, and to no other. */
START_TEST(away)
{
    static nicstride_path_t table[ONIC_KINDS];

    for (int p = NICSTRIDE_PRESENT; p < NICSTRIDE_PRESENCES; p++)
        for (int k = 0; k < 20; k++) {
            const onic_layout_t origin = vector(8 * KIB, 0), target = vector(8 * KIB, 8);
            onic_links_t links = onic_links_default("other");
            const double wait[] = {0, 20000, 1000000};
            const nicstride_case_t c = {.rows = rows,
                                        .dir = NICSTRIDE_PUT,
                                        .presence = (nicstride_presence_t)p,
                                        .origin = &origin,
                                        .target = &target,
                                        .reach = SAME_NODE};
            /* What single copy takes; messages take 1000. */
            const double copy = 200 * pow(2, k);

            links.node.wake = wait[1];
            links.node.absence = wait[2];
            set_way(&links, ONIC_WAY_pack_put, plain_cost(1000, 0, 0));
            set_way(&links, ONIC_WAY_cma_put, plain_cost(copy, 0, 0));
            nicstride_paths_set(table, &links);
            ck_assert_int_eq(plan_for(table, ONIC_NEAR, c),
                             copy < 1000 + wait[p] ? NICSTRIDE_METHOD_CMA : NICSTRIDE_METHOD_PACK);
        }
}
END_TEST

/* The pipeline's slots need the target, too; who cannot do without it waits. */
START_TEST(away_anyway)
{
    const onic_layout_t l = vector(1024 * KIB, 0);
    nicstride_case_t c = {.rows = rows,
                          .dir = NICSTRIDE_PUT,
                          .presence = NICSTRIDE_ABSENT,
                          .origin = &l,
                          .target = &l,
                          .reach = REACH_MESSAGE | REACH_SLOTS};

    ck_assert_int_eq(plan_for(own_table(), ONIC_NEAR, c), NICSTRIDE_METHOD_PIPELINE);
    c.reach |= REACH_COPY;
    ck_assert_int_eq(plan_for(own_table(), ONIC_NEAR, c), NICSTRIDE_METHOD_CMA);
    c.forced = NICSTRIDE_METHOD_PACK;
    ck_assert_int_eq(plan_for(own_table(), ONIC_NEAR, c), NICSTRIDE_METHOD_PACK);
    c.dir = NICSTRIDE_ACC;
    c.forced = NICSTRIDE_METHOD_SIEVE;
    c.reach = REACH_MESSAGE | REACH_COPY;
    ck_assert_int_eq(plan_for(own_table(), ONIC_NEAR, c), NICSTRIDE_METHOD_CMA);
}
END_TEST

/* ---- as text --------------------------------------------------------------------------------- */

static void write_table(const nicstride_path_t *table, nicstride_method_t forced, char *text,
                        size_t cap)
{
    FILE *to = fmemopen(text, cap, "w");

    ck_assert_ptr_nonnull(to);
    nicstride_plan_table(to, rows, table, forced);
    fclose(to);
    ck_assert_uint_lt(strlen(text) + 1, cap);
}

/* The table: a line for each case, in which stands what is used. */
START_TEST(printed)
{
    static const uint64_t sizes[] = {8, 4096, 65536, 1 << 20, 16 << 20};
    static nicstride_path_t table[ONIC_KINDS];
    static char text[65536];
    unit_random_t r = {unit_seed() + (uint64_t)_i};
    onic_links_t links;
    char *rest = text, *line;
    int lines = 0;

    any_numbers(&r, &links);
    nicstride_paths_set(table, &links);
    write_table(table, NICSTRIDE_METHOD_AUTO, text, sizeof(text));
    while ((line = strsep(&rest, "\n")) != NULL && *line != '\0') {
        const char *kind[] = {"near", "package", "far", "network", "adapter"};
        const char *comma = strchr(line, ',');
        char *words[16];
        int n = 0;

        if (lines++ == 0)
            continue; /* the heading */
        const nicstride_presence_t presence = comma != NULL && strncmp(comma, ", away", 6) == 0
                                                  ? NICSTRIDE_SERVED
                                                  : NICSTRIDE_PRESENT;
        nicstride_case_t c = {.rows = rows, .presence = presence};
        unsigned k = 0;

        while (strncmp(line + 2, kind[k], strlen(kind[k])) != 0)
            ck_assert_uint_lt(++k, ONIC_KINDS);
        c.many = comma == NULL && k < ONIC_DISTANCES;
        c.reach = k < ONIC_DISTANCES ? WITH_SLOTS : k == ONIC_NET ? FAR_AWAY : BY_ADAPTER;
        for (char *word; (word = strsep(&line, " ")) != NULL;)
            if (*word != '\0' && n < 16)
                words[n++] = word;
        ck_assert_int_ge(n, 8);
        char **cell = words + n - 7; /* direction, block, by size */

        c.dir = strcmp(cell[0], "get") == 0 ? NICSTRIDE_GET : NICSTRIDE_PUT;
        for (int s = 0; s < 5; s++) {
            const onic_layout_t origin = vector(sizes[s], 0),
                                target = vector(sizes[s], strtoull(cell[1], NULL, 10));

            c.origin = &origin;
            c.target = &target;
            ck_assert_str_eq(cell[2 + s], rows[plan_for(table, (onic_kind_t)k, c)]->name);
        }
    }
    /* Put and get; three of each distance, and the networks; blocks. */
    ck_assert_int_eq(lines, 1 + 2 * (3 * 3 + 2) * 6);
}
END_TEST

START_TEST(forced_table)
{
    static char text[65536];

    write_table(own_table(), NICSTRIDE_METHOD_PACK, text, sizeof(text));
    ck_assert_ptr_nonnull(strstr(text, " pack"));
    for (int m = NICSTRIDE_METHOD_DIRECT; m < NICSTRIDE_METHOD_LAST; m++)
        if (m != NICSTRIDE_METHOD_PACK)
            ck_assert_ptr_null(strstr(text, rows[m]->name));
}
END_TEST

/** `blocks` blocks of `block` bytes, one each `stride`. */
static onic_layout_t column(uint64_t blocks, uint64_t block, int64_t stride)
{
    onic_layout_t l;

    onic_layout_contig(&l, 0, block);
    onic_layout_repeat(&l, blocks, stride);
    return l;
}

/* Many short blocks, each in a line of its own, whatever form they have. */
START_TEST(columns)
{
    const onic_layout_t most = column(256, 16, 64), fewer = column(255, 16, 64);
    const onic_layout_t longer = column(256, 24, 64), whole_lines = column(4096, 64, 128);
    const onic_layout_t upwards = column(1024, 8, -8192), contiguous = vector(1 << 20, 0);
    onic_layout_t faces = column(16, 8, 144), list = irregular(300), short_list = irregular(200);

    onic_layout_repeat(&faces, 16, 18 * 144);
    ck_assert(nicstride_is_column(&most));
    ck_assert(nicstride_is_column(&upwards));
    ck_assert(nicstride_is_column(&faces));
    ck_assert(!nicstride_is_column(&fewer));
    ck_assert(!nicstride_is_column(&longer));
    ck_assert(!nicstride_is_column(&whole_lines));
    ck_assert(!nicstride_is_column(&contiguous));
    ck_assert(nicstride_is_column(&list));
    ck_assert(!nicstride_is_column(&short_list));
    for (int64_t stride = 16; stride <= 256; stride += 16) {
        const onic_layout_t apart = column(1024, 8, stride);

        ck_assert_int_eq(nicstride_is_column(&apart), stride >= ONIC_LINK_LINE);
    }
    onic_layout_fini(&list);
    onic_layout_fini(&short_list);
}
END_TEST

int main(void)
{
    return UNIT_RUN("plan", UNIT_ONCE(what_can_do_what), UNIT_ONCE(sparse),
                    UNIT_LOOP(cheapest_or_forced, 0, 2), UNIT_ONCE(by_shape), UNIT_ONCE(by_density),
                    UNIT_ONCE(distances_and_many), UNIT_ONCE(costs_grow), UNIT_ONCE(equations),
                    UNIT_ONCE(windows), UNIT_ONCE(ways_of_the_node), UNIT_ONCE(away),
                    UNIT_ONCE(away_anyway), UNIT_ONCE(columns), UNIT_LOOP(printed, 0, 20),
                    UNIT_ONCE(forced_table));
}
