/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The choice of a protocol: the cheapest that can, or the one that is forced. */
#include "pml_superpipe/protocols/choice.h"

#include <math.h>
#include <string.h>

#include "test/unit/cost_of.h"
#include "test/unit/protocol_rows.h"
#include "test/unit/unit.h"

static void table_init(superpipe_table_t *table, const onic_links_t *links)
{
    *table = (superpipe_table_t){.links = *links};
}

/** An empty table with the defaults, of a process with all that there may be. */
static superpipe_table_t *defaults(void)
{
    static superpipe_table_t table;
    const onic_links_t links = onic_links_default("other");

    reach_all();
    table_init(&table, &links);
    return &table;
}

static superpipe_case_t any_case(unit_random_t *r, const superpipe_table_t *table)
{
    superpipe_case_t c = superpipe_case(table, (onic_kind_t)unit_below(r, ONIC_KINDS));

    c.length = 1 + (unit_random64(r) >> (24 + unit_below(r, 40)));
    c.one_piece = unit_once_in(r, 2);
    c.self = unit_once_in(r, 8);
    c.many = unit_once_in(r, 2);
    c.pins = (double)unit_below(r, 201) / 100;
    c.send_block = c.one_piece ? c.length : 1 + unit_below(r, c.length);
    c.receive_block = c.one_piece ? c.length : 1 + unit_below(r, c.length);
    if (unit_once_in(r, 2))
        c.send_block = 1 + (c.send_block - 1) / 1000;
    c.peer = unit_once_in(r, 8) ? NULL : some_peer();
    c.wait = unit_once_in(r, 2) ? 0 : (double)(unit_random64(r) >> (44 + unit_below(r, 20)));
    c.refused = unit_once_in(r, 4) ? 1U << unit_below(r, SUPERPIPE_PROTOCOLS) : 0;
    c.refused &= ~(1U << SUPERPIPE_STREAM);
    return c;
}

static void any_reach(unit_random_t *r)
{
    reach.copy = unit_once_in(r, 2);
    reach.pipeline = unit_once_in(r, 2);
}

static bool can(const superpipe_case_t *c, unsigned p)
{
    return p < SUPERPIPE_PROTOCOLS && superpipe_rows[p]->can != NULL &&
           (c->refused >> p & 1) == 0 && superpipe_rows[p]->can(c);
}

/* ---- the choice ------------------------------------------------------------------------------ */

/** The cost of a protocol: what a sender has to answer waits for it. */
static double cost_of(const superpipe_case_t *c, unsigned p)
{
    return superpipe_rows[p]->cost(c) + (superpipe_rows[p]->answer != NULL ? c->wait : 0);
}

/** The cheapest of those that can; what a process sends itself is copied. */
static superpipe_protocol_t naive_choice(const superpipe_case_t *c)
{
    superpipe_protocol_t best = SUPERPIPE_STREAM;

    if (c->self)
        return SUPERPIPE_COPY;
    for (unsigned p = SUPERPIPE_PIPELINE; p < SUPERPIPE_PROTOCOLS; p++)
        if (can(c, p) && cost_of(c, p) < cost_of(c, best))
            best = (superpipe_protocol_t)p;
    return best;
}

/* Whatever the numbers are; and what is forced, where it can be. */
START_TEST(cheapest_or_forced)
{
    static superpipe_table_t table;
    unit_random_t r = {unit_seed() + (uint64_t)_i};
    unsigned chosen[SUPERPIPE_PROTOCOLS] = {0}, by_force = 0;

    reach_all();
    for (int set = 0; set < 50; set++) {
        onic_links_t links;

        any_numbers(&r, &links);
        table_init(&table, &links);
        superpipe.params.single_copy = !unit_once_in(&r, 4);
        reach.slots = !unit_once_in(&r, 4);
        for (int n = 0; n < 1000; n++) {
            const superpipe_case_t c = any_case(&r, &table);

            any_reach(&r);
            const superpipe_protocol_t p = superpipe_choose(&c, SUPERPIPE_AUTO);
            UNIT_CHECK(p == naive_choice(&c));
            UNIT_CHECK(can(&c, p) || c.self);
            for (unsigned q = 0; q < SUPERPIPE_PROTOCOLS; q++)
                UNIT_CHECK(superpipe_choose(&c, (superpipe_protocol_t)q) ==
                           (can(&c, q) ? (superpipe_protocol_t)q : p));
            chosen[p]++;
            by_force += p != SUPERPIPE_PIPELINE && can(&c, SUPERPIPE_PIPELINE);
        }
    }
    for (int p = SUPERPIPE_STREAM; p < SUPERPIPE_PROTOCOLS; p++)
        ck_assert_msg(chosen[p] > 100, "%s: %u", superpipe_rows[p]->name, chosen[p]);
    ck_assert_uint_gt(by_force, 500);
}
END_TEST

