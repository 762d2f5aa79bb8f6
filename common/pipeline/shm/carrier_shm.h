/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The carrier within a node: this process's receive pool, and those mapped here. */
#pragma once

#include "common/pipeline/shm/rx_pool.h"
#include "common/pipeline/core/carrier.h"
#include "common/pipeline/core/schedules.h"
#include "common/transport/transport.h"

/** The record of a peer of the node, from first use until the pipeline is closed. */
typedef struct onic_node_peer {
    struct onic_node_peer *next;
    onic_peer_t *peer;
    bool tried;             /**< it is reached, or never will be */
    bool reached;           /**< its receive pool is mapped */
    onic_rx_pool_t rx_pool; /**< as mapped here */
} onic_node_peer_t;

typedef struct onic_node_state {
    bool exists; /**< there is a receive pool; does not change while the pipeline is open */
    onic_rx_pool_t rx_pool;
    onic_segment_key_t key;
    onic_schedule_choice_t schedule; /**< of what this process sends */
    onic_node_peer_t *peers;         /**< under the transport lock */
} onic_node_state_t;

/* Exported for the tests of the pipeline. */
ONIC_EXPORT extern onic_node_state_t onic_node_state;

extern const onic_carrier_t onic_carrier_node;

/** Makes the receive pool of `bytes` (0: none) and offers it to the peers of the node, if data may
 *  go through shared memory. If that fails there is none. */
void onic_node_open(size_t bytes, size_t buffer, const onic_schedule_choice_t *schedule);
/** Closes it, after the last transfer. */
void onic_node_close(void);

/** Frees all records, after the last transfer. */
void onic_node_forget_all(void);
