/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The hybrid of the strided-RMA paper: the chooser over networks whose numbers are known, against
 * a simulation of what each method takes (link_sim.h), and against the paper's figures.
 */
#include <math.h>
#include <string.h>

#include "test/unit/link_sim.h"
#include "common/pipeline/core/chunks.h"
#include "test/unit/method_rows.h"
#include "test/unit/unit.h"

#define KIB 1024ull

#define REACH_ALL (REACH_MESSAGE | REACH_SLOTS | REACH_ADAPTER)

/** How long the paper's buffers are it does not say. */
#define PAPERS_BUFFER 8192.0

static const struct {
    const char *file;
    uint32_t reach;
} networks[] = {{"quadrics-elan4", REACH_ALL},
                {"infiniband-hdr", REACH_ALL},
                {"roce-100", REACH_ALL},
                {"slingshot-11", REACH_ALL},
                {"tcp-10g", REACH_MESSAGE},
                {"tcp-25g", REACH_MESSAGE},
                {NULL, REACH_ALL}};

#define N_NETWORKS ((int)(sizeof(networks) / sizeof(networks[0])))

static onic_kind_t kind_of(int i)
{
    return networks[i].reach == REACH_MESSAGE ? ONIC_NET : ONIC_ADAPTER;
}

/** The numbers of a file, or with those that hold without one. */
static void load(int i, nicstride_path_t table[ONIC_KINDS])
{
    static onic_links_t links;
    char path[512];

    links = onic_links_default("other");
    if (networks[i].file != NULL) {
        snprintf(path, sizeof(path), SHARE "/links/%s.txt", networks[i].file);
        ck_assert_msg(onic_links_load(&links, path) == 0, "%s", path);
    }
    nicstride_paths_set(table, &links);
}

/** What equation (1) says of transfers one by one on the paper's machine: nanoseconds for the first
 *  piece, each other one, and a byte; of the order of such hosts, as in quadrics-elan4.txt. */
static const struct {
    double start, piece, byte;
} one_by_one = {6500, 2500, 1.1};

/** A transfer of the sweep. */
typedef struct transfer {
    onic_layout_t origin, target;
    nicstride_case_t plan;
    sim_case_t sim;
} transfer_t;

/** `size` bytes in blocks of `block`, so far apart; all in one for a distance of 0. */
static onic_layout_t shape(uint64_t size, uint64_t block, uint64_t apart)
{
    onic_layout_t l;

    if (apart == 0 || block >= size) {
        UNIT_CHECK(onic_layout_contig(&l, 0, size) == ONIC_LAYOUT_OK);
        return l;
    }
    UNIT_CHECK(onic_layout_contig(&l, 0, block) == ONIC_LAYOUT_OK);
    UNIT_CHECK(onic_layout_repeat(&l, size / block, (int64_t)(block + apart)) == ONIC_LAYOUT_OK);
    return l;
}

static void describe(transfer_t *t, const nicstride_path_t *path, uint32_t reach,
                     nicstride_direction_t dir)
{
    t->plan = (nicstride_case_t){.rows = rows,
                                 .dir = dir,
                                 .origin = &t->origin,
                                 .target = &t->target,
                                 .reach = reach,
                                 .path = path};
    t->sim = (sim_case_t){.link = &path->link,
                          .get = dir == NICSTRIDE_GET,
                          .bytes = t->target.size,
                          .slot = ONIC_PIPELINE_RX_BUFFER,
                          .piece = one_by_one.piece,
                          .here = onic_layout_blocks(&t->origin),
                          .there = onic_layout_blocks(&t->target),
                          .gather_here = onic_link_gather(&path->link, &t->origin),
                          .gather_there = onic_link_gather(&path->link, &t->target)};
}

static double simulate(const sim_case_t *c, unsigned method)
{
    switch (method) {
    case NICSTRIDE_METHOD_PACK:
        return sim_pack(c);
    case NICSTRIDE_METHOD_PIPELINE:
        return sim_pipeline(c);
    default:
        return sim_nic(c);
    }
}

/** Is the chosen method never more than 25 % dearer than the best? By the simulation, and by the
 *  model. */
