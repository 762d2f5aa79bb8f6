/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * A process's inbox: the segment of shared memory through which the other processes of its job and
 * node send to it, with one queue (queue.h) for each of them.
 *
 * Every process that is asked for it makes one, and publishes its key. A process that first sends
 * there (outbox.h) gives memory to the beginning of its own queue and marks it as in use, so only
 * what is used of queues takes up memory.
 *
 * One thread at a time uses the functions, but where any thread is said to be allowed.
 */
#ifndef ONIC_INBOX_H
#define ONIC_INBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/node/node.h"
#include "common/node/queue.h"

/** Of this form of the segment. */
#define ONIC_INBOX_MARK UINT64_C(0x6f6e69632d717531)

/** What stands before the queues. */
typedef struct onic_inbox_head {
    uint64_t mark;
    uint32_t nqueues;
    uint32_t ring_bytes;
    /** Grows when one more queue is in use. */
    _Alignas(ONIC_QUEUE_LINE) _Atomic uint32_t senders;
    /** By the sender's number on the node: the name of the process whose queue it is, and 1; or one
     *  of these. */
    _Alignas(ONIC_QUEUE_LINE) _Atomic uint64_t owner[];
} onic_inbox_head_t;

enum { ONIC_QUEUE_NOBODY = 0 };
/** Some process is about to use it. */
#define ONIC_QUEUE_CLAIMED UINT64_MAX

/** Where the queue of the process with number `i` begins; i = nqueues: the length of all. */
size_t onic_inbox_queue_at(uint32_t nqueues, uint32_t ring_bytes, uint32_t i);

/** Processes of this job on this node, this one among them. */
uint32_t onic_processes_here(void);

/** This process's. Read by the inline functions below; written by inbox.c alone. */
typedef struct onic_inbox {
    onic_segment_t segment; /**< no base: there is no inbox */
    onic_segment_key_t key;
    onic_queue_receiver_t *receiver; /**< of the queues in use */
    uint64_t *owner;                 /**< of each of those */
    _Atomic uint32_t nreceivers;
    _Atomic uint32_t senders; /**< that were seen in the head */
    bool *seen;               /**< by the sender's number */
    uint32_t ring_bytes;
} onic_inbox_t;

extern onic_inbox_t onic_inbox;

/** Makes it, if it can be had; `bytes` of memory at most, of all queues together; 0: none. */
void onic_inbox_open(size_t bytes);
void onic_inbox_close(void);

/** Others have begun to send: finds their queues. */
void onic_inbox_meet(void);

/** Looks for others that have begun to send. Returns how many queues are in use. */
static inline uint32_t onic_inbox_look(void)
{
    const onic_inbox_head_t *head = onic_inbox.segment.base;

    if (head == NULL) {
        return 0;
    }
    if (atomic_load_explicit(&head->senders, memory_order_acquire) !=
        atomic_load_explicit(&onic_inbox.senders, memory_order_relaxed)) {
        onic_inbox_meet();
    }
    return atomic_load_explicit(&onic_inbox.nreceivers, memory_order_relaxed);
}

/** May a message have come? A guess; any thread. */
bool onic_inbox_has_messages(void);

#endif
