/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The rows; see choice.h. */
#include "pml_superpipe/protocols/choice.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/model/pipeline.h"
#include "common/mover/pipe/schedule.h"

/** What the model takes a slot of the mover for. */
#define SLOT 32768

/** What gathering and scattering cost at the two ends. */
typedef struct ends {
    double sender, receiver;
} ends_t;

static double slower(const ends_t *g)
{
    return g->sender > g->receiver ? g->sender : g->receiver;
}

/** A layout of such pieces, as far from each other as they are long. */
static double gather(const onic_link_t *link, uint64_t length, uint64_t block)
{
    onic_layout_t l;

    if (block >= length)
        return 0;
    (void)onic_layout_contig(&l, 0, block);
    if (onic_layout_repeat(&l, length / block, (int64_t)(2 * block)) != ONIC_LAYOUT_OK)
        return 0;
    return onic_link_gather(link, &l);
}

static ends_t gathers(const superpipe_case_t *c, const onic_link_t *link)
{
    return (ends_t){.sender = gather(link, c->length, c->send_block),
                    .receiver = gather(link, c->length, c->receive_block)};
}

/* ---- stream: messages ------------------------------------------------------------------------ */

static bool stream_can(const superpipe_case_t *c)
{
    (void)c;
    return true;
}

/** On a node the sender packs a fragment while the receiver unpacks the one before it: the slower
 *  end counts, and of the two copies that `byte` stands for one. */
static double stream_cost(const superpipe_case_t *c, const onic_link_t *link)
{
    const ends_t g = gathers(c, link);
    const double bytes = (double)c->length * link->byte;

    if (c->node)
        return link->message + bytes / 2 + slower(&g);
    return link->message + bytes + g.sender + g.receiver;
}

/* ---- mover: the superpipeline ---------------------------------------------------------------- */

static bool mover_can(const superpipe_case_t *c)
{
    return c->mover && !c->self;
}

/** Both ends gather and scatter at the same time: the slower one counts. */
static double mover_cost(const superpipe_case_t *c, const onic_link_t *link)
{
    const ends_t g = gathers(c, link);
    const onic_chunks_t chunks = onic_superpipeline_chunks(link, ONIC_MOVER_BLOCK, SLOT);

    return link->message + slower(&g) +
           onic_superpipeline_time_blocks(link, &chunks, (double)c->length, ONIC_MOVER_BLOCK);
}

/* ---- copy: the receiver reads the sender's memory -------------------------------------------- */

static bool copy_can(const superpipe_case_t *c)
{
    return c->self || (c->single_copy && c->one_piece);
}

static double copy_cost(const superpipe_case_t *c, const onic_link_t *link)
{
    const double pieces = (double)c->length / (double)c->receive_block;

    if (c->self)
        return 0;
    return link->message + onic_link_strided(link, pieces < 1 ? 1 : pieces, (double)c->length);
}

/* ---- rendezvous: where UCX can put or get ---------------------------------------------------- */

static bool rendezvous_can(const superpipe_case_t *c)
{
    return c->rendezvous && c->one_piece && c->here_one_piece && !c->self;
}

static double rendezvous_cost(const superpipe_case_t *c, const onic_link_t *link)
{
    const double length = (double)c->length;

    return 2 * link->message + link->rendezvous + length * link->rndv_byte +
           c->pins * (link->pin + length * link->pin_byte);
}

const superpipe_row_t superpipe_rows[SUPERPIPE_PROTOCOLS] = {
    [SUPERPIPE_AUTO] = {"auto", NULL, NULL},
    [SUPERPIPE_SHORT] = {"eager", NULL, NULL},
    [SUPERPIPE_STREAM] = {"stream", stream_can, stream_cost},
    [SUPERPIPE_MOVER] = {"mover", mover_can, mover_cost},
    [SUPERPIPE_COPY] = {"copy", copy_can, copy_cost},
    [SUPERPIPE_RENDEZVOUS] = {"rendezvous", rendezvous_can, rendezvous_cost},
};

superpipe_protocol_t superpipe_protocol_named(const char *name)
{
    int p = 0;

    while (p < SUPERPIPE_PROTOCOLS && strcmp(name, superpipe_rows[p].name) != 0)
        p++;
    return (superpipe_protocol_t)p;
}

