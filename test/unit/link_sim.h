/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What methods take over a network, by simulation of events: host processors, adapters and wires
 * are stations that serve one thing after another; messages, chunks and requests go through them.
 * It knows none of the models' equations. Of the numbers of a link it uses only those that one
 * station takes for one thing, and `message`, from which it has the host's part of a message.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/model/link.h"

/** A transfer. */
typedef struct sim_case {
    const onic_link_t *link;
    bool get;
    uint64_t bytes;
    double slot;                      /**< bytes of a slot */
    double piece;                     /**< host's time for a piece that is transferred by itself */
    uint64_t here, there;             /**< blocks at the origin and at the target */
    double gather_here, gather_there; /**< what gathering or scattering all of them takes */
} sim_case_t;

/** Nanoseconds from the call to the end of the flush behind it, with a target that is in MPI. */
double sim_pack(const sim_case_t *c);     /**< fragments by messages */
double sim_pipeline(const sim_case_t *c); /**< slots, the paper's chunks (C0 = 12 KiB, q = 1.5) */
double sim_nic(const sim_case_t *c);      /**< a request for each piece */
double
sim_one_chunk(const sim_case_t *c); /**< the same slots, but all is packed, moved, unpacked */
double sim_one_by_one(const sim_case_t *c); /**< each piece by a request of its own */
