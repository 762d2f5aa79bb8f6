/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The transfers of this process. Locks, in this order: the transport lock, the pipeline's
 *  lock, which guards lists and marks and is never held while data moves or a callback runs. A
 * thread claims a transfer before it works on it. */
#pragma once

#include "common/pipeline/pipeline.h"
#include "common/pipeline/core/carrier.h"

/** The process's transfers. */
typedef struct onic_transfers {
    _Alignas(64) atomic_bool open;
    atomic_uint inside; /**< threads that make progress, or may start to */
    atomic_bool lock;
    /* Protected by it: */
    TAILQ_HEAD(, onic_transfer) under_way, pool[2]; /**< the pool by role */
    STAILQ_HEAD(, onic_transfer) reports;
    unsigned ntransfers; /**< number allocated */
    /** Transfers that are neither in the pool nor new. */
    _Alignas(64) atomic_uint active;
} onic_transfers_t;

extern onic_transfers_t onic_transfers;

/** Counts a thread as inside. False, without counting, if the pipeline is closed. */
bool onic_transfers_enter(void);
void onic_transfers_leave(void);

/** Allocates receivers, as many as a receive pool can have. False if memory is exhausted. */
bool onic_transfers_start(void);
/** Lets no more threads in; waits for those inside. */
void onic_transfers_shut(void);
/** Ends all transfers with an error. The transport lock is held, and no thread is inside. */
void onic_transfers_end_locked(void);
/** Frees the memory. No transfer is running, so all are in the pool. */
void onic_transfers_stop(void);

/** Takes one from the pool; `end`, which may be NULL, stays the caller's until onic_transfer_begun.
 *  NULL if there is none. */
onic_transfer_t *onic_transfer_new(onic_role_t role, const onic_carrier_t *carrier,
                                   onic_peer_t *peer, const onic_pipeline_end_t *end);
/** The transfer has begun: it owns the end's layout from now on. */
void onic_transfer_begun(onic_transfer_t *t, onic_pipeline_end_t *end);
/** From now on threads may work on it. */
void onic_transfer_queue(onic_transfer_t *t);
/** Drops a new transfer that could not begin; its end stays the caller's. */
void onic_transfer_drop(onic_transfer_t *t);
/** True if a transfer with that peer is running. The transport lock is held. */
bool onic_transfers_name(const onic_peer_t *peer);

/* work.c */
/** Handles requests of other threads, then moves at most `limit` pieces; returns how many. The
 *  caller has claimed the transfer. Sets over, reports and status. */
int onic_transfer_work(onic_transfer_t *t, int limit);
