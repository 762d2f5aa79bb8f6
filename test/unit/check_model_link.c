/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The numbers of a link: as text; of blocks far and near. */
#include "common/model/link.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "test/unit/unit.h"

#define N_NUMBERS (sizeof(onic_link_t) / sizeof(double))

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

/* All or nothing, and what is wrong is named with its line. */
START_TEST(bad_texts)
{
    static const struct {
        const char *text;
        int line;
    } bad[] = {{"", 1},
               {"# nothing\n\n \t\n", 4},
               {"call", 1},
               {"call=", 1},
               {"call=x", 1},
               {"call=1,", 1},
               {"call=1;", 1},
               {"call=1,piece", 1},
               {",call=1", 1},
               {"Call=1", 1},
               {"cal=1", 1},
               {"calls=1", 1},
               {"call=-1", 1},
               {"call=0", 1},
               {"call=inf", 1},
               {"call=nan", 1},
               {"call=1e999", 1},
               {"call=1=2", 1},
               {"call=1 2", 1},
               {"call=1, x = 2 ", 1},
               {"call=1e4,piece=1,piece=", 1},
               {"sieve_piece=3", 1},
               {"call==1", 1},
               {"a_name_that_is_longer_than_all_names_that_there_are=1", 1},
               {"node", 1},
               {"node call=1\n", 1},
               {"node:\n", 1},
               {"\n\nhost: call=1\n", 3},
               {": call=1", 1},
               {"node: call=1\nnet: cal=7\n", 2},
               {"node: call=1\n# x\nnet: call=7,gap=-2 # y\n", 3},
               {"node: call=1, \n", 1},
               {"node: call=1 # , gap=\nnet: gap=", 2}};
    const onic_links_t d = onic_links_default;
    onic_links_t links = d;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const int line = onic_links_read(&links, bad[i].text);
        ck_assert_msg(line == bad[i].line, "line %d of %s", line, bad[i].text);
        ck_assert(memcmp(&links, &d, sizeof(d)) == 0);
    }
}
END_TEST

START_TEST(good_texts)
{
    const onic_links_t d = onic_links_default;
    onic_links_t links = d;

    ck_assert_int_eq(onic_links_read(&links, "call=12,piece=0.5,bnet=1e2"), 0);
    ck_assert(links.node.call == 12 && links.node.piece == 0.5 && links.node.bnet == 100);
    ck_assert(links.node.message == d.node.message && links.node.gap == d.node.gap);
    ck_assert(memcmp(&links.net, &d.net, sizeof(d.net)) == 0);
    ck_assert_int_eq(onic_links_read(&links, "# of this machine\r\n"
                                             " net :message = 9000 , byte=.5\t# slow\r\n"
                                             "\n"
                                             "node:call=1\n"
                                             "net: byte=0.25\n"
                                             "adapter: request=7"),
                     0);
    ck_assert(links.net.message == 9000 && links.net.byte == 0.25 && links.node.call == 1);
    ck_assert(links.net.call == d.net.call && links.node.byte == d.node.byte);
    ck_assert(links.adapter.request == 7 && links.net.request == d.net.request);
}
END_TEST

/* No more is written than there is room for. */
START_TEST(short_room)
{
    char text[ONIC_LINKS_TEXT_MAX], part[ONIC_LINKS_TEXT_MAX];

    onic_links_write(&onic_links_default, text, sizeof(text));
    for (size_t cap = 1; cap < strlen(text) + 2; cap++) {
        memset(part, 'x', sizeof(part));
        onic_links_write(&onic_links_default, part, cap);
        UNIT_CHECK(part[cap] == 'x' && strlen(part) < cap);
        UNIT_CHECK(memcmp(part, text, strlen(part)) == 0);
    }
}
END_TEST

/** Random numbers, to four digits. */
static void scramble(unit_random_t *r, onic_link_t *link)
{
    for (size_t k = 0; k < N_NUMBERS; k++)
        ((double *)link)[k] =
            (double)(1000 + unit_below(r, 9000)) * pow(10, (double)unit_below(r, 9) - 6);
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
    onic_links_t links, again = onic_links_default;
    const int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    for (int i = 0; i < 1000; i++) {
        scramble(&r, &links.node);
        scramble(&r, &links.net);
        scramble(&r, &links.adapter);
        onic_links_write(&links, text, sizeof(text));
        UNIT_CHECK(strlen(text) < sizeof(text) - 1);
        UNIT_CHECK(onic_links_read(&again, text) == 0);
        UNIT_CHECK(about(&links, &again));
    }
    ck_assert(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    again = onic_links_default;
    ck_assert_int_eq(onic_links_load(&again, path), 0);
    ck_assert(about(&links, &again));
    ck_assert(write(fd, "node: gap=no\n", 13) == 13);
    ck_assert_int_eq(onic_links_load(&again, path), 4);
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
    ck_assert_int_eq(onic_layout_from_runs(&l, &runs, 0), ONIC_LAYOUT_OK);
    ck_assert_uint_gt(l.nruns, 0);
    ck_assert(near(onic_link_gather(c, &l), 50 * c->page));
    onic_layout_fini(&l);
}
END_TEST

int main(void)
{
    return UNIT_RUN("model_link", UNIT_ONCE(bad_texts), UNIT_ONCE(good_texts),
                    UNIT_ONCE(short_room), UNIT_ONCE(saved), UNIT_ONCE(strided),
                    UNIT_ONCE(distances));
}
