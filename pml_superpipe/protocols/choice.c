/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The chooser; see choice.h. */
#include "pml_superpipe/protocols/choice.h"

#include <math.h>
#include <stdio.h>

static bool can(const superpipe_case_t *c, unsigned protocol)
{
    const superpipe_row_t *row = superpipe_rows[protocol];

    return row != NULL && row->can != NULL && (c->refused >> protocol & 1) == 0 && row->can(c);
}

superpipe_case_t superpipe_case(const superpipe_table_t *table, onic_kind_t kind)
{
    const onic_links_t *l = &table->links;

    return (superpipe_case_t){.kind = kind,
                              .slot = table->slot > 0 ? table->slot : ONIC_PIPELINE_RX_BUFFER,
                              .schedule = table->schedule,
                              .link = kind == ONIC_NET       ? &l->net
                                      : kind == ONIC_ADAPTER ? &l->adapter
                                                             : &l->node,
                              .costs = kind < ONIC_NET ? &l->costs[kind] : NULL};
}

/** The cost of a protocol; for those that the sender has to answer, with the wait. */
static double cost_of(const superpipe_case_t *c, unsigned protocol)
{
    const superpipe_row_t *row = superpipe_rows[protocol];

    return row->cost(c) + (row->answer != NULL ? c->wait : 0);
}

superpipe_protocol_t superpipe_choose(const superpipe_case_t *c, superpipe_protocol_t forced)
{
    double cost, least = INFINITY;
    unsigned best = SUPERPIPE_STREAM;

    if (can(c, forced))
        return forced;
    if (c->self)
        return SUPERPIPE_COPY;
    for (unsigned p = 0; p < SUPERPIPE_ROWS; p++)
        if (can(c, p) && (cost = cost_of(c, p)) < least) {
            least = cost;
            best = p;
        }
    return (superpipe_protocol_t)best;
}

/** True if early bytes gain more than they cost, which is one message more for both processors. On
 *  a node an answer comes before such a message is made, and they cost up to 9 %. */
static bool early_pays(const superpipe_case_t *c)
{
    return !superpipe_on_node(c) && 2 * c->link->latency > c->link->message / 2 - c->link->latency;
}

uint64_t superpipe_early(const superpipe_case_t *c, uint64_t fragment, uint64_t most,
                         superpipe_protocol_t forced)
{
    const double first = 2 * c->link->latency * c->link->bcopy;
    const uint64_t bytes = first < (double)most ? (uint64_t)first : most;

    if (c->self || fragment == 0 || forced > SUPERPIPE_STREAM)
        return 0;
    const superpipe_protocol_t p = superpipe_choose(c, SUPERPIPE_AUTO);
    if (p == SUPERPIPE_STREAM && c->length <= most)
        return c->length;
    /* A receiver that fetches the data itself does so at once. */
    return superpipe_rows[p]->answer != NULL && early_pays(c) && bytes < c->length ? bytes : 0;
}

/* ---- as a table ------------------------------------------------------------------------------ */

/** Writes the lines of messages like this one, one for each shape. */
static void write_lines(FILE *to, superpipe_case_t c, const char *name, superpipe_protocol_t forced,
                        uint64_t eager)
{
    static const uint64_t sizes[] = {1024, 16384, 65536, 262144, 1048576, 16777216};
    static const uint64_t blocks[] = {0, 1024, 64, 8};
    static const char *const shapes[] = {"contiguous", "blocks of 1024 bytes", "blocks of 64 bytes",
                                         "blocks of 8 bytes"};

    for (int b = 0; b < 4; b++) {
        c.one_piece = b == 0;
        fprintf(to, "  %s%s%s, %s:", name, c.many ? ", many" : "",
                superpipe_is_fresh(&c) ? ", fresh" : "", shapes[b]);
        for (int s = 0; s < 6; s++) {
            c.length = sizes[s];
            c.send_block = c.receive_block = b == 0 ? sizes[s] : blocks[b];
            const superpipe_protocol_t p =
                sizes[s] <= eager ? SUPERPIPE_EAGER : superpipe_choose(&c, forced);

            fprintf(to, " %llu %s%s", (unsigned long long)sizes[s], superpipe_rows[p]->name,
                    s < 5 ? "," : "\n");
        }
    }
}

void superpipe_plan_table(FILE *to, const superpipe_table_t *table, superpipe_protocol_t forced,
                          uint64_t eager)
{
    static const char *const names[ONIC_KINDS] = {"near", "far", "network", "adapter"};

    for (int kind = 0; kind < ONIC_KINDS; kind++) {
        superpipe_case_t c = superpipe_case(table, (onic_kind_t)kind);

        for (int many = 0; many <= superpipe_on_node(&c); many++)
            for (int fresh = 0; fresh <= (kind != ONIC_NET); fresh++) {
                c.many = many;
                c.pins = kind == ONIC_ADAPTER ? 2 * fresh : fresh;
                write_lines(to, c, names[kind], forced, eager);
            }
    }
}
