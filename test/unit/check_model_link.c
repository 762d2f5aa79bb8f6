/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The numbers of a link: from samples, within bounds; as text; of blocks far and near. */
#include "common/model/link.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "test/unit/unit.h"

#define N_NUMBERS (sizeof(onic_link_t) / sizeof(double))

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

static bool same(const onic_link_t *a, const onic_link_t *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

static const onic_link_t *any_link(unit_random_t *r)
{
    return unit_once_in(r, 2) ? &onic_links_default.node : &onic_links_default.net;
}

/** The one of two that were the same. */
static const onic_link_t *fit_both(onic_links_t *links, const onic_measured_t *measured)
{
    onic_links_fit(links, measured);
    return &links->node;
}

static bool is_within(double a, double b)
{
    return a <= ONIC_LINK_FACTOR * b && a >= b / ONIC_LINK_FACTOR;
}

/* Times of a machine with given numbers give these numbers. */
START_TEST(fits)
{
    unit_random_t r = {unit_seed()};

    for (int i = 0; i < 1000; i++) {
        const double by = 0.2 + (double)unit_below(&r, 1000) / 200; /* faster or slower */
        const onic_link_t d = *any_link(&r);
        const double all = ONIC_SAMPLE_BYTES, each = 2.0 * ONIC_SAMPLE_BLOCKS;
        const onic_samples_t s = {.call = by * d.call,
                                  .pieces = by * (d.call + (ONIC_SAMPLE_PIECES - 1) * d.piece),
                                  .bytes = by * (d.call + all * d.copy),
                                  .dense = by * each * d.block,
                                  .lines = by * each * d.line,
                                  .pages = by * each * d.page,
                                  .packed = by * 2 * ONIC_SAMPLE_LONG / d.bcopy};
        onic_links_t links = {d, d};
        const onic_link_t link = *fit_both(&links, &(onic_measured_t){.alone = s});

        UNIT_CHECK(near(link.call, by * d.call) && near(link.piece, by * d.piece));
        UNIT_CHECK(near(link.copy, by * d.copy) && near(link.block, by * d.block));
        UNIT_CHECK(near(link.line, by * d.line) && near(link.page, by * d.page));
        UNIT_CHECK(near(link.bcopy, d.bcopy / by));
        UNIT_CHECK(link.message == d.message && link.wake == d.wake && link.bnet == d.bnet);
    }
}
END_TEST

/* The same of two processes, whether or not they reach each other's slots. */
START_TEST(fits_pairs)
{
    unit_random_t r = {unit_seed()};

    for (int i = 0; i < 1000; i++) {
        const double by = 0.2 + (double)unit_below(&r, 1000) / 200;
        const bool slots = unit_once_in(&r, 2);
        const onic_link_t d = *any_link(&r);
        const double wait = (d.latency + d.gap) / 2; /* which one cannot tell from the other */
        const double slot = d.message + 2 * wait;
        const double moved = d.message + (1 + ONIC_SAMPLE_CHUNKS) * wait;
        const onic_pair_samples_t s = {.ping = by * d.message,
                                       .messages = by * (d.message + ONIC_SAMPLE_SENT * d.byte),
                                       .slot = slots ? by * slot : 0,
                                       .slots =
                                           slots ? by * (moved + ONIC_SAMPLE_MOVED / d.bnet) : 0};
        onic_links_t links = {d, d};
        const onic_link_t link = *fit_both(&links, &(onic_measured_t){.node = s, .net = s});

        UNIT_CHECK(near(link.message, by * d.message) && near(link.byte, by * d.byte));
        if (!slots) {
            UNIT_CHECK(link.latency == d.latency && link.gap == d.gap && link.bnet == d.bnet);
        } else if (is_within(by * wait, d.latency) && is_within(by * wait, d.gap)) {
            UNIT_CHECK(near(link.latency, by * wait) && near(link.gap, by * wait));
            UNIT_CHECK(near(link.bnet, d.bnet / by));
        }
        UNIT_CHECK(link.call == d.call && link.bcopy == d.bcopy);
    }
}
END_TEST

/* A peer of one kind says nothing of the others. */
START_TEST(fits_kinds)
{
    const onic_pair_samples_t s = {.ping = 2000, .messages = 9000};
    onic_links_t links = onic_links_default;

    onic_links_fit(&links, &(onic_measured_t){.node = s});
    ck_assert(links.node.message == 2000);
    ck_assert(same(&links.net, &onic_links_default.net));
    links = onic_links_default;
    onic_links_fit(&links, &(onic_measured_t){.net = s});
    ck_assert(links.net.message == 2000);
    ck_assert(same(&links.node, &onic_links_default.node));
}
END_TEST

static double any_time(unit_random_t *r)
{
    switch (unit_below(r, 8)) {
    case 0:
        return 0;
    case 1:
        return -1e6;
    case 2:
        return NAN;
    case 3:
        return INFINITY;
    default:
        return pow(10, (double)unit_below(r, 12));
    }
}

static bool is_bounded(const onic_link_t *link, const onic_link_t *before)
{
    const double *is = (const double *)link, *was = (const double *)before;

    for (size_t k = 0; k < N_NUMBERS; k++) {
        if (!(is[k] >= was[k] / ONIC_LINK_FACTOR && is[k] <= was[k] * ONIC_LINK_FACTOR))
            return false;
    }
    return true;
}

/* Whatever was measured, nothing leaves its bounds, and what is farther does not cost less. */
START_TEST(bounded)
{
    unit_random_t r = {unit_seed()};
    const onic_measured_t nothing = {.alone = {.call = 0}};

    for (int i = 0; i < 20000; i++) {
        const onic_link_t d = *any_link(&r);
        onic_links_t links = {d, d};
        onic_measured_t m;

        UNIT_CHECK(same(fit_both(&links, &nothing), &d));
        for (size_t k = 0; k < sizeof(m) / sizeof(double); k++)
            ((double *)&m)[k] = any_time(&r);
        onic_links_fit(&links, &m);
        UNIT_CHECK(is_bounded(&links.node, &d) && is_bounded(&links.net, &d));
        UNIT_CHECK(links.node.block <= links.node.line && links.node.line <= links.node.page);
    }
}
END_TEST

/* By hand: all or nothing, and what is wrong is named. */
START_TEST(by_hand)
{
    static const struct {
        const char *text, *name, *value;
    } bad[] = {{"", "", ""},
               {"call", "call", ""},
               {"call=", "call", ""},
               {"call=x", "call", "x"},
               {"call=1,", "", ""},
               {"call=1;", "call", "1;"},
               {"call=1,piece", "piece", ""},
               {",call=1", "", ""},
               {"Call=1", "Call", "1"},
               {"cal=1", "cal", "1"},
               {"calls=1", "calls", "1"},
               {"call=-1", "call", "-1"},
               {"call=0", "call", "0"},
               {"call=inf", "call", "inf"},
               {"call=nan", "call", "nan"},
               {"call=1e999", "call", "1e999"},
               {"call=1=2", "call", "1=2"},
               {"call=1 2", "call", "1 2"},
               {"call=1,x=2", "x", "2"},
               {"call=1e4,piece=1,piece=", "piece", ""},
               {"sieve_piece=3", "sieve_piece", "3"},
               {"measure", "measure", ""},
               {"call=1\npiece=2", "call", "1\npiece=2"},
               {"call=0000000000000000000000000000000000000000001", "call",
                "0000000000000000000000000000000"},
               {"a_name_that_is_longer_than_all_that_there_are=1",
                "a_name_that_is_longer_than_all_", "1"}};
    const onic_link_t d = onic_links_default.node;
    onic_link_t link = d, again = d;
    onic_link_error_t error;
    char text[512], part[512];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        memset(&error, 'x', sizeof(error));
        ck_assert_msg(!onic_link_read(&link, bad[i].text, &error), "%s", bad[i].text);
        ck_assert(same(&link, &d));
        ck_assert_uint_eq(error.line, 1);
        ck_assert_str_eq(error.name, bad[i].name);
        ck_assert_str_eq(error.value, bad[i].value);
        ck_assert_uint_gt(strlen(error.why), 0);
    }
    ck_assert(onic_link_read(&link, "call=12,piece=0.5,bnet=1e2", &error));
    ck_assert(link.call == 12 && link.piece == 0.5 && link.bnet == 100);
    ck_assert(link.message == d.message && link.gap == d.gap);
    onic_link_write(&link, text, sizeof(text));
    ck_assert_uint_lt(strlen(text), sizeof(text) - 1);
    ck_assert(onic_link_read(&again, text, &error));
    ck_assert(again.call == 12 && again.piece == 0.5 && again.rndv_byte == d.rndv_byte);
    for (size_t cap = 1; cap < strlen(text) + 2; cap++) {
        memset(part, 'x', sizeof(part));
        onic_link_write(&link, part, cap);
        UNIT_CHECK(part[cap] == 'x' && strlen(part) < cap);
        UNIT_CHECK(memcmp(part, text, strlen(part)) == 0);
    }
}
END_TEST