bool superpipe_is_short(uint64_t length, uint64_t eager, uint64_t fragment,
                        superpipe_protocol_t forced)
{
    if (length > 0 && forced > SUPERPIPE_SHORT)
        return false;
    return length <= (forced == SUPERPIPE_SHORT || fragment < eager ? fragment : eager);
}

uint64_t superpipe_mean_block(const onic_layout_t *l)
{
    const uint64_t pieces = onic_layout_blocks(l);

    return pieces > 0 && l->size > pieces ? l->size / pieces : 1;
}

_Static_assert(SUPERPIPE_PROTOCOLS <= ONIC_LEARN_CHOICES, "what is learned has room for all");

void superpipe_estimate(const superpipe_case_t *c, const onic_link_t *link,
                        double cost[ONIC_LEARN_CHOICES])
{
    for (int p = 0; p < ONIC_LEARN_CHOICES; p++)
        cost[p] = p >= SUPERPIPE_STREAM && p < SUPERPIPE_PROTOCOLS && superpipe_rows[p].can(c)
                      ? superpipe_rows[p].cost(c, link)
                      : INFINITY;
}

superpipe_protocol_t superpipe_cheapest(const double cost[ONIC_LEARN_CHOICES])
{
    int best = SUPERPIPE_STREAM;

    for (int p = best + 1; p < SUPERPIPE_PROTOCOLS; p++)
        best = cost[p] < cost[best] ? p : best;
    return (superpipe_protocol_t)best;
}

superpipe_protocol_t superpipe_choose(const superpipe_case_t *c, const onic_link_t *link,
                                      superpipe_protocol_t forced)
{
    double cost[ONIC_LEARN_CHOICES];

    if (forced > SUPERPIPE_SHORT && superpipe_rows[forced].can(c))
        return forced;
    superpipe_estimate(c, link, cost);
    return superpipe_cheapest(cost);
}

uint64_t superpipe_early(const superpipe_case_t *c, const onic_link_t *link, uint64_t fragment,
                         uint64_t most, superpipe_protocol_t forced)
{
    const double first = 2 * link->latency * link->bcopy;
    const uint64_t bytes = first < (double)most ? (uint64_t)first : most;
    superpipe_protocol_t best;

    if (c->self || fragment == 0 || forced > SUPERPIPE_STREAM)
        return 0;
    best = superpipe_choose(c, link, SUPERPIPE_AUTO);
    /* Fragments that nobody asks for save the answer. */
    if (c->length <= most &&
        stream_cost(c, link) - link->message <= superpipe_rows[best].cost(c, link))
        return c->length;
    return bytes < c->length ? bytes - bytes % fragment : 0;
}

/* ---- as a table ------------------------------------------------------------------------------ */

void superpipe_plan_table(const onic_links_t *links, superpipe_protocol_t forced, bool single_copy,
                          bool mover, const uint64_t eager[2], char *text, size_t cap)
{
    static const uint64_t sizes[] = {1024, 16384, 65536, 262144, 1048576, 16777216};
    static const uint64_t blocks[] = {0, 1024, 64, 8};
    size_t at = 0;

    text[0] = '\0';
    for (int net = 0; net < 2; net++) {
        for (size_t b = 0; b < sizeof(blocks) / sizeof(blocks[0]); b++) {
            at += (size_t)snprintf(text + at, cap - at, "  %s, ", net ? "network" : "node");
            at += blocks[b] == 0
                      ? (size_t)snprintf(text + at, cap - at, "contiguous:")
                      : (size_t)snprintf(text + at, cap - at,
                                         "blocks of %llu bytes:", (unsigned long long)blocks[b]);
            for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
                const uint64_t block = blocks[b] == 0 ? sizes[s] : blocks[b];
                const superpipe_case_t c = {.length = sizes[s],
                                            .send_block = block,
                                            .receive_block = block,
                                            .one_piece = blocks[b] == 0,
                                            .here_one_piece = blocks[b] == 0,
                                            .node = !net,
                                            .single_copy = single_copy && !net,
                                            .mover = mover && !net,
                                            .rendezvous = net};
                const superpipe_protocol_t p =
                    sizes[s] <= eager[net]
                        ? SUPERPIPE_SHORT
                        : superpipe_choose(&c, net ? &links->net : &links->node, forced);

                at += (size_t)snprintf(text + at, cap - at, " %llu %s%s",
                                       (unsigned long long)sizes[s], superpipe_rows[p].name,
                                       s + 1 < sizeof(sizes) / sizeof(sizes[0]) ? "," : "\n");
            }
        }
    }
}
