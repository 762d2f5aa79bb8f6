/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Equations of the superpipeline paper that the product has no use for: its transfers begin
 * in the handshake, and on a node with chunks that fill a slot. */
#pragma once

#include <math.h>

#include "common/model/pipeline.h"

/** Equation (3): the best size of chunks; where q < 1 no more than what takes as long to copy as to
 *  move. All L where that would be less than one chunk, as it is for short transfers. */
static inline double pipeline_paper_chunk(const onic_link_t *link, double bytes)
{
    /* A byte that takes longer to copy than to move: from some size of chunks on moving is hidden
     * behind copying, and longer ones only take longer at both ends. */
    const double behind = 1 / link->bcopy - 1 / link->bnet;
    const double most = behind > 0 ? link->gap / behind : INFINITY;

    return fmin(bytes, fmin(most, sqrt(bytes * link->gap * link->bcopy / 2)));
}

/** Equation (8): the same as (9), but that nothing is copied before the clock starts, and chunks
 * are taken whole. */
static inline double pipeline_paper_time(const onic_link_t *link, const onic_chunks_t *c,
                                         double bytes)
{
    onic_link_t link_begun = *link;

    link_begun.latency = 0;
    return link->latency + onic_superpipeline_time_blocks(&link_begun, c, bytes, INFINITY);
}
