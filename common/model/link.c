/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/model/link.h"

#include <math.h>

/* Rows that stand a line or a page apart are mostly cold: programs sweep their memory between two
 * exchanges. Registering is as in the superpipeline paper, section 2, and requests are about as
 * adapters of 100 Gb/s take them. */
#define MEMORY .block = 0.5, .line = 2, .page = 8, .bcopy = 20, .pin = 68000, .pin_byte = 0.05
#define AWAY   .wake = 15000, .absence = 500000
#define REQUESTS                                                                                   \
    .request = 60, .doorbell = 200, .batch = 32, .entry = 20, .entries = 16, .window = 128,        \
    .reads = 16

const onic_links_t onic_links_default = {
    .node =
        {
            .call = 700,
            .piece = 150,
            .copy = 0.05,
            .message = 700,
            .byte = 0.15,
            .fragment = 1 << 30,
            .grant = 1,
            .rendezvous = 5000,
            .rndv_byte = 0.10,
            .gap = 150,
            .latency = 150,
            .bnet = 20,
            MEMORY,
            AWAY,
            REQUESTS,
        },
    .net =
        {
            .call = 500,
            .piece = 500,
            .copy = 0.09,
            .message = 10000,
            .byte = 0.13,
            .fragment = 262144,
            .grant = 10000,
            .rendezvous = 30000,
            .rndv_byte = 0.09,
            .gap = 300,
            .latency = 1500,
            .bnet = 10,
            MEMORY,
            AWAY,
            REQUESTS,
        },
    .adapter =
        {
            .call = 500,
            .piece = 500,
            .copy = 0.09,
            .message = 4000,
            .byte = 0.19,
            .fragment = 8192,
            .grant = 3000,
            .rendezvous = 6000,
            .rndv_byte = 0.09,
            .gap = 300,
            .latency = 1000,
            .bnet = 11.5,
            MEMORY,
            AWAY,
            REQUESTS,
        },
};

double onic_link_strided(const onic_link_t *link, double pieces, double bytes)
{
    return link->call + (pieces - 1) * link->piece + bytes * link->copy;
}

double onic_link_packed(const onic_link_t *link, double bytes)
{
    return link->message + bytes * link->byte;
}

static double greater(double a, double b)
{
    return a > b ? a : b;
}

double onic_link_requests(const onic_link_t *link, bool read, double requests, double entries,
                          double bytes)
{
    const double round = 2 * link->latency, places = read ? link->reads : link->window;
    const double first = link->request + link->doorbell;
    const double others = (requests - 1) * link->request + (entries - requests) * link->entry +
                          (ceil(requests / link->batch) - 1) * link->doorbell;
    const double waiting = greater(requests / places - 1, 0) * round;

    return first + greater(bytes / link->bnet, greater(others, waiting)) + round;
}

/** How far the blocks of a layout are from each other: of a list, on average. */
static uint64_t distance(const onic_layout_t *l)
{
    const int64_t stride = l->nlevels > 0 ? l->level[0].stride : 0;

    if (l->nruns > 0)
        return (uint64_t)(l->ub - l->lb) / onic_layout_blocks(l);
    return stride < 0 ? -(uint64_t)stride : (uint64_t)stride;
}

/** One block, so far from the next. Between the distances that are known it is in proportion: of
 *  blocks that share a line or a page each has its part of what that costs. */
static double block_cost(double apart, const onic_link_t *link)
{
    const double line = ONIC_LINK_LINE, page = ONIC_LINK_PAGE;

    if (apart >= page)
        return link->page;
    if (apart >= line)
        return link->line + (link->page - link->line) * (apart - line) / (page - line);
    return greater(link->block, link->line * apart / line);
}

double onic_link_gather(const onic_link_t *link, const onic_layout_t *l)
{
    if (onic_layout_is_contig(l))
        return 0;
    return (double)onic_layout_blocks(l) * block_cost((double)distance(l), link);
}