/** A message of one piece. */
static superpipe_case_t whole(const superpipe_table_t *table, onic_kind_t kind, uint64_t length)
{
    superpipe_case_t c = superpipe_case(table, kind);

    c.length = c.send_block = c.receive_block = length;
    c.one_piece = true;
    return c;
}

/** The protocols that could bring it, a bit for each. */
static unsigned able(const superpipe_case_t *c)
{
    unsigned set = 0;

    for (unsigned p = 0; p < SUPERPIPE_PROTOCOLS; p++)
        set |= can(c, p) ? 1U << p : 0;
    return set;
}

/* What data of that form can come by, by kind of peer; of a peer that is known, by what it has. */
START_TEST(what_can_do_what)
{
    enum {
        STREAM = 1U << SUPERPIPE_STREAM,
        PIPELINE = 1U << SUPERPIPE_PIPELINE,
        COPY = 1U << SUPERPIPE_COPY,
        RENDEZVOUS = 1U << SUPERPIPE_RENDEZVOUS
    };
    static const struct {
        onic_kind_t kind;
        bool single_copy, slots, pieces, self, known, has;
        unsigned able;
    } cases[] = {
        {ONIC_NEAR, true, true, false, false, false, true, STREAM | PIPELINE | COPY},
        {ONIC_NEAR, false, true, false, false, false, true, STREAM | PIPELINE},
        {ONIC_NEAR, true, false, false, false, false, true, STREAM | COPY},
        {ONIC_NEAR, true, true, true, false, false, true, STREAM | PIPELINE},
        {ONIC_NEAR, true, true, true, true, false, true, STREAM | COPY},
        {ONIC_NET, true, true, false, false, false, true, STREAM | RENDEZVOUS},
        {ONIC_NET, true, true, true, false, false, true, STREAM},
        {ONIC_NET, true, true, false, false, true, false, STREAM | RENDEZVOUS},
        {ONIC_ADAPTER, true, true, false, false, false, true, STREAM | PIPELINE | RENDEZVOUS},
        {ONIC_ADAPTER, true, true, true, false, false, true, STREAM | PIPELINE},
        {ONIC_FAR, true, true, false, false, true, true, STREAM | PIPELINE | COPY},
        {ONIC_FAR, true, true, false, false, true, false, STREAM}};
    const superpipe_table_t *table = defaults();

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        superpipe_case_t c = whole(table, cases[i].kind, 1000);

        superpipe.params.single_copy = cases[i].single_copy;
        reach.slots = cases[i].slots;
        reach.copy = reach.pipeline = cases[i].has;
        c.self = cases[i].self;
        c.peer = cases[i].known ? some_peer() : NULL;
        c.one_piece = !cases[i].pieces;
        c.send_block = cases[i].pieces ? 10 : 1000;
        ck_assert_uint_eq(able(&c), cases[i].able);
    }
}
END_TEST

/* ---- costs ----------------------------------------------------------------------------------- */