static void compare(const transfer_t *t, int i, unsigned used[])
{
    const char *network = networks[i].file != NULL ? networks[i].file : "default";
    const nicstride_method_t chosen = nicstride_plan(&t->plan);
    const double takes = simulate(&t->sim, chosen), costs = rows[chosen]->cost(&t->plan);

    used[chosen]++;
    for (unsigned m = NICSTRIDE_METHOD_PACK; m < NICSTRIDE_METHOD_LAST; m++) {
        if (m == chosen || !nicstride_fits(&t->plan, m) || !nicstride_reaches(&t->plan, m))
            continue;
        const double other = simulate(&t->sim, m), model = rows[m]->cost(&t->plan);

        ck_assert_msg(takes <= 1.25 * other && costs <= 1.25 * model,
                      "%s, %d: %llu bytes in %llu and %llu blocks: %s %.0f (by the model %.0f), "
                      "%s %.0f (%.0f)",
                      network, t->plan.dir, (unsigned long long)t->sim.bytes,
                      (unsigned long long)t->sim.here, (unsigned long long)t->sim.there,
                      rows[chosen]->name, takes, costs, rows[m]->name, other, model);
    }
}

/** All shapes of one direction over one network; which sides are strided, and how far. */
START_TEST(sweep)
{
    static nicstride_path_t table[ONIC_KINDS];
    unsigned used[NICSTRIDE_METHODS_MAX] = {0};

    load(_i, table);
    for (uint64_t size = 64; size <= 16384 * KIB; size *= 4)
        for (uint64_t block = 8; block <= 1024 * KIB && block <= size; block *= 2)
            for (int k = 0; k < 3 * 3 * 2; k++) {
                const uint64_t apart = k / 9 == 0 ? block : 4096;
                transfer_t t = {.origin = shape(size, block, k / 3 % 3 == 0 ? 0 : apart),
                                .target = shape(size, block, k / 3 % 3 == 1 ? 0 : apart)};

                describe(&t, &table[kind_of(_i)], networks[_i].reach,
                         (nicstride_direction_t)(k % 3));
                compare(&t, _i, used);
            }
    /* All that there is has its place. */
    ck_assert_uint_gt(used[NICSTRIDE_METHOD_PACK], 200);
    if (networks[_i].reach == REACH_ALL) {
        ck_assert_uint_gt(used[NICSTRIDE_METHOD_PIPELINE], 200);
        ck_assert_uint_gt(used[NICSTRIDE_METHOD_NIC], 200);
        ck_assert_uint_gt(used[NICSTRIDE_METHOD_RDMA], 50);
    }
}
END_TEST

/* ---- the paper's figures --------------------------------------------------------------------- */

/* The text says what they show; the curves themselves are not at hand. */

/** The paper's two methods, and what each is compared with. */
typedef struct paper {
    double nic, hbna;             /**< by the model */
    double sim_nic, sim_hbna;     /**< by the simulation */
    double one_by_one, one_chunk; /**< likewise: without the adapter's list, without a pipeline */
    double separately;            /**< the former by equation (1) */
} paper_t;

/** Of the paper's machine. */
static const nicstride_path_t *quadrics(void)
{
    static nicstride_path_t table[ONIC_KINDS];

    if (table[ONIC_ADAPTER].link.bnet == 0)
        load(0, table);
    return &table[ONIC_ADAPTER];
}

/** A put of a section of a matrix of doubles, 2000 of them in a row, to a process whose server
 *  thread sleeps (section 5.1). `compared`: with what each method is compared with, too. */
static paper_t put_section(uint64_t rows_of, uint64_t doubles, bool compared)
{
    const nicstride_path_t *path = quadrics();
    transfer_t t = {.origin = shape(rows_of * doubles * 8, doubles * 8, (2000 - doubles) * 8),
                    .target = shape(rows_of * doubles * 8, doubles * 8, (2000 - doubles) * 8)};

    describe(&t, path, REACH_ALL, NICSTRIDE_PUT);
    t.sim.slot = PAPERS_BUFFER;
    return (paper_t){.nic = nicstride_nic.cost(&t.plan),
                     .hbna = nicstride_pipeline_cost(&t.plan, PAPERS_BUFFER, ONIC_SCHEDULE_BEST) +
                             path->link.wake,
                     .sim_nic = sim_nic(&t.sim),
                     .sim_hbna = sim_pipeline(&t.sim) + path->link.wake,
                     .one_by_one = compared ? sim_one_by_one(&t.sim) : 0,
                     .separately = one_by_one.start + (double)(rows_of - 1) * one_by_one.piece +
                                   (double)(rows_of * doubles * 8) * one_by_one.byte,
                     .one_chunk = compared ? sim_one_chunk(&t.sim) + path->link.wake : 0};
}

