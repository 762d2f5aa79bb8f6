/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/model/link.h"

#include <math.h>

/* Rows that stand a line or a page apart are mostly cold: programs sweep their memory between two
 * exchanges. How near the processors of two processes are to each other changes: what messages
 * really take is learned from the transfers (learn.h). Registering is as in the superpipeline
 * paper, section 2. */
const onic_links_t onic_links_default = {
    .node =
        {
            .call = 1200,
            .piece = 400,
            .copy = 0.09,
            .block = 0.5,
            .line = 2,
            .page = 8,
            .message = 700,
            .byte = 0.15,
            .rendezvous = 5000,
            .rndv_byte = 0.10,
            .pin = 68000,
            .pin_byte = 0.05,
            .wake = 15000,
            .absence = 500000,
            .gap = 150,
            .latency = 150,
            .bcopy = 20,
            .bnet = 20,
        },
    .net =
        {
            .call = 500,
            .piece = 500,
            .copy = 0.09,
            .block = 0.5,
            .line = 2,
            .page = 8,
            .message = 10000,
            .byte = 0.13,
            .rendezvous = 30000,
            .rndv_byte = 0.09,
            .pin = 68000,
            .pin_byte = 0.05,
            .wake = 15000,
            .absence = 500000,
            .gap = 300,
            .latency = 1500,
            .bcopy = 20,
            .bnet = 10,
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

/** How far the blocks of a layout are from each other: of a list, on average. */
static uint64_t distance(const onic_layout_t *l)
{
    const int64_t stride = l->nlevels > 0 ? l->level[0].stride : 0;

    if (l->nruns > 0)
        return (uint64_t)(l->ub - l->lb) / onic_layout_blocks(l);
    return stride < 0 ? -(uint64_t)stride : (uint64_t)stride;
}

static double greater(double a, double b)
{
    return a > b ? a : b;
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

/* ---- from measurements ---------------------------------------------------------------------- */

static void fit(double *number, double measured)
{
    const double least = *number / ONIC_LINK_FACTOR;
    const double most = *number * ONIC_LINK_FACTOR;

    if (!(measured > 0) || !isfinite(measured))
        return;
    *number = measured > most ? most : greater(measured, least);
}

/** What each of `n` takes, of which `first` is not part; 0, nothing, where that cannot be told. */
static double each(double all, double first, double n)
{
    return all > 0 && n > 0 ? (all - first) / n : 0;
}

/** Bytes per nanosecond. */
static double rate(double bytes, double nsec)
{
    return nsec > 0 ? bytes / nsec : 0;
}

static void fit_alone(onic_link_t *link, const onic_samples_t *s)
{
    if (s->call > 0) {
        fit(&link->call, s->call);
        fit(&link->piece, each(s->pieces, s->call, ONIC_SAMPLE_PIECES - 1));
        fit(&link->copy, each(s->bytes, s->call, ONIC_SAMPLE_BYTES));
    }
    /* A sample is a gather and a scatter. */
    fit(&link->block, each(s->dense, 0, 2.0 * ONIC_SAMPLE_BLOCKS));
    fit(&link->line, each(s->lines, 0, 2.0 * ONIC_SAMPLE_BLOCKS));
    fit(&link->page, each(s->pages, 0, 2.0 * ONIC_SAMPLE_BLOCKS));
    fit(&link->bcopy, rate(2.0 * ONIC_SAMPLE_LONG, s->packed));
    /* What stands farther apart does not cost less. */
    link->line = greater(link->line, link->block);
    link->page = greater(link->page, link->line);
}

/** A message is over when its answer is there. What a slot takes beside it are a latency and a gap;
 *  the rest of a long transfer is the bytes (equation 9 of the superpipeline paper, with the copies
 *  at both ends hidden, as sub-blocks and the handshake hide them). */
static void fit_pair(onic_link_t *link, const onic_pair_samples_t *s)
{
    const double half = each(s->slot, s->ping, 2);

    fit(&link->message, s->ping);
    if (!(s->ping > 0))
        return;
    fit(&link->byte, each(s->messages, s->ping, ONIC_SAMPLE_SENT));
    fit(&link->latency, half);
    fit(&link->gap, half);
    if (s->slots > 0)
        fit(&link->bnet, rate(ONIC_SAMPLE_MOVED,
                              s->slots - s->ping - link->latency - ONIC_SAMPLE_CHUNKS * link->gap));
}

void onic_links_fit(onic_links_t *links, const onic_measured_t *measured)
{
    fit_alone(&links->node, &measured->alone);
    fit_alone(&links->net, &measured->alone);
    fit_pair(&links->node, &measured->node);
    fit_pair(&links->net, &measured->net);
}
