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

/** `blocks` blocks of `block` bytes, one each `stride`. */
static onic_layout_t column(uint64_t blocks, uint64_t block, int64_t stride)
{
    onic_layout_t l;

    onic_layout_contig(&l, 0, block);
    onic_layout_repeat(&l, blocks, stride);
    return l;
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

    return nicstride_fits(&c, m) && nicstride_reaches(&c, m);
}

static double method_cost(nicstride_method_t m, nicstride_direction_t dir,
                          const onic_layout_t *origin, const onic_layout_t *target,
                          const nicstride_path_t *path)
{
    const nicstride_case_t c = {
        .rows = rows, .dir = dir, .origin = origin, .target = target, .path = path};

    return rows[m]->cost(&c);
}

/** A transfer to some peer, between layouts that are kept in `l`, to be freed. Blocks and sizes are
 *  powers of two times the same small number: all are whole blocks of both sides. */
static nicstride_case_t any_case(unit_random_t *r, const nicstride_path_t path[ONIC_KINDS],
                                 onic_layout_t l[2])
{
    const uint64_t unit = 1 + 2 * unit_below(r, 4);
    const uint64_t block = unit_once_in(r, 2) ? 0 : unit << unit_below(r, 18);

    if (unit_once_in(r, 10))
        l[1] = irregular(3 + (unsigned)unit_below(r, 300));
    else
        l[1] = spaced(unit << unit_below(r, 24), block, unit_below(r, 5 * block + 1));
    l[0] = vector(l[1].size, l[1].nruns > 0 || unit_once_in(r, 2) ? 0 : unit << unit_below(r, 18));
    return (nicstride_case_t){.rows = rows,
                              .dir = (nicstride_direction_t)unit_below(r, NICSTRIDE_DIRECTIONS),
                              .presence = (nicstride_presence_t)unit_below(r, NICSTRIDE_PRESENCES),
                              .many = unit_once_in(r, 2),
                              .reach = REACH_MESSAGE | (unit_once_in(r, 4) ? REACH_DIRECT : 0) |
                                       (unit_once_in(r, 2) ? REACH_COPY : 0) |
                                       (unit_once_in(r, 2) ? REACH_SLOTS : 0) |
                                       (unit_once_in(r, 2) ? REACH_ADAPTER : 0),
                              .origin = &l[0],
                              .target = &l[1],
                              .path = &path[unit_below(r, ONIC_KINDS)]};
}

/* ---- what can do what ------------------------------------------------------------------------ */

