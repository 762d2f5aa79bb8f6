/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Which layouts each method can move, and what that costs; see method.h. Pure. */
#include <math.h>

#include "common/model/pipeline.h"
#include "common/mover/pipe/chunks.h"
#include "osc_nicstride/methods/plan.h"

static double gather_here(const nicstride_case_t *c)
{
    return onic_link_gather(&c->path->link, c->origin);
}

static double gather_there(const nicstride_case_t *c)
{
    return onic_link_gather(&c->path->link, c->target);
}

/* ---- direct: load and store ------------------------------------------------------------------ */

/** Nothing that another method would not do as well. */
double nicstride_direct_cost(const nicstride_case_t *c)
{
    (void)c;
    return 0;
}

/* ---- cma: single copy of each piece ---------------------------------------------------------- */

double nicstride_cma_cost(const nicstride_case_t *c)
{
    const uint64_t a = onic_layout_blocks(c->origin), b = onic_layout_blocks(c->target);

    return onic_link_strided(&c->path->link, (double)(a > b ? a : b), (double)c->target->size);
}

/* ---- sieve: single copy of the covering extent, then gather ---------------------------------- */

bool nicstride_sieve_fits(const nicstride_case_t *c)
{
    return c->dir == NICSTRIDE_GET && c->target->nruns == 0 && c->target->size > 0;
}

double nicstride_sieve_cost(const nicstride_case_t *c)
{
    const onic_link_t *link = &c->path->link;
    double reads, bytes;

    nicstride_sieve_total(c->target, c->path->sieve_piece, NICSTRIDE_SIEVE_GAP, &reads, &bytes);
    return reads * link->call + (bytes + (double)c->target->size) * link->copy + gather_here(c) +
           gather_there(c);
}

/* ---- pack: messages -------------------------------------------------------------------------- */

/** Equation (2) for the first message. While others follow, the sender packs, the network moves and
 *  the receiver unpacks at the same time: the slowest counts. */
double nicstride_pack_cost(const nicstride_case_t *c)
{
    const onic_link_t *link = &c->path->link;
    const double here = gather_here(c), there = gather_there(c), size = (double)c->target->size;
    const double first = fmin(1, link->fragment / size);
    const double copying = size / link->bcopy + size / link->fragment * link->gap;

    return onic_link_packed(link, first * size) + first * (here + there) +
           (1 - first) * fmax(size / link->bnet, copying + fmax(here, there));
}

/* ---- mover: the superpipeline ---------------------------------------------------------------- */

#define MOVER_SLOT 32768

/** Below a block there is nothing that could overlap. */
bool nicstride_mover_fits(const nicstride_case_t *c)
{
    return c->target->size > ONIC_MOVER_BLOCK;
}

/** Both sides gather and scatter while chunks are moved: the slower one copies so much slower. Of a
 *  get the slots are the origin's own. The way of the data counts once. */
double nicstride_mover_cost(const nicstride_case_t *c)
{
    onic_link_t link = c->path->link;
    const double size = (double)c->target->size, block = (double)c->path->mover_block;
    const onic_chunks_t chunks = onic_superpipeline_chunks(&link, block, MOVER_SLOT);

    link.bcopy = size / (size / link.bcopy + fmax(gather_here(c), gather_there(c)));
    return link.message - link.latency + (c->dir == NICSTRIDE_GET ? 0 : link.grant) +
           onic_superpipeline_time_blocks(&link, &chunks, size, block);
}

/* ---- zcopy: rendezvous ----------------------------------------------------------------------- */

bool nicstride_zcopy_fits(const nicstride_case_t *c)
{
    return onic_layout_is_contig(c->origin) && onic_layout_is_contig(c->target) &&
           c->origin->size > 0;
}

double nicstride_zcopy_cost(const nicstride_case_t *c)
{
    const onic_link_t *link = &c->path->link;

    return link->message + link->rendezvous + (double)c->target->size * link->rndv_byte;
}

/* ---- rdma: one request of the adapter -------------------------------------------------------- */

bool nicstride_rdma_fits(const nicstride_case_t *c)
{
    return c->dir != NICSTRIDE_ACC && nicstride_zcopy_fits(c);
}

double nicstride_rdma_cost(const nicstride_case_t *c)
{
    return onic_link_requests(&c->path->link, c->dir == NICSTRIDE_GET, 1, 1,
                              (double)c->target->size);
}

/* ---- nic: lists of requests ------------------------------------------------------------------ */

