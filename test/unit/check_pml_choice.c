/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The choice of a protocol: the cheapest of those that can, or the one that is forced. */
#include "pml_superpipe/protocols/choice.h"

#include <math.h>
#include <string.h>

#include "test/unit/unit.h"

/** What a receiver may choose. */
#define ALL                                                                                        \
    (1U << SUPERPIPE_STREAM | 1U << SUPERPIPE_MOVER | 1U << SUPERPIPE_COPY |                       \
     1U << SUPERPIPE_RENDEZVOUS)

static superpipe_case_t random_case(unit_random_t *r)
{
    superpipe_case_t c = {.length = 1 + (unit_random64(r) >> (24 + unit_below(r, 40))),
                          .node = unit_once_in(r, 2),
                          .one_piece = unit_once_in(r, 2),
                          .self = unit_once_in(r, 8),
                          .pins = (double)unit_below(r, 5) / 2};

    c.send_block = c.one_piece ? c.length : 1 + unit_below(r, c.length);
    c.receive_block = c.one_piece ? c.length : 1 + unit_below(r, c.length);
    return c;
}

/** A stream can always be had. */
static unsigned random_able(unit_random_t *r)
{
    return ((unsigned)unit_below(r, 2 * ALL) & ALL) | 1U << SUPERPIPE_STREAM;
}

START_TEST(cheapest)
{
    unit_random_t r = {unit_seed() + (uint64_t)_i};

    for (int n = 0; n < 20000; n++) {
        const superpipe_case_t c = random_case(&r);
        const unsigned able = random_able(&r);
        const onic_link_t *link =
            unit_once_in(&r, 2) ? &onic_links_default.node : &onic_links_default.net;
        const superpipe_protocol_t p = superpipe_choose(&c, able, link, SUPERPIPE_AUTO);

        double cost[ONIC_LEARN_CHOICES];

        UNIT_CHECK((able >> p & 1) != 0);
        superpipe_estimate(&c, able, link, cost);
        for (unsigned q = 0; q < ONIC_LEARN_CHOICES; q++)
            UNIT_CHECK((able >> q & 1) == !isinf(cost[q]));
        UNIT_CHECK(superpipe_cheapest(cost) == p);
        for (int q = SUPERPIPE_STREAM; q < SUPERPIPE_PROTOCOLS; q++) {
            const bool can = (able >> q & 1) != 0;
            const superpipe_protocol_t forced =
                superpipe_choose(&c, able, link, (superpipe_protocol_t)q);

            UNIT_CHECK(!can || superpipe_rows[q]->cost(&c, link) >= cost[p]);
            UNIT_CHECK(forced == (can ? (superpipe_protocol_t)q : p));
        }
    }
}
END_TEST

/** What data of that form can come by in any case. */
START_TEST(by_shape)
{
    superpipe_case_t c = {.length = 1000, .send_block = 10, .receive_block = 10};

    ck_assert_uint_eq(superpipe_able(&c), 1U << SUPERPIPE_STREAM);
    c.one_piece = true;
    ck_assert_uint_eq(superpipe_able(&c), 1U << SUPERPIPE_STREAM | 1U << SUPERPIPE_RENDEZVOUS);
    c.self = true;
    ck_assert_uint_eq(superpipe_able(&c), 1U << SUPERPIPE_STREAM | 1U << SUPERPIPE_COPY);
}
END_TEST

/** Nothing is left to UCX on a node, but where an adapter connects its processes. */
START_TEST(on_a_node)
{
    superpipe_case_t c = {.length = 1000, .one_piece = true, .node = true};

    ck_assert_uint_eq(superpipe_able(&c) & 1U << SUPERPIPE_RENDEZVOUS, 0);
    c.adapter = true;
    ck_assert_uint_ne(superpipe_able(&c) & 1U << SUPERPIPE_RENDEZVOUS, 0);
}
END_TEST

/** What a sender cannot be reached by is not taken again, whatever else can do it. */
START_TEST(refused)
{
    superpipe_case_t c = {.length = 1000, .one_piece = true};

    c.refused = 1U << SUPERPIPE_RENDEZVOUS;
    ck_assert_uint_eq(superpipe_able(&c), 1U << SUPERPIPE_STREAM);
    c.self = true;
    ck_assert_uint_eq(superpipe_able(&c), 1U << SUPERPIPE_STREAM | 1U << SUPERPIPE_COPY);
    c.refused = 1U << SUPERPIPE_COPY;
    ck_assert_uint_eq(superpipe_able(&c), 1U << SUPERPIPE_STREAM);
}
END_TEST

