/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The numbers that choices are made from: as text; those that are built in; of blocks far
 *  and near. */
#include "common/model/link.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "test/unit/cost_of.h"
#include "test/unit/unit.h"

#define N_NUMBERS (sizeof(onic_link_t) / sizeof(double))
#define N_COSTS   (sizeof(onic_costs_t) * ONIC_DISTANCES / (sizeof(double)))

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

/* ---- as text --------------------------------------------------------------------------------- */

/* All or nothing, and what is wrong is named with its line. */
START_TEST(bad_texts)
{
    static const struct {
        const char *text;
        int line;
    } bad[] = {{"", 1},
               {"# nothing\n\n \t\n", 4},
               {"gap", 1},
               {"gap=", 1},
               {"gap=x", 1},
               {"gap=1,", 1},
               {"gap=1;", 1},
               {"gap=1,byte", 1},
               {",gap=1", 1},
               {"Gap=1", 1},
               {"ga=1", 1},
               {"gaps=1", 1},
               {"gap=-1", 1},
               {"gap=0", 1},
               {"gap=inf", 1},
               {"gap=nan", 1},
               {"gap=1e999", 1},
               {"gap=1=2", 1},
               {"gap=1 2", 1},
               {"gap=1, x = 2 ", 1},
               {"gap=1e4,byte=1,byte=", 1},
               {"call=3", 1},
               {"gap==1", 1},
               {"a_name_that_is_longer_than_all_names_that_there_are=1", 1},
               {"node", 1},
               {"node gap=1\n", 1},
               {"node:\n", 1},
               {"\n\nhost: gap=1\n", 3},
               {": gap=1", 1},
               {"node: gap=1\nnet: ga=7\n", 2},
               {"node: gap=1\n# x\nnet: page=7,gap=-2 # y\n", 3},
               {"node: gap=1, \n", 1},
               {"node: gap=1 # , gap=\nnet: gap=", 2},
               /* ways */
               {"near:", 1},
               {"near: sieve", 1},
               {"near: ,sieve=1/2/3/1/1/1/1:4/5/6/1/1/1/1", 1},
               {"near: sieve=1/2/3/1/1/1/1:4/5/6/1/1/1/1,", 1},
               {"near: sieve=1/2/3/1/1/1/1:4/5/6/1/1/1/1;", 1},
               {"near: sieve=1/2/3/1/1/1/1:4/5/6/1/1/1/1/7", 1},
               {"near: sieve=1/2/3/1/1/1/1:4/5/6/1/1/1/1:7/8/9/1/1/1/1", 1},
               {"near: siev=1/2/3/1/1/1/1:4/5/6/1/1/1/1", 1},
               {"near: sieves=1/2/3/1/1/1/1:4/5/6/1/1/1/1", 1},
               {"near: sieve=1/2/3/1/1/1:4/5/6/1/1/1/1", 1},
               {"near: sieve=1/2/3/1/1/1/1:4/5/6/1/1/1", 1},
               {"near: sieve=1/2/3/1:1/1/1/4/5/6/1/1/1/1", 1},
               {"near: sieve=1:2/3/1/1/1/1:4/5/6/1/1/1/1", 1},
               {"near: sieve=1/2/3/1/1/1/1/4/5/6/1/1/1/1", 1},
               {"near: sieve=1/2/3/1/1/1/1:4/5,6/1/1/1/1", 1},
               {"near: sieve=/2/3/1/1/1/1:4/5/6/1/1/1/1", 1},
               {"near: sieve=1/-2/3/1/1/1/1:4/5/6/1/1/1/1", 1},
               {"near: sieve=1/2/inf/1/1/1/1:4/5/6/1/1/1/1", 1},
               {"near: sieve=1/2/3/1/1/1/1:4/nan/6/1/1/1/1", 1},
               {"near: sieve=1/2/3/1/1/1/1:4/5/6/1/1/1/x", 1},
               {"near: sieve=1/2/3/1/1/1/1:4/5/6/1/1/1 2/1", 1},
               {"near: gap=1", 1},
               {"near: gap=1/2/3/1/1/1/1:4/5/6/1/1/1/1", 1},
               {"near sieve=1/2/3/1/1/1/1:4/5/6/1/1/1/1", 1},
               {"nears: sieve=1/2/3/1/1/1/1:4/5/6/1/1/1/1", 1},
               {"net: sieve=1/2/3/1/1/1/1:4/5/6/1/1/1/1", 1},
               {"near: sieve=1/2/3/1/1/1/1:4/5/6/1/1/1/1\nfar: "
                "copy=1/2/3/1/1/1/1:4/5/6/1/1/1/1,pipeline=1",
                2}};
    const onic_links_t d = onic_links_default("other");
    onic_links_t links = d;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const int line = onic_links_read(&links, bad[i].text);
        ck_assert_msg(line == bad[i].line, "line %d of %s", line, bad[i].text);
        ck_assert(memcmp(&links, &d, sizeof(d)) == 0);
    }
}
END_TEST

