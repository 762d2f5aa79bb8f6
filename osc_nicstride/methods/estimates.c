/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/methods/estimates.h"

#include "common/model/pipeline.h"
#include "common/mover/schedule.h"
#include "osc_nicstride/methods/sieve.h"

/* ---- direct: load and store ------------------------------------------------------------------ */

bool nicstride_direct_can(nicstride_direction_t dir, const onic_layout_t *origin,
                          const onic_layout_t *target, const nicstride_caps_t *caps)
{
    (void)dir;
    (void)origin;
    (void)target;
    return caps->direct;
}

/** Nothing that another method would not do as well. */
double nicstride_direct_cost(nicstride_direction_t dir, const onic_layout_t *origin,
                             const onic_layout_t *target, const nicstride_path_t *path)
{
    (void)dir;
    (void)origin;
    (void)target;
    (void)path;
    return 0;
}

/* ---- cma: single copy of each piece ---------------------------------------------------------- */

bool nicstride_cma_can(nicstride_direction_t dir, const onic_layout_t *origin,
                       const onic_layout_t *target, const nicstride_caps_t *caps)
{
    (void)dir;
    (void)origin;
    (void)target;
    return caps->single_copy && !caps->torn;
}

double nicstride_cma_cost(nicstride_direction_t dir, const onic_layout_t *origin,
                          const onic_layout_t *target, const nicstride_path_t *path)
{
    const uint64_t a = onic_layout_blocks(origin), b = onic_layout_blocks(target);

    (void)dir;
    return onic_link_strided(&path->link, (double)(a > b ? a : b), (double)target->size);
}

/* ---- sieve: single copy of the covering extent, then gather ---------------------------------- */

bool nicstride_sieve_can(nicstride_direction_t dir, const onic_layout_t *origin,
                         const onic_layout_t *target, const nicstride_caps_t *caps)
{
    (void)origin;
    return caps->single_copy && dir == NICSTRIDE_GET && target->nruns == 0 && target->size > 0;
}

double nicstride_sieve_cost(nicstride_direction_t dir, const onic_layout_t *origin,
                            const onic_layout_t *target, const nicstride_path_t *path)
{
    const onic_link_t *link = &path->link;
    double reads, bytes;

    (void)dir;
    nicstride_sieve_total(target, path->sieve_piece, NICSTRIDE_SIEVE_GAP, &reads, &bytes);
    return reads * link->call + (bytes + (double)target->size) * link->copy +
           onic_link_gather(link, target) + onic_link_gather(link, origin);
}

/* ---- pack: messages -------------------------------------------------------------------------- */

bool nicstride_pack_can(nicstride_direction_t dir, const onic_layout_t *origin,
                        const onic_layout_t *target, const nicstride_caps_t *caps)
{
    (void)dir;
    (void)origin;
    (void)target;
    (void)caps;
    return true;
}

double nicstride_pack_cost(nicstride_direction_t dir, const onic_layout_t *origin,
                           const onic_layout_t *target, const nicstride_path_t *path)
{
    const onic_link_t *link = &path->link;

    (void)dir;
    return onic_link_packed(link, (double)target->size) + onic_link_gather(link, origin) +
           onic_link_gather(link, target);
}

/* ---- mover: the superpipeline ---------------------------------------------------------------- */

#define MOVER_SLOT 32768

bool nicstride_mover_can(nicstride_direction_t dir, const onic_layout_t *origin,
                         const onic_layout_t *target, const nicstride_caps_t *caps)
{
    (void)dir;
    (void)origin;
    /* Below a block there is nothing that could overlap. */
    return caps->mover && target->size > ONIC_MOVER_BLOCK;
}

/** Both sides gather and scatter at the same time: the slower one counts. */
double nicstride_mover_cost(nicstride_direction_t dir, const onic_layout_t *origin,
                            const onic_layout_t *target, const nicstride_path_t *path)
{
    const onic_link_t *link = &path->link;
    const double here = onic_link_gather(link, origin), there = onic_link_gather(link, target);
    const onic_chunks_t chunks = onic_superpipeline_chunks(link, ONIC_MOVER_BLOCK, MOVER_SLOT);

    (void)dir;
    return link->message + (here > there ? here : there) +
           onic_superpipeline_time_blocks(link, &chunks, (double)target->size, ONIC_MOVER_BLOCK);
}

/* ---- zcopy: rendezvous ----------------------------------------------------------------------- */

bool nicstride_zcopy_can(nicstride_direction_t dir, const onic_layout_t *origin,
                         const onic_layout_t *target, const nicstride_caps_t *caps)
{
    (void)dir;
    return !caps->no_rendezvous && onic_layout_is_contig(origin) && onic_layout_is_contig(target) &&
           origin->size > 0;
}

double nicstride_zcopy_cost(nicstride_direction_t dir, const onic_layout_t *origin,
                            const onic_layout_t *target, const nicstride_path_t *path)
{
    const onic_link_t *link = &path->link;

    (void)dir;
    (void)origin;
    return link->message + link->rendezvous + (double)target->size * link->rndv_byte;
}
