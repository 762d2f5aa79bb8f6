/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Shared by the costs of protocols: gathering, and registrations. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/model/link.h"
#include "pml_superpipe/protocols/row.h"

/** Mean bytes of a contiguous piece of a layout; at least 1. */
uint64_t superpipe_mean_block(const onic_layout_t *l);

/** The cost of a message by one of the node's ways, nanoseconds. */
double superpipe_way_cost(const superpipe_case_t *c, onic_way_t way);

/** The cost by the model of gathering or scattering this many bytes in pieces of `block`, ns. */
double superpipe_gather(const onic_link_t *link, uint64_t length, uint64_t block);

/** A process that was not seen in MPI for this many nanoseconds counts as away. One progress of the
 *  transport, which marks the process's page once, may copy fragments for nearly as long. */
#define SUPERPIPE_SEEN 20000

/** How long a sender on the node will not answer, nanoseconds, if it was last seen in MPI `unseen`
 *  nanoseconds ago. Its current work is expected to take as long again as it has taken, which is
 *  right on average if it is observed at a random moment. `away`: its server thread stands in for
 *  it, and is woken. */
double superpipe_answers_in(const onic_link_t *link, double unseen, bool away);

/*
 * ---- registrations ---------------------------------------------------------------------------
 *
 * A lower library that moves data directly between user buffers keeps them registered for later
 * use. This models such a cache, so that zero copy can be chosen for programs that reuse their
 * buffers, and the pipeline for others (A. Denis 2011, sections 2 and 7).
 */

/** Buffers remembered; the least recently used one is forgotten. */
#define SUPERPIPE_BUFFERS 32

/** The model of the cache. Initially all zero. */
typedef struct superpipe_reuse {
    struct {
        uint64_t start, length;
    } buffer[SUPERPIPE_BUFFERS]; /**< most recently used first */
    double hits;                 /**< the share of recent buffers that were found, 0 .. 1 */
} superpipe_reuse_t;

/** A buffer is about to be used. Returns the part of a registration's cost that the transfer should
 *  bear, 0 .. 1: none if the buffer lies in a remembered one; else the less, the more likely it is
 *  to be reused. */
double superpipe_reuse_note(superpipe_reuse_t *r, uint64_t start, uint64_t length);
