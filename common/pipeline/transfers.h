/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The transfers of this process. The transport lock protects them, and is held while their
 *  data moves: a few pieces at a time, so that other threads get it in between. */
#pragma once

#include "common/pipeline/pipeline.h"
#include "common/pipeline/core/carrier.h"

/** Makes a transfer; `end`, which may be NULL, stays the caller's until onic_transfer_begun. NULL
 *  if memory is exhausted. */
onic_transfer_t *onic_transfer_new(onic_role_t role, const onic_carrier_t *carrier,
                                   onic_peer_t *peer, const onic_pipeline_end_t *end);
/** The transfer has begun: it owns the end's layout, and is advanced, from now on. */
void onic_transfer_begun(onic_transfer_t *t, onic_pipeline_end_t *end);

/** Advances all transfers by some pieces each, and reports those that have ended. Returns how many
 *  pieces and reports that were. */
int onic_transfers_progress(void);
/** Ends all transfers with an error, reports them, and frees them. */
void onic_transfers_end(void);
