/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The transfers of this process. Locks, in this order: the transport lock, the pipeline's
 *  lock, which guards lists and marks and is never held while data moves or a callback runs. A
 *  thread that works on a transfer has claimed it before. */
#pragma once

#include "common/pipeline/pipeline.h"
#include "common/pipeline/core/carrier.h"

/** The process's transfers. */
typedef struct onic_transfers {
    _Alignas(64) atomic_bool open;
    atomic_uint inside; /**< threads that make progress, or may begin to */
    atomic_bool lock;
    /* Under it: */
    TAILQ_HEAD(, onic_transfer) under_way, pool[2]; /**< the pool by role */
    STAILQ_HEAD(, onic_transfer) reports;
    unsigned ntransfers; /**< in memory */
    /** Transfers that are not in the pool nor new. */
    _Alignas(64) atomic_uint active;
} onic_transfers_t;

extern onic_transfers_t onic_transfers;

/** Counts a thread as inside; false, and it is not, where the pipeline is closed. */
bool onic_transfers_enter(void);
void onic_transfers_leave(void);

/** Memory for receivers, as many as a receive pool can have. False where there is none. */
bool onic_transfers_start(void);
/** No thread comes in any more; waits for those that are inside. */
void onic_transfers_shut(void);
/** Ends all with an error. The transport lock is held, no thread is inside. */
void onic_transfers_end_locked(void);
/** Frees the memory: nothing is under way, so all are in the pool. */
void onic_transfers_stop(void);

/** One from the pool with an end, NULL for none, which stays the caller's until
 *  onic_transfer_begun. NULL where there is none. */
onic_transfer_t *onic_transfer_new(onic_role_t role, const onic_carrier_t *carrier,
                                   onic_peer_t *peer, const onic_pipeline_end_t *end);
/** It has begun: the end's layout is the transfer's now. */
void onic_transfer_begun(onic_transfer_t *t, onic_pipeline_end_t *end);
/** From now on threads may work on it. */
void onic_transfer_queue(onic_transfer_t *t);
/** A new one that comes to nothing; its end is the caller's. */
void onic_transfer_drop(onic_transfer_t *t);
/** True if a transfer with that peer is under way. The transport lock is held. */
bool onic_transfers_name(const onic_peer_t *peer);

/* work.c */
/** Does what others have asked for, then at most `limit` pieces of what can be done now; returns
 *  how many. The caller has claimed it. Sets over, reports and status. */
int onic_transfer_work(onic_transfer_t *t, int limit);
