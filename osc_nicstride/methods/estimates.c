/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Which layouts each method can move, and what that costs by the model; see method.h. Pure.
 */
#include <math.h>

#include "common/model/pipeline.h"
#include "common/mover/pipe/chunks.h"
#include "osc_nicstride/methods/plan.h"
#include "osc_nicstride/methods/sieve.h"

static double gather_both(const nicstride_case_t *c)
{
    return onic_link_gather(&c->path->link, c->origin) +
           onic_link_gather(&c->path->link, c->target);
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
    return reads * link->call + (bytes + (double)c->target->size) * link->copy + gather_both(c);
}

/* ---- pack: messages -------------------------------------------------------------------------- */

double nicstride_pack_cost(const nicstride_case_t *c)
{
    return onic_link_packed(&c->path->link, (double)c->target->size) + gather_both(c);
}

/* ---- mover: the superpipeline ---------------------------------------------------------------- */

#define MOVER_SLOT 32768

/** Below a block there is nothing that could overlap. */
bool nicstride_mover_fits(const nicstride_case_t *c)
{
    return c->target->size > ONIC_MOVER_BLOCK;
}

/** Both sides gather and scatter at the same time: the slower one counts. */
double nicstride_mover_cost(const nicstride_case_t *c)
{
    const onic_link_t *link = &c->path->link;
    const double here = onic_link_gather(link, c->origin),
                 there = onic_link_gather(link, c->target);
    const onic_chunks_t chunks = onic_superpipeline_chunks(link, ONIC_MOVER_BLOCK, MOVER_SLOT);

    return link->message + (here > there ? here : there) +
           onic_superpipeline_time_blocks(link, &chunks, (double)c->target->size, ONIC_MOVER_BLOCK);
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

/** A request for each block of the target's, whose gather list has pieces of the origin's; more
 *  where these are more than lists hold. */
double nicstride_nic_cost(const nicstride_case_t *c)
{
    const onic_link_t *link = &c->path->link;
    const double here = (double)onic_layout_blocks(c->origin),
                 there = (double)onic_layout_blocks(c->target);
    const double pieces = fmax(here, there);

    return onic_link_requests(link, c->dir == NICSTRIDE_GET,
                              fmax(there, ceil(pieces / link->entries)), pieces,
                              (double)c->target->size);
}
