/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file How the segment is laid out through which processes of a node send; see wire_queue.c. */
#ifndef ONIC_WIRE_QUEUE_H
#define ONIC_WIRE_QUEUE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "common/node/queue.h"
#include "opal/util/proc.h"

/** Of this form of the segment. */
#define ONIC_QUEUES_MARK UINT64_C(0x6f6e69632d717531)

/** What stands before the queues. */
typedef struct onic_queues_head {
    uint64_t mark;
    uint32_t nqueues;
    uint32_t ring_bytes;
    /** Grows when one more queue is in use. */
    _Alignas(ONIC_QUEUE_LINE) _Atomic uint32_t senders;
    /** By the sender's number on the node: whose queue it is, its name and 1; or one of these. */
    _Alignas(ONIC_QUEUE_LINE) _Atomic uint64_t owner[];
} onic_queues_head_t;

enum { ONIC_QUEUE_NOBODY = 0 };
/** Somebody is about to use it. */
#define ONIC_QUEUE_CLAIMED UINT64_MAX

static inline size_t onic_whole_pages(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (bytes + page - 1) / page * page;
}

/** Bytes before the first queue. */
static inline size_t onic_queues_head_bytes(uint32_t nqueues)
{
    return onic_whole_pages(sizeof(onic_queues_head_t) + nqueues * sizeof(uint64_t));
}

/** Where the queue of the process with number `i` begins. */
static inline size_t onic_queues_at(uint32_t nqueues, uint32_t ring_bytes, uint32_t i)
{
    return onic_queues_head_bytes(nqueues) + i * onic_whole_pages(onic_queue_bytes(ring_bytes));
}

/** Processes of this job on this node, this one among them. */
static inline uint32_t onic_processes_here(void)
{
    return (uint32_t)opal_process_info.num_local_peers + 1;
}

#endif
