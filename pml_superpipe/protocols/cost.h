/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What the costs of protocols share: gathering, and registrations. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/model/link.h"
#include "pml_superpipe/protocols/row.h"

/** Bytes of a contiguous piece of a layout, on average; at least 1. */
uint64_t superpipe_mean_block(const onic_layout_t *l);

/** What a way of the node costs a message, nanoseconds. */
double superpipe_way_cost(const superpipe_case_t *c, onic_way_t way);

/** What gathering or scattering so many bytes in pieces of `block` costs by the model, ns. */
double superpipe_gather(const onic_link_t *link, uint64_t length, uint64_t block);

/** From so many nanoseconds on a process that was not seen in MPI is elsewhere. One progress of the
 *  wire, which marks its page once, may copy fragments for nearly as long. */
#define SUPERPIPE_SEEN 20000

/** How long a sender on the node will not answer, nanoseconds, if it was not seen in MPI for so
 *  many. What it does will take as long again as it has taken: nobody knows better, and it is right
 *  on average for what is met at any moment of it. `away`: its server thread stands in for it, and
 *  is woken. */
double superpipe_answers_in(const onic_link_t *link, double unseen, bool away);

/*
 * ---- registrations ---------------------------------------------------------------------------
 *
 * A library below that moves data between user memory keeps it registered for buffers that come
 * back. What such a cache would find is followed here, so that the choice can take zero copy for
 * programs that use the same buffers again, and the pipeline for others (A. Denis 2011, sections 2
 * and 7).
 */

/** Buffers that are remembered; the one that was used longest ago is forgotten. */
#define SUPERPIPE_BUFFERS 32

/** All zero: nothing has been seen. */
typedef struct superpipe_reuse {
    struct {
        uint64_t start, length;
    } buffer[SUPERPIPE_BUFFERS]; /**< the one that was used last is the first */
    double hits;                 /**< the share of buffers lately that had come back, 0 .. 1 */
} superpipe_reuse_t;

/** A buffer is about to be used. Returns the part of a registration's cost that the transfer should
 *  bear, 0 .. 1: nothing where it lies in one that is remembered (`*hit_p`); else the less, the
 *  more likely it is to be used again. */
double superpipe_reuse_note(superpipe_reuse_t *r, uint64_t start, uint64_t length, bool *hit_p);