/* On the node: pieces of the side that has more of them, each way by its own numbers. */
START_TEST(ways_of_the_node)
{
    static superpipe_table_t table;
    unit_random_t r = {unit_seed()};
    onic_links_t links;

    any_numbers(&r, &links);
    table_init(&table, &links);
    for (int n = 0; n < 20000; n++) {
        static const onic_way_t ways[] = {ONIC_WAY_stream, ONIC_WAY_pipeline, ONIC_WAY_copy};
        const superpipe_case_t c = any_case(&r, &table);
        const unsigned w = (unsigned)unit_below(&r, 3);
        const double cost = superpipe_rows[SUPERPIPE_STREAM + w]->cost(&c);

        /* Buffers that were not used lately are not copied by the kernel, unless the sender is
         * away. */
        UNIT_CHECK(isinf(cost) == (ways[w] == ONIC_WAY_copy &&
                                   (!superpipe_on_node(&c) || (c.pins > 0.5 && c.wait == 0))));
        if (isinf(cost) || !superpipe_on_node(&c))
            continue;
        const onic_cost_t *of = &links.costs[c.kind].of[ways[w]][c.many];
        const double block =
            (double)(c.send_block < c.receive_block ? c.send_block : c.receive_block);
        const double expected = naive_cost(of, (double)c.length / block, block, (double)c.length);

        UNIT_CHECK(fabs(cost - expected) <= 1e-9 * expected);
    }
}
END_TEST

/* How long a sender will be away is what it has been so far: whoever copies or computes for a
 * moment is not taken for one that will not answer. */
START_TEST(answers_in)
{
    static superpipe_table_t table;
    const onic_links_t links = onic_links_default("zen4");
    const onic_link_t *link = &links.node;
    unsigned same = 0, other = 0;

    for (double unseen = 0; unseen < 1e7; unseen = unseen * 1.5 + 1) {
        const double wait = superpipe_answers_in(link, unseen, false);
        const bool there = unseen < SUPERPIPE_SEEN;

        UNIT_CHECK(wait == (there ? 0 : unseen < link->absence ? unseen : link->absence));
        UNIT_CHECK(superpipe_answers_in(link, unseen, true) == (there ? 0 : link->wake));
    }
    reach_all();
    table_init(&table, &links);
    for (double unseen = 0; unseen < 1e6; unseen += 1000) {
        superpipe_case_t c = whole(&table, ONIC_NEAR, 1 << 20);

        c.wait = superpipe_answers_in(link, unseen, false);
        const bool copies = superpipe_choose(&c, SUPERPIPE_AUTO) == SUPERPIPE_COPY;
        /* The kernel takes some 90 us here, what its sender has to answer half of that. */
        UNIT_CHECK(!copies || unseen > 20000);
        UNIT_CHECK(copies || unseen < 90000);
        same += !copies;
        other += copies;
    }
    ck_assert_uint_gt(same, 20);
    ck_assert_uint_gt(other, 20);
}
END_TEST

/* Across networks, with terms by hand. */
START_TEST(equations)
{
    static superpipe_table_t table;
    onic_links_t links = onic_links_default("other");

    links.net = (onic_link_t){.block = 3,
                              .line = 3,
                              .page = 3,
                              .message = 50,
                              .byte = 5,
                              .rendezvous = 700,
                              .rndv_byte = 2,
                              .pin = 1000,
                              .pin_byte = 0.5};
    table_init(&table, &links);
    superpipe_case_t c = whole(&table, ONIC_NET, 4096);

    ck_assert(superpipe_rows[SUPERPIPE_STREAM]->cost(&c) == 50 + 4096 * 5);
    ck_assert(superpipe_rows[SUPERPIPE_RENDEZVOUS]->cost(&c) == 2 * 50 + 700 + 4096 * 2);
    c.pins = 1.5;
    ck_assert(superpipe_rows[SUPERPIPE_RENDEZVOUS]->cost(&c) ==
              2 * 50 + 700 + 4096 * 2 + 1.5 * (1000 + 4096 * 0.5));
    c.send_block = 64;
    ck_assert(superpipe_rows[SUPERPIPE_STREAM]->cost(&c) == 50 + 4096 * 5 + 64 * 3);
    c.receive_block = 32;
    ck_assert(superpipe_rows[SUPERPIPE_STREAM]->cost(&c) == 50 + 4096 * 5 + (64 + 128) * 3);
}
END_TEST

