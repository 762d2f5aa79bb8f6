/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The rows of protocols as tests of choices see them: what they ask of a peer has an answer
 *  here, in place of the transport's. For one file of a program. */
#pragma once

#include "common/pipeline/pipeline.h"
#include "pml_superpipe/protocols/process.h"

/** What any peer can be reached by, and whether this process has slots. */
static struct {
    bool copy, pipeline, slots;
} reach;

/** A process with all that there may be. */
static inline void reach_all(void)
{
    superpipe.params.single_copy = true;
    reach.copy = reach.pipeline = reach.slots = true;
}

/** Some peer: the functions below do not look at it. */
static inline onic_peer_t *some_peer(void)
{
    static char peer;

    return (onic_peer_t *)(void *)&peer;
}

bool onic_peer_can_cma(onic_peer_t *peer)
{
    (void)peer;
    return reach.copy;
}

bool onic_pipeline_reaches_locked(onic_peer_t *peer)
{
    (void)peer;
    return reach.pipeline;
}

size_t onic_pipeline_rx_bytes(void)
{
    return reach.slots ? 1 << 20 : 0;
}