static bool is_cost(const onic_cost_t *c, double start, double byte, double piece)
{
    return c->start == start && c->byte == byte && c->beyond == 2 * byte && c->piece[0] == piece &&
           c->piece[1] == 2 * piece && c->piece[2] == 3 * piece && c->piece[3] == 4 * piece;
}

START_TEST(good_texts)
{
    const onic_links_t d = onic_links_default("other");
    onic_links_t links = d;

    ck_assert_int_eq(onic_links_read(&links, "gap=12,block=0.25,bnet=1e2"), 0);
    ck_assert(links.node.gap == 12 && links.node.block == 0.25 && links.node.bnet == 100);
    ck_assert(links.node.message == d.node.message && links.node.line == d.node.line);
    ck_assert(memcmp(&links.net, &d.net, sizeof(d.net)) == 0);
    ck_assert(memcmp(&links.costs, &d.costs, sizeof(d.costs)) == 0);
    ck_assert_int_eq(onic_links_read(&links, "# of this machine\r\n"
                                             " net :message = 9000 , byte=.5\t# slow\r\n"
                                             "\n"
                                             "node:gap=1\n"
                                             "net: byte=0.25\n"
                                             "adapter: request=7"),
                     0);
    ck_assert(links.net.message == 9000 && links.net.byte == 0.25 && links.node.gap == 1);
    ck_assert(links.net.gap == d.net.gap && links.node.byte == d.node.byte);
    ck_assert(links.adapter.request == 7 && links.net.request == d.net.request);
}
END_TEST

START_TEST(good_costs)
{
    const onic_links_t d = onic_links_default("other");
    onic_links_t links = d;

    ck_assert_int_eq(
        onic_links_read(&links, "near: pack_put=700/0.1/0.2/1.5/3/4.5/6:300/0.05/0.1/1/2/3/4"), 0);
    ck_assert(is_cost(&links.costs[ONIC_NEAR].of[ONIC_WAY_pack_put][0], 700, 0.1, 1.5));
    ck_assert(is_cost(&links.costs[ONIC_NEAR].of[ONIC_WAY_pack_put][1], 300, 0.05, 1));
    /* Nothing else. */
    links.costs[ONIC_NEAR].of[ONIC_WAY_pack_put][0] = d.costs[ONIC_NEAR].of[ONIC_WAY_pack_put][0];
    links.costs[ONIC_NEAR].of[ONIC_WAY_pack_put][1] = d.costs[ONIC_NEAR].of[ONIC_WAY_pack_put][1];
    ck_assert(memcmp(&links, &d, sizeof(d)) == 0);
    ck_assert_int_eq(
        onic_links_read(
            &links, " far : cma_get = 1 / 2 / 4 / 3 / 6 / 9 / 12 : 4 / 5 / 10 / 6 / 12 / 18 / 24 , "
                    "stream=7/8/16/9/18/27/36:10/11/22/12/24/36/48 # 13\r\n"
                    "far:copy=0/0/0/0/0/0/0:0/0/0/0/0/0/0\n"
                    "gap=5\n"
                    "far: cma_put=1e1/2e0/3e-1/1/1/1/1:4/5/6/1/1/1/1\n"
                    "far:cma_put=7/8/16/9/18/27/36:10/11/22/12/24/36/48"),
        0);
    ck_assert(is_cost(&links.costs[ONIC_FAR].of[ONIC_WAY_cma_get][0], 1, 2, 3));
    ck_assert(is_cost(&links.costs[ONIC_FAR].of[ONIC_WAY_cma_get][1], 4, 5, 6));
    ck_assert(is_cost(&links.costs[ONIC_FAR].of[ONIC_WAY_stream][0], 7, 8, 9));
    ck_assert(is_cost(&links.costs[ONIC_FAR].of[ONIC_WAY_stream][1], 10, 11, 12));
    ck_assert(is_cost(&links.costs[ONIC_FAR].of[ONIC_WAY_copy][0], 0, 0, 0));
    ck_assert(is_cost(&links.costs[ONIC_FAR].of[ONIC_WAY_cma_put][0], 7, 8, 9));
    ck_assert(links.node.gap == 5);
    ck_assert(memcmp(&links.costs[ONIC_NEAR], &d.costs[ONIC_NEAR], sizeof(d.costs[0])) == 0);
}
END_TEST