/* ---- whole and early ------------------------------------------------------------------------- */

/* What goes with its envelope. */
START_TEST(short_most)
{
    ck_assert_uint_eq(superpipe_short_most(8192, 8000, SUPERPIPE_PIPELINE), 0);
    ck_assert_uint_eq(superpipe_short_most(4096, 8000, SUPERPIPE_AUTO), 4096);
    ck_assert_uint_eq(superpipe_short_most(16384, 8000, SUPERPIPE_AUTO), 8000);
    ck_assert_uint_eq(superpipe_short_most(0, 8000, SUPERPIPE_EAGER), 8000);
    ck_assert_uint_eq(superpipe_short_most(16384, 8000, SUPERPIPE_EAGER), 8000);
}
END_TEST

/* What is sent before it is asked for: all of what would go in fragments, or whole fragments
 * within the bound; nothing of what goes by another protocol by force. */
START_TEST(early)
{
    static superpipe_table_t table;
    unit_random_t r = {unit_seed() + (uint64_t)_i};
    unsigned all = 0, parts = 0;

    reach_all();
    for (int n = 0; n < 20000; n++) {
        if (n % 1000 == 0) {
            onic_links_t links;

            any_numbers(&r, &links);
            table_init(&table, &links);
        }
        const superpipe_case_t c = any_case(&r, &table);
        const uint64_t fragment = unit_below(&r, 10000), most = unit_below(&r, 100000);

        any_reach(&r);
        const uint64_t bytes = superpipe_early(&c, fragment, most, SUPERPIPE_AUTO);

        UNIT_CHECK(bytes <= most && bytes <= c.length);
        UNIT_CHECK(bytes == 0 || (fragment > 0 && !c.self));
        UNIT_CHECK(bytes == 0 ||
                   superpipe_rows[superpipe_choose(&c, SUPERPIPE_AUTO)]->answer != NULL);
        if (!c.self && fragment > 0 && c.length <= most &&
            superpipe_choose(&c, SUPERPIPE_AUTO) == SUPERPIPE_STREAM)
            UNIT_CHECK(bytes == c.length);
        else
            UNIT_CHECK((double)bytes <= 2 * c.link->latency * c.link->bcopy);
        UNIT_CHECK(superpipe_early(&c, fragment, most, SUPERPIPE_PIPELINE) == 0);
        all += bytes == c.length;
        parts += bytes > 0 && bytes < c.length;
    }
    ck_assert_uint_gt(all, 500);
    ck_assert_uint_gt(parts, 500);
}
END_TEST

START_TEST(all_early)
{
    static superpipe_table_t table;
    onic_links_t links = onic_links_default("other");

    reach_all();
    links.costs[ONIC_NEAR].of[ONIC_WAY_stream][0] = plain_cost(500, 1, 0.1);
    links.costs[ONIC_NEAR].of[ONIC_WAY_pipeline][0] = plain_cost(9000, 1, 0.05);
    links.costs[ONIC_NEAR].of[ONIC_WAY_copy][0] = plain_cost(9000, 1, 0.05);
    table_init(&table, &links);
    superpipe_case_t c = whole(&table, ONIC_NEAR, 16384);

    ck_assert_uint_eq(superpipe_early(&c, 8192, 65536, SUPERPIPE_AUTO), 16384);
    ck_assert_uint_eq(superpipe_early(&c, 8192, 65536, SUPERPIPE_STREAM), 16384);
    ck_assert_uint_eq(superpipe_early(&c, 8192, 16000, SUPERPIPE_AUTO), 0);
    /* Single copy needs no CTS, either. */
    links.costs[ONIC_NEAR].of[ONIC_WAY_copy][0].start = 100;
    table_init(&table, &links);
    ck_assert_uint_eq(superpipe_early(&c, 8192, 65536, SUPERPIPE_AUTO), 0);
    c = whole(&table, ONIC_NET, 16 << 20);
    ck_assert_uint_eq(superpipe_early(&c, 8192, 65536, SUPERPIPE_AUTO), 0);
    /* To the byte, whatever a fragment holds, where an answer takes longer than a message costs. */
    links.net.latency = 10000;
    links.net.message = 32000;
    links.net.bcopy = 3.00005;
    table_init(&table, &links);
    ck_assert_uint_eq(superpipe_early(&c, 8192, 65536, SUPERPIPE_AUTO), 60001);
    ck_assert_uint_eq(superpipe_early(&c, 262144, 65536, SUPERPIPE_AUTO), 60001);
    ck_assert_uint_eq(superpipe_early(&c, 262144, 1000, SUPERPIPE_AUTO), 1000);
    links.net.message = 61000;
    table_init(&table, &links);
    ck_assert_uint_eq(superpipe_early(&c, 262144, 65536, SUPERPIPE_AUTO), 0);
    c.self = true;
    ck_assert_uint_eq(superpipe_early(&c, 8192, 65536, SUPERPIPE_AUTO), 0);
}
END_TEST

