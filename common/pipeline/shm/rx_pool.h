/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A receive pool: buffers and their words in nameless memory shared by the processes of a
 *  node. It is larger than one L2: if a line is still in the receiver's L2, a sender that writes it
 *  again has to invalidate it.
 *
 *  At first only the words have memory. The first process that leases a buffer allocates its
 *  memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/pipeline/core/pool.h"
#include "common/transport/shm/node.h"

/** A receive pool as this process has it mapped. */
typedef struct onic_rx_pool {
    onic_segment_t segment;
    onic_pool_t pool;
    char *buffers;
    uint32_t buffer_bytes;
    onic_file_key_t file; /**< the segment's; its maker has it open */
    bool far;             /**< its owner shares no cache and no package with this process */
} onic_rx_pool_t;

/** Default bytes of a receive pool: two L2 caches, 1 .. 16 MiB. */
size_t onic_rx_pool_derived(void);

/** Makes this process's receive pool; its buffers have no memory yet. False if that fails;
 *  otherwise onic_rx_pool_close must follow. Prints nothing. */
bool onic_rx_pool_make(size_t bytes, size_t buffer, onic_rx_pool_t *rx_pool,
                       onic_segment_key_t *key);

/** Maps another process's receive pool: onic_segment_unmap ends that. */
bool onic_rx_pool_map(const onic_segment_key_t *key, onic_rx_pool_t *rx_pool);

/** Those of `buffers` that have memory, which is allocated if `make`. */
uint64_t onic_rx_pool_have(onic_rx_pool_t *rx_pool, uint64_t buffers, bool make);

/** Called by its maker: nobody can map it from then on; a process that has mapped it keeps the
 *  memory. */
void onic_rx_pool_close(onic_rx_pool_t *rx_pool, onic_segment_key_t *key);

static inline char *onic_rx_pool_buffer(const onic_rx_pool_t *rx_pool, unsigned buffer)
{
    return rx_pool->buffers + (size_t)buffer * rx_pool->buffer_bytes;
}