/* A file's text: both kinds, comments, blanks; errors with their line; nothing but all of it. */
START_TEST(lines)
{
    static const struct {
        const char *text;
        unsigned line;
        const char *name, *value;
    } bad[] = {{"", 0, "", ""},
               {"# nothing\n\n \t\n", 0, "", ""},
               {"node", 1, "node", ""},
               {"node call=1\n", 1, "node call=1", ""},
               {"node:\n", 1, "", ""},
               {"\n\nhost: call=1\n", 3, "host", ""},
               {": call=1", 1, "", ""},
               {"node: call=1\nnet: cal=7\n", 2, "cal", "7"},
               {"node: call=1\n# x\nnet: call=7,gap=-2 # y\n", 3, "gap", "-2"},
               {"node: call=1, \n", 1, "", ""},
               {"node: call=1 # , gap=\nnet: gap=", 2, "gap", ""}};
    const onic_links_t d = onic_links_default;
    onic_links_t links = d;
    onic_link_error_t error;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        memset(&error, 'x', sizeof(error));
        ck_assert_msg(!onic_links_read(&links, bad[i].text, &error), "%s", bad[i].text);
        ck_assert(memcmp(&links, &d, sizeof(d)) == 0);
        ck_assert_uint_eq(error.line, bad[i].line);
        ck_assert_str_eq(error.name, bad[i].name);
        ck_assert_str_eq(error.value, bad[i].value);
        ck_assert_uint_gt(strlen(error.why), 0);
    }
    ck_assert(onic_links_read(&links,
                              "# of this machine\r\n"
                              " net :message = 9000 , byte=.5\t# slow\r\n"
                              "\n"
                              "node:call=1\n"
                              "net: byte=0.25",
                              &error));
    ck_assert(links.net.message == 9000 && links.net.byte == 0.25 && links.node.call == 1);
    ck_assert(links.net.call == d.net.call && links.node.byte == d.node.byte);
}
END_TEST