START_TEST(what_can_do_what)
{
    const onic_layout_t flat = vector(4 * KIB, 0), strided = vector(4 * KIB, 64),
                        longer = vector(64 * KIB, 64),
                        short_one = vector(ONIC_PIPELINE_BLOCK - 64, 64), empty = vector(0, 0);
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
    ck_assert(!CAN(PIPELINE, PUT, &list, &short_one, WITH_SLOTS)); /* below one: nothing overlaps */
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
    /* What is too sparse costs more to read than it is worth; however long its blocks are. */
    for (uint64_t block = 1; block <= 4096; block *= 4)
        for (uint64_t apart = 2; apart <= 10; apart++) {
            const onic_layout_t l = column(1000, block, (int64_t)(apart * block));

            /* The last block has no gap behind it. */
            ck_assert_int_eq(CAN(SIEVE, GET, &l, &l, SAME_NODE),
                             (999 * apart + 1) * block / NICSTRIDE_SIEVE_SPARSE <= 1000 * block);
        }
#undef CAN
    onic_layout_fini(&list);
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
static nicstride_method_t naive_plan(const nicstride_case_t *c)
{
    nicstride_method_t best = NICSTRIDE_METHOD_PACK;
    double least = transfer_cost(c, best);

    for (unsigned m = NICSTRIDE_METHOD_DIRECT; m < NICSTRIDE_METHOD_LAST; m++) {
        const double cost = transfer_cost(c, m);

        /* Lists are not got through slots of the node. */
        if (m == NICSTRIDE_METHOD_PIPELINE && c->target->nruns > 0 && c->dir == NICSTRIDE_GET &&
            c->path->costs != NULL)
            continue;
        if (nicstride_fits(c, m) && nicstride_reaches(c, m) &&
            (cost < least || (cost == least && m < best))) {
            least = cost;
            best = (nicstride_method_t)m;
        }
    }
    return best;
}

/* Whatever the numbers are; and what is forced, where it can do it. */
START_TEST(cheapest_or_forced)
{
    static nicstride_path_t path[ONIC_KINDS];
    unit_random_t r = {unit_seed() + (uint64_t)_i};
    unsigned chosen[NICSTRIDE_METHODS_MAX] = {0}, by_force = 0;
    onic_links_t links;

    for (int n = 0; n < 50000; n++) {
        if (n % 1000 == 0) {
            any_numbers(&r, &links);
            nicstride_paths_set(path, &links);
        }
        onic_layout_t l[2];
        nicstride_case_t c = any_case(&r, path, l);
        const nicstride_method_t m = nicstride_plan(&c);

        UNIT_CHECK(m == naive_plan(&c));
        c.forced = (nicstride_method_t)unit_below(&r, NICSTRIDE_METHODS_MAX + 2);
        const nicstride_method_t f = nicstride_plan(&c);
        UNIT_CHECK(
            f == (nicstride_fits(&c, c.forced) && nicstride_reaches(&c, c.forced) ? c.forced : m));
        chosen[m]++;
        by_force += f != m;
        onic_layout_fini(&l[0]);
        onic_layout_fini(&l[1]);
    }
    for (int m = NICSTRIDE_METHOD_DIRECT; m < NICSTRIDE_METHOD_LAST; m++)
        ck_assert_msg(chosen[m] > 50, "%s: %u", rows[m]->name, chosen[m]);
    ck_assert_uint_gt(by_force, 1000);
}
END_TEST

/* ---- costs ----------------------------------------------------------------------------------- */

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
    static nicstride_path_t path[ONIC_KINDS];
    unit_random_t r = {unit_seed()};

    for (int n = 0; n < 2000; n++) {
        onic_links_t links;
        onic_layout_t l[2];

        any_numbers(&r, &links);
        nicstride_paths_set(path, &links);
        nicstride_case_t c = any_case(&r, path, l);
        const onic_kind_t kind = (onic_kind_t)unit_below(&r, ONIC_DISTANCES);
        const uint64_t a = onic_layout_blocks(&l[0]), b = onic_layout_blocks(&l[1]);

        c.path = &path[kind];
        for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
            const onic_way_t way = c.dir == NICSTRIDE_GET ? ways[w].get : ways[w].put;
            const onic_cost_t *of = &links.costs[kind].of[way][c.many];
            const double bytes = ways[w].method == NICSTRIDE_METHOD_SIEVE
                                     ? (double)(l[1].ub - l[1].lb)
                                     : (double)l[1].size;
            const double pieces = (double)(a > b ? a : b);
            const double expected = naive_cost(of, pieces, (double)l[1].size / pieces, bytes);

            UNIT_CHECK(fabs(rows[ways[w].method]->cost(&c) - expected) <= 1e-9 * expected);
        }
        onic_layout_fini(&l[0]);
        onic_layout_fini(&l[1]);
    }
}
END_TEST

/* ---- as text --------------------------------------------------------------------------------- */

/* What is forced is all that the table shows. check_plan_tables has tables as a whole. */
START_TEST(forced_table)
{
    const onic_links_t links = onic_links_default("other");
    static nicstride_path_t path[ONIC_KINDS];
    static char text[65536];
    FILE *to = fmemopen(text, sizeof(text), "w");

    ck_assert_ptr_nonnull(to);
    nicstride_paths_set(path, &links);
    nicstride_plan_table(to, rows, path, NICSTRIDE_METHOD_PACK);
    ck_assert_int_eq(fclose(to), 0);
    ck_assert_ptr_nonnull(strstr(text, " pack"));
    for (int m = NICSTRIDE_METHOD_DIRECT; m < NICSTRIDE_METHOD_LAST; m++)
        if (m != NICSTRIDE_METHOD_PACK)
            ck_assert_ptr_null(strstr(text, rows[m]->name));
}
END_TEST

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
    return UNIT_RUN("plan", UNIT_ONCE(what_can_do_what), UNIT_LOOP(cheapest_or_forced, 0, 2),
                    UNIT_ONCE(equations), UNIT_ONCE(windows), UNIT_ONCE(ways_of_the_node),
                    UNIT_ONCE(columns), UNIT_ONCE(forced_table));
}