/* Lines as long as they may be, and one longer; what follows a # does not count. */
START_TEST(long_lines)
{
    onic_links_t links = onic_links_default("other");
    char text[4096];

    memset(text, ' ', sizeof(text));
    memcpy(text, "gap=5", 5);
    memset(text + 2047, 'x', 1000);
    text[2047] = '#';
    text[3047] = '\0';
    ck_assert_int_eq(onic_links_read(&links, text), 0);
    ck_assert(links.node.gap == 5);
    memcpy(text, "gap=6", 5);
    text[2047] = ' ';
    text[2048] = '#';
    ck_assert_int_eq(onic_links_read(&links, text), 1);
    ck_assert(links.node.gap == 5);
}
END_TEST

/* No more is written than there is room for. */
START_TEST(short_room)
{
    const onic_links_t d = onic_links_default("other");
    char text[ONIC_LINKS_TEXT_MAX], part[ONIC_LINKS_TEXT_MAX];

    onic_links_write(&d, text, sizeof(text));
    for (size_t cap = 1; cap < strlen(text) + 2; cap++) {
        memset(part, 'x', sizeof(part));
        onic_links_write(&d, part, cap);
        UNIT_CHECK(part[cap] == 'x' &&
                   strlen(part) == (cap - 1 < strlen(text) ? cap - 1 : strlen(text)));
        UNIT_CHECK(memcmp(part, text, strlen(part)) == 0);
    }
}
END_TEST

/** To four digits. */
static double any_number(unit_random_t *r)
{
    return (double)(1000 + unit_below(r, 9000)) * pow(10, (double)unit_below(r, 9) - 6);
}

static void scramble(unit_random_t *r, onic_link_t *link)
{
    for (size_t k = 0; k < N_NUMBERS; k++)
        ((double *)link)[k] = any_number(r);
}

static void scramble_all(unit_random_t *r, onic_links_t *links)
{
    double *cost = (double *)links->costs;

    scramble(r, &links->node);
    scramble(r, &links->net);
    scramble(r, &links->adapter);
    for (size_t k = 0; k < N_COSTS; k++)
        cost[k] = unit_once_in(r, 10) ? 0 : any_number(r);
}

static bool about(const onic_links_t *a, const onic_links_t *b)
{
    for (size_t k = 0; k < sizeof(*a) / sizeof(double); k++)
        if (!near(((const double *)a)[k], ((const double *)b)[k]))
            return false;
    return true;
}