/** Random numbers, to four digits. */
static void scramble(unit_random_t *r, onic_link_t *link)
{
    for (size_t k = 0; k < N_NUMBERS; k++)
        ((double *)link)[k] =
            (double)(1000 + unit_below(r, 9000)) * pow(10, (double)unit_below(r, 9) - 6);
}

static bool about(const onic_link_t *a, const onic_link_t *b)
{
    for (size_t k = 0; k < N_NUMBERS; k++) {
        if (!near(((const double *)a)[k], ((const double *)b)[k]))
            return false;
    }
    return true;
}

/* What was written can be read again, from a string and from a file. */
START_TEST(saved)
{
    unit_random_t r = {unit_seed()};
    char text[ONIC_LINKS_TEXT_MAX], path[] = "check_model_link.XXXXXX";
    onic_links_t links, again = onic_links_default;
    onic_link_error_t error;
    const int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    for (int i = 0; i < 1000; i++) {
        scramble(&r, &links.node);
        scramble(&r, &links.net);
        onic_links_write(&links, text, sizeof(text));
        UNIT_CHECK(strlen(text) < sizeof(text) - 1);
        UNIT_CHECK(onic_links_read(&again, text, &error));
        UNIT_CHECK(about(&links.node, &again.node) && about(&links.net, &again.net));
    }
    ck_assert(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    again = onic_links_default;
    ck_assert(onic_links_load(&again, path, &error));
    ck_assert(about(&links.node, &again.node) && about(&links.net, &again.net));
    ck_assert(write(fd, "node: gap=no\n", 13) == 13);
    ck_assert(!onic_links_load(&again, path, &error));
    ck_assert_uint_eq(error.line, 3);
    ck_assert_str_eq(error.value, "no");
    ck_assert(write(fd, "", 1) == 1);
    ck_assert(!onic_links_load(&again, path, &error));
    ck_assert_uint_eq(error.line, 0);
    ck_assert_int_eq(ftruncate(fd, 65536), 0);
    ck_assert(!onic_links_load(&again, path, &error));
    ck_assert_uint_eq(error.line, 0);
    close(fd);
    unlink(path);
    ck_assert(!onic_links_load(&again, path, &error));
    ck_assert_uint_eq(error.line, 0);
    ck_assert(!onic_links_load(&again, "/", &error));
    ck_assert_uint_eq(error.line, 0);
    ck_assert(about(&links.node, &again.node));
}
END_TEST

/* Equations (1) and (2) against sums of pieces and bytes. */
START_TEST(strided)
{
    unit_random_t r = {unit_seed()};

    for (int i = 0; i < 200; i++) {
        const unsigned pieces = 1 + (unsigned)unit_below(&r, 50);
        const unsigned piece = 1 + (unsigned)unit_below(&r, 200);
        double one_by_one = 0, packed;
        onic_link_t link;

        scramble(&r, &link);
        packed = link.message;
        for (unsigned p = 0; p < pieces; p++) {
            one_by_one += p == 0 ? link.call : link.piece;
            for (unsigned b = 0; b < piece; b++) {
                one_by_one += link.copy;
                packed += link.byte;
            }
        }
        UNIT_CHECK(near(onic_link_strided(&link, pieces, (double)pieces * piece), one_by_one));
        UNIT_CHECK(near(onic_link_packed(&link, (double)pieces * piece), packed));
    }
}
END_TEST

/* Blocks cost more the farther they are from each other, on either side of 0, in lists too. */
START_TEST(distances)
{
    const onic_link_t *c = &onic_links_default.node;
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
    ck_assert_int_eq(onic_layout_from_runs(&l, &runs), ONIC_LAYOUT_OK);
    ck_assert_uint_gt(l.nruns, 0);
    ck_assert(near(onic_link_gather(c, &l), 50 * c->page));
    onic_layout_fini(&l);
}
END_TEST

/* What nobody has measured or given is named behind a #, and such a text can be read again. */
START_TEST(defaults)
{
    onic_links_t links = onic_links_default, read = onic_links_default;
    char text[ONIC_LINKS_TEXT_MAX];
    onic_link_error_t error;

    onic_links_write(&links, text, sizeof(text));
    ck_assert_ptr_nonnull(strstr(text, "# by default: call piece "));
    links.node.call = 5;
    links.net = (onic_link_t){0};
    for (size_t i = 0; i < N_NUMBERS; i++)
        ((double *)&links.net)[i] = (double)i + 0.5;
    onic_links_write(&links, text, sizeof(text));
    ck_assert_ptr_nonnull(strstr(text, "# by default: piece copy "));
    ck_assert_ptr_null(strchr(strstr(text, "net:"), '#'));
    ck_assert(onic_links_read(&read, text, &error));
    ck_assert(same(&read.node, &links.node) && same(&read.net, &links.net));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {fits,  fits_pairs, fits_kinds, bounded, by_hand,
                                  lines, defaults,   saved,      strided, distances};

    return unit_run("model_link", tests, sizeof(tests) / sizeof(tests[0]));
}