START_TEST(goes_short)
{
    const uint64_t most = 32 << 10;

    ck_assert(superpipe_piece(100) == 100 && superpipe_piece(most + 1) == most);
    ck_assert(superpipe_goes_short(most, most, 1 << 20, SUPERPIPE_AUTO));
    ck_assert(!superpipe_goes_short(most + 1, most + 1, 1 << 20, SUPERPIPE_AUTO));
    ck_assert(!superpipe_goes_short(9000, 8999, 1 << 20, SUPERPIPE_AUTO));
    ck_assert(!superpipe_goes_short(9000, 9000, 8999, SUPERPIPE_AUTO));
    ck_assert(!superpipe_goes_short(9000, 9000, 1 << 20, SUPERPIPE_STREAM));
}
END_TEST

/* ---- as text --------------------------------------------------------------------------------- */

static const char *table_text(const superpipe_table_t *table, superpipe_protocol_t forced,
                              uint64_t eager)
{
    static char text[16384];
    FILE *to = fmemopen(text, sizeof(text), "w");

    UNIT_CHECK(to != NULL);
    superpipe_plan_table(to, table, forced, eager);
    UNIT_CHECK(fclose(to) == 0);
    return text;
}

/* What can be seen in the table: short messages, the one that is forced, a line for each kind. */
START_TEST(as_text)
{
    static superpipe_table_t table;
    const onic_links_t links = onic_links_default("other");
    const char *text;
    int lines = 0;

    reach_all();
    table_init(&table, &links);
    text = table_text(&table, SUPERPIPE_RENDEZVOUS, 16384);
    ck_assert_ptr_nonnull(strstr(text, "network, contiguous: 1024 eager, 16384 eager, 65536 rend"));
    ck_assert_ptr_nonnull(strstr(text, "network, blocks of 64 bytes: 1024 eager"));
    ck_assert_ptr_nonnull(strstr(text, "near, many, fresh, blocks of 8 bytes: 1024 eager"));
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    ck_assert_int_eq(lines, 11 * 4); /* groups, blocks */
    /* Where a protocol can, by force it is all that is used. */
    text = table_text(&table, SUPERPIPE_STREAM, 0);
    ck_assert_ptr_null(strstr(text, "eager"));
    ck_assert_ptr_null(strstr(text, "pipeline"));
    ck_assert_ptr_null(strstr(text, "copy"));
    ck_assert_ptr_null(strstr(text, "rend"));
    ck_assert_ptr_nonnull(strstr(text, "near, contiguous: 1024 stream, 16384 stream"));
}
END_TEST

int main(void)
{
    return UNIT_RUN("pml choice", UNIT_LOOP(cheapest_or_forced, 0, 2), UNIT_ONCE(what_can_do_what),
                    UNIT_ONCE(answers_in), UNIT_ONCE(ways_of_the_node), UNIT_ONCE(equations),
                    UNIT_ONCE(short_most), UNIT_LOOP(early, 0, 2), UNIT_ONCE(all_early),
                    UNIT_ONCE(goes_short), UNIT_ONCE(as_text));
}
