/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The chooser; see choice.h. */
#include "pml_superpipe/protocols/choice.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

_Static_assert(SUPERPIPE_PROTOCOLS <= ONIC_LEARN_CHOICES, "what is learned has room for all");

unsigned superpipe_able(const superpipe_case_t *c)
{
    unsigned able = 0;

    for (int p = 0; p < SUPERPIPE_PROTOCOLS; p++)
        if (superpipe_rows[p]->can != NULL && (c->refused >> p & 1) == 0 &&
            superpipe_rows[p]->can(c))
            able |= 1U << p;
    return able;
}

void superpipe_estimate(const superpipe_case_t *c, unsigned able, const onic_link_t *link,
                        double cost[ONIC_LEARN_CHOICES])
{
    for (unsigned p = 0; p < ONIC_LEARN_CHOICES; p++)
        cost[p] = (able >> p & 1) != 0 ? superpipe_rows[p]->cost(c, link) : INFINITY;
}

superpipe_protocol_t superpipe_cheapest(const double cost[ONIC_LEARN_CHOICES])
{
    int best = SUPERPIPE_STREAM;

    for (int p = best + 1; p < SUPERPIPE_PROTOCOLS; p++)
        best = cost[p] < cost[best] ? p : best;
    return (superpipe_protocol_t)best;
}

superpipe_protocol_t superpipe_choose(const superpipe_case_t *c, unsigned able,
                                      const onic_link_t *link, superpipe_protocol_t forced)
{
    double cost[ONIC_LEARN_CHOICES];

    if ((able >> forced & 1) != 0)
        return forced;
    superpipe_estimate(c, able, link, cost);
    return superpipe_cheapest(cost);
}

uint64_t superpipe_early(const superpipe_case_t *c, unsigned able, const onic_link_t *link,
                         uint64_t fragment, uint64_t most, superpipe_protocol_t forced)
{
    const double first = 2 * link->latency * link->bcopy;
    const uint64_t bytes = first < (double)most ? (uint64_t)first : most;
    double cost[ONIC_LEARN_CHOICES];

    if (c->self || fragment == 0 || forced > SUPERPIPE_STREAM)
        return 0;
    superpipe_estimate(c, able, link, cost);
    /* Fragments without a CTS save the wait for it, and so does single copy. Of them nothing is
     * packed while the last one is unpacked. */
    const double all = cost[SUPERPIPE_STREAM] - link->message;
    const double last = (double)fragment * link->byte / 2;
    if (c->length <= most && all <= cost[superpipe_cheapest(cost)] &&
        all + last <= cost[SUPERPIPE_COPY] - link->message)
        return c->length;
    return bytes < c->length ? bytes - bytes % fragment : 0;
}

/* ---- as a table ------------------------------------------------------------------------------ */

void superpipe_plan_table(const onic_links_t *links, superpipe_protocol_t forced, uint64_t eager,
                          char *text, size_t cap)
{
    static const uint64_t sizes[] = {1024, 16384, 65536, 262144, 1048576, 16777216};
    static const uint64_t blocks[] = {0, 1024, 64, 8};
    static const char *const shapes[] = {"contiguous", "blocks of 1024 bytes", "blocks of 64 bytes",
                                         "blocks of 8 bytes"};
    static const char *const kinds[] = {"node", "network", "adapter"};
    const onic_link_t *const link[] = {&links->node, &links->net, &links->adapter};
    size_t at = 0;

    for (int line = 0; line < 12; line++) {
        const int kind = line / 4;
        const bool one_piece = line % 4 == 0;

        at += (size_t)snprintf(text + at, cap - at, "  %s, %s:", kinds[kind], shapes[line % 4]);
        for (int s = 0; s < 6; s++) {
            const uint64_t block = one_piece ? sizes[s] : blocks[line % 4];
            const superpipe_case_t c = {.length = sizes[s],
                                        .send_block = block,
                                        .receive_block = block,
                                        .one_piece = one_piece,
                                        .node = kind == 0,
                                        .adapter = kind == 2};
            const superpipe_protocol_t p =
                sizes[s] <= eager ? SUPERPIPE_EAGER
                                  : superpipe_choose(&c, superpipe_able(&c), link[kind], forced);

            at += (size_t)snprintf(text + at, cap - at, " %llu %s%s", (unsigned long long)sizes[s],
                                   superpipe_rows[p]->name, s < 5 ? "," : "\n");
        }
    }
}