/* What was written can be read again, from a string and from a file. */
START_TEST(saved)
{
    unit_random_t r = {unit_seed()};
    char text[ONIC_LINKS_TEXT_MAX], path[] = "check_model_link.XXXXXX";
    onic_links_t links, again = onic_links_default("other");
    const int fd = mkstemp(path);
    int lines = 0;

    ck_assert_int_ge(fd, 0);
    for (int i = 0; i < 1000; i++) {
        scramble_all(&r, &links);
        /* The longest numbers that there are have room. */
        for (size_t k = 0; k < sizeof(links) / sizeof(double) && i == 0; k++)
            ((double *)&links)[k] = 1.234e-300;
        onic_links_write(&links, text, sizeof(text));
        UNIT_CHECK(strlen(text) < sizeof(text) - 1);
        UNIT_CHECK(onic_links_read(&again, text) == 0);
        UNIT_CHECK(about(&links, &again));
    }
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    ck_assert(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    again = onic_links_default("other");
    ck_assert_int_eq(onic_links_load(&again, path), 0);
    ck_assert(about(&links, &again));
    ck_assert(write(fd, "node: gap=no\n", 13) == 13);
    ck_assert_int_eq(onic_links_load(&again, path), lines + 1);
    ck_assert(write(fd, "", 1) == 1);
    ck_assert_int_eq(onic_links_load(&again, path), -EILSEQ);
    ck_assert_int_eq(ftruncate(fd, 65536), 0);
    ck_assert_int_eq(onic_links_load(&again, path), -EFBIG);
    close(fd);
    unlink(path);
    ck_assert_int_eq(onic_links_load(&again, path), -ENOENT);
    ck_assert_int_eq(onic_links_load(&again, "/"), -EISDIR);
    ck_assert(about(&links, &again));
}
END_TEST

/* ---- those that are built in ----------------------------------------------------------------- */

static const char *const processors[] = {"other", "xeon", "zen3", "zen4", "zen5"};

#define N_PROCESSORS (sizeof(processors) / sizeof(processors[0]))

static bool is_built_in(const char *name)
{
    for (size_t i = 0; i < N_PROCESSORS; i++)
        if (strcmp(name, processors[i]) == 0)
            return true;
    return false;
}

/* Each is what its file says, which leaves out no way. */
START_TEST(built_in)
{
    const onic_links_t links = onic_links_default(processors[_i]);
    onic_links_t file;
    char path[512];

    memset(&file, 0, sizeof(file));
    snprintf(path, sizeof(path), SHARE "/processors/%s.txt", processors[_i]);
    ck_assert_int_eq(onic_links_load(&file, path), 0);
    ck_assert(memcmp(&links.costs, &file.costs, sizeof(file.costs)) == 0);
    for (size_t w = 0; w < (size_t)ONIC_DISTANCES * ONIC_N_WAYS * 2; w++) {
        const onic_cost_t *c = &links.costs[0].of[0][0] + w;

        ck_assert_msg(c->start + c->byte > 0, "%s: cost %zu", processors[_i], w);
    }
    ck_assert(links.node.message == 700 && links.net.message == 10000 &&
              links.adapter.message == 4000 && links.node.reads == 16);
}
END_TEST

START_TEST(unknown_processors)
{
    const onic_links_t other = onic_links_default("other"), unknown = onic_links_default("vax"),
                       none = onic_links_default("");

    ck_assert(memcmp(&other, &unknown, sizeof(other)) == 0);
    ck_assert(memcmp(&other, &none, sizeof(other)) == 0);
}
END_TEST

/* What numbers rest on is said of each, and of none that they are measured which were not. */
START_TEST(bases)
{
    for (size_t i = 0; i < N_PROCESSORS; i++) {
        const char *basis = onic_links_basis(processors[i]);
        const char *expected = "derived from other measurements, not measured on such a processor";

        if (strcmp(processors[i], "zen4") == 0)
            expected = "measured on such a processor";
        if (strcmp(processors[i], "other") == 0)
            expected = "of the order of other processors, not measured on such a one";
        ck_assert_str_eq(basis, expected);
    }
    ck_assert_str_eq(onic_links_basis("vax"), onic_links_basis("other"));
}
END_TEST

START_TEST(processor_names)
{
    static const struct {
        const char *vendor;
        int family;
        const char *name;
        int models[12]; /**< first and last ones, and some that are sold; -1: no more */
    } cpus[] = {
        /* Milan, Chagall; Vermeer, Rembrandt, Cezanne */
        {"AuthenticAMD", 25, "zen3", {0x00, 0x01, 0x08, 0x0f, 0x20, 0x21, 0x44, 0x50, 0x5f, -1}},
        /* Genoa, Storm Peak; Raphael, Phoenix, Bergamo */
        {"AuthenticAMD", 25, "zen4", {0x10, 0x11, 0x18, 0x1f, 0x60, 0x61, 0x74, 0xa0, 0xaf, -1}},
        {"AuthenticAMD", 25, "other", {0xb0, -1}},
        /* Turin, Turin Dense, Strix Point; Granite Ridge; Strix Halo */
        {"AuthenticAMD", 26, "zen5", {0x02, 0x11, 0x24, 0x44, 0x70, -1}},
        {"AuthenticAMD", 26, "other", {0x30, 0x50, 0x80, -1}},
        /* Naples, Rome */
        {"AuthenticAMD", 23, "other", {0x01, 0x31, -1}},
        /* Skylake, Ice Lake, Ice Lake D, Sapphire and Granite Rapids, the latter D, Emerald Rapids
         */
        {"GenuineIntel", 6, "xeon", {85, 106, 108, 143, 173, 174, 207, -1}},
        /* Broadwell, Alder Lake, Sierra Forest */
        {"GenuineIntel", 6, "other", {79, 107, 151, 175, -1}},
        {"GenuineIntel", 25, "other", {0x11, -1}},
        {"GenuineIntel", 26, "other", {0x02, -1}},
        {"AuthenticAMD", 6, "other", {85, -1}},
        {"ARM", 8, "other", {0xd0c, -1}},
        {"HygonGenuine", 25, "other", {1, -1}},
        {"", 25, "other", {0x11, -1}},
        {"", 6, "other", {85, -1}}};

    for (size_t i = 0; i < sizeof(cpus) / sizeof(cpus[0]); i++)
        for (const int *m = cpus[i].models; *m >= 0; m++)
            ck_assert_msg(
                strcmp(onic_processor_name(cpus[i].vendor, cpus[i].family, *m), cpus[i].name) == 0,
                "%s %d %#x", cpus[i].vendor, cpus[i].family, (unsigned)*m);
    /* There are numbers for all names. */
    for (int family = 0; family < 32; family++)
        for (int model = 0; model < 256; model++)
            UNIT_CHECK(is_built_in(onic_processor_name("AuthenticAMD", family, model)) &&
                       is_built_in(onic_processor_name("GenuineIntel", family, model)));
}
END_TEST

/* ---- equations ------------------------------------------------------------------------------- */

/* Equations (1) and (2) against sums of pieces and bytes. */
START_TEST(sums)
{
    unit_random_t r = {unit_seed()};

    for (int i = 0; i < 200; i++) {
        const unsigned pieces = 1 + (unsigned)unit_below(&r, 50);
        const unsigned piece = 1 + (unsigned)unit_below(&r, 200);
        const onic_cost_t cost = plain_cost(any_number(&r), any_number(&r), any_number(&r));
        double one_by_one = 0, packed;
        onic_link_t link;

        scramble(&r, &link);
        packed = link.message;
        for (unsigned p = 0; p < pieces; p++) {
            one_by_one += p == 0 ? cost.start : cost.piece[0];
            for (unsigned b = 0; b < piece; b++) {
                one_by_one += cost.byte;
                packed += link.byte;
            }
        }
        UNIT_CHECK(near(onic_cost(&cost, pieces, piece, (double)pieces * piece), one_by_one));
        UNIT_CHECK(near(onic_link_packed(&link, (double)pieces * piece), packed));
    }
}
END_TEST

/* Whatever the lengths and the caches. */
START_TEST(costs)
{
    unit_random_t r = {unit_seed()};

    for (int i = 0; i < 20000; i++) {
        const onic_cost_t cost = {any_number(&r),
                                  any_number(&r),
                                  any_number(&r),
                                  {any_number(&r), any_number(&r), any_number(&r), any_number(&r)}};
        const double block = (double)(1 + (unit_random64(&r) >> (44 + unit_below(&r, 20))));
        const double pieces = 1 + (double)unit_below(&r, 1000), bytes = pieces * block;

        UNIT_CHECK(
            near(onic_cost(&cost, pieces, block, bytes), naive_cost(&cost, pieces, block, bytes)));
    }
}
END_TEST

/* Blocks cost more the farther they are from each other, on either side of 0, in lists too. */
START_TEST(distances)
{
    const onic_links_t d = onic_links_default("other");
    const onic_link_t *c = &d.node;
    onic_runs_t runs = {0};
    onic_layout_t l;
    double before = 0;

    ck_assert_int_eq(onic_layout_contig(&l, 0, 4096), ONIC_LAYOUT_OK);
    ck_assert(onic_link_gather(c, &l) == 0);
    for (int64_t stride = 16; stride <= 1 << 20; stride += 8) {
        onic_layout_t back;
        double cost;

        onic_layout_contig(&l, 0, 8);
        onic_layout_contig(&back, 0, 8);
        ck_assert_int_eq(onic_layout_repeat(&l, 100, stride), ONIC_LAYOUT_OK);
        ck_assert_int_eq(onic_layout_repeat(&back, 100, -stride), ONIC_LAYOUT_OK);
        cost = onic_link_gather(c, &l);
        UNIT_CHECK(cost >= before && cost >= 100 * c->block && cost <= 100 * c->page);
        UNIT_CHECK(near(onic_link_gather(c, &back), cost));
        if (stride == ONIC_LINK_LINE)
            UNIT_CHECK(near(cost, 100 * c->line));
        if (stride >= ONIC_LINK_PAGE)
            UNIT_CHECK(near(cost, 100 * c->page));
        before = cost;
    }
    for (int64_t i = 0; i < 50; i++)
        ck_assert_int_eq(onic_runs_add(&runs, (onic_run_t){i * (i + 1) * 4096, 8, 1, 0}),
                         ONIC_LAYOUT_OK);
    ck_assert_int_eq(onic_layout_from_runs(&l, &runs, 0), ONIC_LAYOUT_OK);
    ck_assert_uint_gt(l.nruns, 0);
    ck_assert(near(onic_link_gather(c, &l), 50 * c->page));
    onic_layout_fini(&l);
}
END_TEST

int main(void)
{
    return UNIT_RUN("model_link", UNIT_ONCE(bad_texts), UNIT_ONCE(good_texts),
                    UNIT_ONCE(good_costs), UNIT_ONCE(long_lines), UNIT_ONCE(short_room),
                    UNIT_ONCE(saved), UNIT_LOOP(built_in, 0, N_PROCESSORS),
                    UNIT_ONCE(unknown_processors), UNIT_ONCE(bases), UNIT_ONCE(processor_names),
                    UNIT_ONCE(sums), UNIT_ONCE(costs), UNIT_ONCE(distances));
}
