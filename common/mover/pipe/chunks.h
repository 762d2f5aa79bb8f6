/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Sizes of the chunks into which a transfer is cut; sections and equations are those of A.
 *  Denis (2011). Those by the numbers of a link have not been faster on any machine so far, and are
 *  here to be compared with. Pure. */
#ifndef ONIC_CHUNKS_H
#define ONIC_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/link.h"
#include "common/support/export.h"

/** Between processes of a node: bytes after which what has been packed is shown to the receiver
 *  (section 4, sub-blocking). Shorter transfers have nothing that could overlap. */
#define ONIC_MOVER_BLOCK 16384

/** What comes next. Copied to look ahead. */
typedef struct onic_schedule {
    double next;      /**< bytes of the next chunk, before they are rounded */
    double q;         /**< what it is multiplied by after each chunk */
    uint32_t unit;    /**< chunks are multiples of this */
    uint32_t highest; /**< most bytes of a chunk */
} onic_schedule_t;

/** Chunks of c0, c0 * q, c0 * q^2 and so on, each a multiple of `unit` (1 .. slot) and no longer
 *  than `slot`. q above 1: they grow until they fill a slot; below 1, where the network is faster
 *  than copying, they shrink. A c0 or q that is no positive number stands for a slot, and for 1. */
ONIC_EXPORT void onic_schedule_growing(onic_schedule_t *s, double c0, double q, uint32_t unit,
                                       uint32_t slot);

/** All chunks of one size: growing with q = 1. */
ONIC_EXPORT void onic_schedule_fixed(onic_schedule_t *s, double chunk, uint32_t unit,
                                     uint32_t slot);

/** End of section 4: C0 = 12 KiB and q = 1.5, where the numbers of the link are not known. */
ONIC_EXPORT void onic_schedule_paper(onic_schedule_t *s, uint32_t unit, uint32_t slot);

/** Section 4: C0 = Bcopy 2 lambda, q = Bcopy / Bnet (equation 5). Where copying is slower than the
 *  network, q is 1: chunks do not shrink. */
ONIC_EXPORT void onic_schedule_model(onic_schedule_t *s, const onic_link_t *link, uint32_t unit,
                                     uint32_t slot);

/** Section 3: chunks of one size, C_opt (equation 3) for a transfer of `len` > 0 bytes. */
ONIC_EXPORT void onic_schedule_optimal(onic_schedule_t *s, const onic_link_t *link, uint64_t len,
                                       uint32_t unit, uint32_t slot);

/** Bytes of the next chunk, but for the last one of a transfer, which is what is left. */
ONIC_EXPORT uint32_t onic_schedule_next(onic_schedule_t *s);

/** Do the next `chunks` hold `bytes`, though each may be cut short by less than `slack` bytes? */
ONIC_EXPORT bool onic_schedule_holds(const onic_schedule_t *s, unsigned chunks, uint64_t bytes,
                                     uint32_t slack);

#endif