/** Zero copy for buffers that come back, the mover for those that do not. */
START_TEST(registrations)
{
    const onic_link_t *link = &onic_links_default.net;
    superpipe_case_t c = {
        .length = 16 << 20, .send_block = 16 << 20, .receive_block = 16 << 20, .one_piece = true};
    const unsigned able = ALL & ~(1U << SUPERPIPE_COPY);

    ck_assert_int_eq(superpipe_choose(&c, able, link, SUPERPIPE_AUTO), SUPERPIPE_RENDEZVOUS);
    c.pins = 2;
    ck_assert_int_eq(superpipe_choose(&c, able, link, SUPERPIPE_AUTO), SUPERPIPE_MOVER);
}
END_TEST

/** What goes with its envelope. */
START_TEST(short_most)
{
    ck_assert_uint_eq(superpipe_short_most(8192, 8000, SUPERPIPE_MOVER), 0);
    ck_assert_uint_eq(superpipe_short_most(4096, 8000, SUPERPIPE_AUTO), 4096);
    ck_assert_uint_eq(superpipe_short_most(16384, 8000, SUPERPIPE_AUTO), 8000);
    ck_assert_uint_eq(superpipe_short_most(0, 8000, SUPERPIPE_EAGER), 8000);
    ck_assert_uint_eq(superpipe_short_most(16384, 8000, SUPERPIPE_EAGER), 8000);
}
END_TEST

/** What is sent before it is asked for: all, or whole fragments within the bound; nothing of what
 * goes by another protocol by force. */
START_TEST(early)
{
    unit_random_t r = {unit_seed() + (uint64_t)_i};

    for (int n = 0; n < 20000; n++) {
        const superpipe_case_t c = random_case(&r);
        const onic_link_t *link =
            unit_once_in(&r, 2) ? &onic_links_default.node : &onic_links_default.net;
        const uint64_t fragment = unit_below(&r, 10000), most = unit_below(&r, 100000);
        const unsigned able = random_able(&r);
        const uint64_t bytes = superpipe_early(&c, able, link, fragment, most, SUPERPIPE_AUTO);

        UNIT_CHECK(bytes <= most && bytes <= c.length);
        UNIT_CHECK(bytes == 0 || (fragment > 0 && !c.self));
        UNIT_CHECK(bytes == 0 || bytes == c.length || bytes % fragment == 0);
        UNIT_CHECK(superpipe_early(&c, able, link, fragment, most, SUPERPIPE_MOVER) == 0);
    }
}
END_TEST

START_TEST(all_early)
{
    superpipe_case_t c = {.length = 16384,
                          .send_block = 16384,
                          .receive_block = 16384,
                          .one_piece = true,
                          .node = true};
    const unsigned far = 1U << SUPERPIPE_STREAM, near = far | 1U << SUPERPIPE_MOVER;
    const onic_links_t *links = &onic_links_default;

    ck_assert_uint_eq(superpipe_early(&c, near, &links->node, 8192, 65536, SUPERPIPE_AUTO), 16384);
    ck_assert_uint_eq(superpipe_early(&c, near, &links->node, 8192, 16000, SUPERPIPE_AUTO), 0);
    /* Single copy needs no CTS, either. */
    ck_assert_uint_eq(
        superpipe_early(&c, near | 1U << SUPERPIPE_COPY, &links->node, 8192, 65536, SUPERPIPE_AUTO),
        0);
    c.length = 16 << 20;
    c.node = false;
    ck_assert_uint_eq(superpipe_early(&c, far, &links->net, 8192, 65536, SUPERPIPE_AUTO), 57344);
    c.self = true;
    ck_assert_uint_eq(superpipe_early(&c, far, &links->net, 8192, 65536, SUPERPIPE_AUTO), 0);
}
END_TEST

/** What can be seen in the table: short messages, the one that is forced, a line for each kind. */
START_TEST(table)
{
    char text[SUPERPIPE_PLAN_MAX];
    int lines = 0;

    superpipe_plan_table(&onic_links_default, SUPERPIPE_RENDEZVOUS, 16384, text, sizeof(text));
    ck_assert_ptr_nonnull(strstr(text, "node, contiguous: 1024 eager, 16384 eager, 65536 stream"));
    ck_assert_ptr_nonnull(strstr(text, "network, contiguous: 1024 eager, 16384 eager, 65536 rend"));
    ck_assert_ptr_nonnull(strstr(text, "network, blocks of 64 bytes: 1024 eager"));
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    ck_assert_int_eq(lines, 12);
    ck_assert(strlen(text) < sizeof(text) / 2);
}
END_TEST

int main(void)
{
    return UNIT_RUN("pml choice", UNIT_LOOP(cheapest, 0, 4), UNIT_ONCE(by_shape),
                    UNIT_ONCE(on_a_node), UNIT_ONCE(refused), UNIT_ONCE(registrations),
                    UNIT_ONCE(short_most), UNIT_LOOP(early, 0, 2), UNIT_ONCE(all_early),
                    UNIT_ONCE(table));
}
