/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Which schedule (schedule.h) the chunks of a transfer have: what the user has chosen, for a link
 * and a length. Sections and equations are those of A. Denis (2011). Pure.
 */
#ifndef ONIC_POLICY_H
#define ONIC_POLICY_H

#include <stdint.h>

#include "common/model/link.h"
#include "common/mover/pipe/schedule.h"
#include "common/support/export.h"

typedef enum onic_policy_kind {
    ONIC_POLICY_AUTO,  /**< the one of the others that was found to be the best for the carrier */
    ONIC_POLICY_SLOT,  /**< every chunk fills a slot */
    ONIC_POLICY_MODEL, /**< section 4: C0 = Bcopy 2 lambda, q = Bcopy / Bnet (equation 5), by the
                             numbers of the link */
    ONIC_POLICY_PAPER, /**< the same with C0 = 12 KiB and q = 1.5, which the paper recommends where
                          they are not known (end of section 4) */
    ONIC_POLICY_OPTIMAL, /**< section 3: chunks of one size, C_opt (equation 3) for the length of
                            the transfer, by the numbers of the link */
    ONIC_POLICIES
} onic_policy_kind_t;

typedef struct onic_policy {
    onic_policy_kind_t kind;
    double c0; /**< bytes of the first chunk; 0: as the kind says */
    double q;  /**< how many times as long each next one is; 0: as the kind says */
} onic_policy_t;

/** "auto", "slot", "model", "paper", "optimal": for parameters. */
ONIC_EXPORT const char *onic_policy_name(onic_policy_kind_t kind);
/** ONIC_POLICIES where there is none of that name. */
ONIC_EXPORT onic_policy_kind_t onic_policy_named(const char *name);

/**
 * The schedule of a transfer of `len` > 0 bytes through slots of `slot` bytes, in multiples of
 * `unit` (1 .. slot). `best` stands for ONIC_POLICY_AUTO, and is another one. A chunk never exceeds
 * a slot. Chunks do not shrink unless p->q says so: where copying is slower than the network, q of
 * the link counts as 1.
 */
ONIC_EXPORT void onic_policy_schedule(const onic_policy_t *p, onic_policy_kind_t best,
                                      const onic_link_t *link, uint64_t len, uint32_t unit,
                                      uint32_t slot, onic_schedule_t *s);

#endif