/** Bytes of a square section. */
static double square(uint64_t n)
{
    return (double)(8 * n * n);
}

/** The first square from `n` on, but for two percent, for which the host-based method is the
 * faster, or is not. */
static uint64_t change(uint64_t n, bool hbna, bool by_model)
{
    for (; n < 2000; n += 1 + n / 64) {
        const paper_t p = put_section(n, n, false);

        if ((by_model ? p.hbna < p.nic : p.sim_hbna < p.sim_nic) == hbna)
            break;
    }
    return n;
}

/* Figure 6, square sections: the host-based method is the best "for some message range", which ends
 * where rows are long enough that the adapter gets the bandwidth: "over 100 KB". */
START_TEST(figure_6)
{
    const double peak = quadrics()->link.bnet;

    for (int by_model = 0; by_model < 2; by_model++) {
        const uint64_t from = change(8, true, by_model != 0),
                       to = change(from, false, by_model != 0);

        ck_assert(square(from) > 1024 && square(from) < 8192);
        ck_assert(square(to) > 32768 && square(to) < 100000);
        ck_assert_uint_ge(change(112, true, by_model != 0), 2000); /* 100 KB */
    }
    for (uint64_t n = 16; n < 1000; n += 1 + n / 64) {
        const paper_t p = put_section(n, n, false);

        if (square(n) < 50000)
            ck_assert(square(n) / p.sim_nic < 0.8 * peak && square(n) / p.nic < 0.8 * peak);
        if (square(n) > 120000)
            ck_assert(square(n) / p.sim_nic > 0.9 * peak && square(n) / p.nic > 0.9 * peak);
    }
}
END_TEST

/* Figure 7: the adapter's list is never slower than pieces by themselves, and much faster while
 * these are short; the pipeline begins to gain with the second chunk, and hides most of the copying
 * of long transfers. */
START_TEST(figure_7)
{
    for (uint64_t n = 8; n < 1000; n += 4) {
        const paper_t p = put_section(n, n, true);

        ck_assert(p.sim_nic <= p.one_by_one * (1 + 1e-9));
        /* Equation (1) lets nothing overlap. */
        ck_assert(p.one_by_one < 1.05 * p.separately && p.one_by_one > 0.45 * p.separately);
        if (square(n) > 2048 && square(n) < 65536)
            ck_assert(p.one_by_one > 1.5 * p.sim_nic);
        if (square(n) > 1 << 21)
            ck_assert(p.one_by_one < 1.1 * p.sim_nic);
        if (square(n) <= 4096)
            ck_assert(fabs(p.one_chunk - p.sim_hbna) < 0.01 * p.one_chunk);
        if (square(n) > 20000)
            ck_assert(p.one_chunk > 1.1 * p.sim_hbna);
        if (square(n) > 1 << 20)
            ck_assert(p.one_chunk > 1.6 * p.sim_hbna);
    }
}
END_TEST

/* Sections 6.3 and 6.4: many short segments go better by the host; a matrix of 2000 is better
 * multiplied by the adapter on few processes, by the host on many. */
START_TEST(applications)
{
    const paper_t bt = put_section(500, 5, false), few = put_section(1000, 1000, false),
                  many = put_section(50, 50, false);

    ck_assert(bt.hbna < 0.8 * bt.nic && bt.sim_hbna < 0.8 * bt.sim_nic);
    ck_assert(few.nic < few.hbna && few.sim_nic < few.sim_hbna);
    ck_assert(many.hbna < many.nic && many.sim_hbna < many.sim_nic);
}
END_TEST

int main(void)
{
    return UNIT_RUN("hybrid", UNIT_LOOP(sweep, 0, N_NETWORKS), UNIT_ONCE(figure_6),
                    UNIT_ONCE(figure_7), UNIT_ONCE(applications));
}
