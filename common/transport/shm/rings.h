/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The row of shared memory: messages between processes of a job and node, through the rings
 *  of queue.h. The transport lock is held, if not said otherwise. */
#pragma once

#include <stdbool.h>

#include "common/support/export.h"
#include "common/transport/row/message_types.h"

/** True if messages to this peer go, or may go, through a ring. */
ONIC_EXPORT bool onic_peer_has_queue(const onic_peer_t *peer);

/** Called by a handler: ends this progress of the message's ring. What follows the message stays
 *  there until the next progress. */
ONIC_EXPORT void onic_transport_end_turn_locked(void);

/** What has gone through rings, in this process, since it began. */
typedef struct onic_queue_counters {
    unsigned long long received; /**< messages that came through a ring */
    unsigned long long waited;   /**< messages that waited for room in another process's ring */
} onic_queue_counters_t;

ONIC_EXPORT extern onic_queue_counters_t onic_queue_counters;

extern const struct onic_row onic_row_shm;