bool nicstride_nic_fits(const nicstride_case_t *c)
{
    return c->dir != NICSTRIDE_ACC && c->target->size > 0;
}

/** A request for each piece of the target's, which has a list of the origin's pieces, or several
 *  where that becomes too long. */
double nicstride_nic_cost(const nicstride_case_t *c)
{
    const onic_link_t *link = &c->path->link;
    const double there = (double)onic_layout_blocks(c->target),
                 pieces = fmax(there, (double)onic_layout_blocks(c->origin));

    return onic_link_requests(link, c->dir == NICSTRIDE_GET,
                              there * ceil(pieces / there / link->entries), pieces,
                              (double)c->target->size);
}

/* ---- sieving --------------------------------------------------------------------------------- */

/** Extent and data of the levels below `k`, and how many levels a cover may take in. */
typedef struct spans {
    uint64_t extent[ONIC_LAYOUT_MAX_LEVELS + 1];
    uint64_t size[ONIC_LAYOUT_MAX_LEVELS + 1];
    unsigned levels; /* whole levels without a large gap */
} spans_t;

static void measure(const onic_layout_t *l, uint64_t gap_max, spans_t *s)
{
    s->extent[0] = s->size[0] = l->block;
    s->levels = 0;
    for (unsigned k = 0; k < l->nlevels; k++) {
        uint64_t step = onic_magnitude(l->level[k].stride);

        s->extent[k + 1] = s->extent[k] + step * (l->level[k].count - 1);
        s->size[k + 1] = s->size[k] * l->level[k].count;
        if (s->levels == k && (step <= s->extent[k] || step - s->extent[k] <= gap_max))
            s->levels = k + 1;
    }
}

/** The highest level of which one whole pass fits in a piece. */
static unsigned fitting_level(const spans_t *s, uint64_t piece)
{
    unsigned k = s->levels;

    while (k > 0 && s->extent[k] > piece)
        k--;
    return k;
}

/** How many passes of level `k` fit in a piece. */
static uint64_t fitting_passes(const onic_layout_t *l, const spans_t *s, unsigned k, uint64_t piece)
{
    uint64_t step = onic_magnitude(l->level[k].stride);

    if (k >= s->levels)
        return 1;
    return step == 0 ? l->level[k].count : (piece - s->extent[k]) / step + 1;
}

nicstride_cover_t nicstride_sieve_next(const onic_layout_t *l, uint64_t pos, uint64_t piece,
                                       uint64_t gap_max)
{
    nicstride_cover_t c;
    spans_t s;
    unsigned k;
    uint64_t unit, passes, rest, low = 0;
    int64_t first = l->offset;

    measure(l, gap_max, &s);
    k = fitting_level(&s, piece);
    /* A position inside a pass (after part of a block) finishes the block first. */
    while (k > 0 && pos % s.size[k] != 0)
        k--;
    unit = s.size[k];
    for (unsigned i = 0; i < l->nlevels; i++)
        first += (int64_t)(pos / s.size[i] % l->level[i].count) * l->level[i].stride;
    if (k == 0 && (pos % unit != 0 || s.extent[0] > piece)) {
        uint64_t in = pos % unit;

        c.lo = first + (int64_t)in;
        c.len = unit - in < piece ? unit - in : piece;
        c.bytes = c.len;
        return c;
    }
    if (k == l->nlevels) {
        passes = 1;
    } else {
        passes = fitting_passes(l, &s, k, piece);
        rest = l->level[k].count - pos / unit % l->level[k].count;
        if (passes > rest)
            passes = rest;
        if (l->level[k].stride < 0)
            low = onic_magnitude(l->level[k].stride) * (passes - 1);
    }
    for (unsigned i = 0; i < k; i++)
        if (l->level[i].stride < 0)
            low += onic_magnitude(l->level[i].stride) * (l->level[i].count - 1);
    c.lo = first - (int64_t)low;
    c.len = s.extent[k];
    if (k < l->nlevels)
        c.len += onic_magnitude(l->level[k].stride) * (passes - 1);
    c.bytes = unit * passes;
    return c;
}

void nicstride_sieve_total(const onic_layout_t *l, uint64_t piece, uint64_t gap_max,
                           double *pieces_p, double *bytes_p)
{
    nicstride_cover_t c;

    if (l->size == 0) {
        *pieces_p = *bytes_p = 0;
        return;
    }
    c = nicstride_sieve_next(l, 0, piece, gap_max);
    *pieces_p = (double)l->size / (double)c.bytes;
    *bytes_p = *pieces_p * (double)c.len;
}
