/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Which layouts each method can move, and what that costs; see method.h. Pure. */
#include <math.h>

#include "common/model/pipeline.h"
#include "common/mover/pipe/chunks.h"
#include "osc_nicstride/methods/plan.h"
#include "osc_nicstride/methods/sieve.h"

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

static bool is_contig(const nicstride_case_t *c)
{
    return onic_layout_is_contig(c->origin) && onic_layout_is_contig(c->target) &&
           c->origin->size > 0;
}

bool nicstride_zcopy_fits(const nicstride_case_t *c)
{
    return is_contig(c);
}

double nicstride_zcopy_cost(const nicstride_case_t *c)
{
    const onic_link_t *link = &c->path->link;

    return link->message + link->rendezvous + (double)c->target->size * link->rndv_byte;
}

/* ---- rdma: one request of the adapter -------------------------------------------------------- */

bool nicstride_rdma_fits(const nicstride_case_t *c)
{
    return c->dir != NICSTRIDE_ACC && is_contig(c);
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
