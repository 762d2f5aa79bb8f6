/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A process's inbox: the segment of shared memory with its signs of life (presence.h) and
 *  one queue (queue.h) for each process of its job and node, itself included; and an outbox: this
 *  process's own queue in the inbox of one of them. A process that first sends there maps its own
 *  queue and gives memory to the beginning of that, so only what is used takes up memory: two pages
 *  for each sender, and more for those that need it, as long as there is some left of what all
 *  queues together may have.
 *
 *  A server thread that stands in for the MPI threads shows when it sleeps (presence.h), and looks
 *  at its queues once more before; a sender that has put a one-sided operation into one sees that,
 *  and wakes it. Other threads that sleep are woken by processes that wait for them.
 *
 *  One thread at a time uses the functions, but where any thread is said to be allowed. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/transport/shm/node.h"
#include "common/transport/row/payload.h"
#include "common/transport/shm/presence.h"
#include "common/transport/shm/queue.h"
#include "common/transport/shm/segment.h"

/** What stands before the queues. */
typedef struct onic_inbox_head {
    onic_presence_t presence; /**< first */
    uint32_t nqueues;         /**< 0: there are none */
    uint32_t ring_bytes;
    /** Bytes by which rounds may still become longer, of all queues together. */
    _Atomic uint64_t spare;
    /** Grows when one more queue is in use. */
    _Alignas(ONIC_QUEUE_LINE) _Atomic uint32_t senders;
    /** By the sender's number on the node: its name, and 1; or NOBODY or TAKEN (inbox.c). */
    _Alignas(ONIC_QUEUE_LINE) _Atomic uint64_t owner[];
} onic_inbox_head_t;

/** A queue that is in use. */
typedef struct onic_inbox_queue {
    onic_queue_receiver_t receiver;
    uint64_t owner;
    struct onic_peer *sender; /**< the same, once it has named itself in a message */
} onic_inbox_queue_t;

/** This process's. Read by the inline functions below; written by inbox.c alone. */
typedef struct onic_inbox {
    onic_segment_t segment; /**< no base: there is no inbox */
    onic_segment_key_t key;
    onic_inbox_queue_t *queue; /**< those in use, in the order in which they were found */
    _Atomic uint32_t nqueues;
    _Atomic uint32_t senders; /**< that were seen in the head */
} onic_inbox_t;

extern onic_inbox_t onic_inbox;

/** Makes it, if it can be had; `bytes` of memory at most, of all queues together, but what each
 *  sender needs at least; 0: without queues. */
void onic_inbox_open(size_t bytes);
void onic_inbox_close(void);

/** Finds the queues of processes that have begun to send. */
void onic_inbox_meet(void);

/** Looks for others that have begun to send. Returns how many queues are in use. */
static inline uint32_t onic_inbox_look(void)
{
    const onic_inbox_head_t *head = onic_inbox.segment.base;

    if (head == NULL)
        return 0;
    if (atomic_load_explicit(&head->senders, memory_order_acquire) !=
        atomic_load_explicit(&onic_inbox.senders, memory_order_relaxed))
        onic_inbox_meet();
    return atomic_load_explicit(&onic_inbox.nqueues, memory_order_relaxed);
}

/** True if a message may have come: a guess. Any thread. */
bool onic_inbox_has_messages(void);

/* ---- another process's ----------------------------------------------------------------------- */

/** True if the key is that of an inbox with queues. */
bool onic_inbox_has_queues(const onic_segment_key_t *key);

/** Maps the head of another process's inbox; NULL where it cannot be had. Any thread. */
onic_inbox_head_t *onic_inbox_map(const onic_segment_key_t *key);
void onic_inbox_unmap(onic_inbox_head_t *head, const onic_segment_key_t *key);

/* ---- sending --------------------------------------------------------------------------------- */

/** Every queue takes messages of so many bytes, header and payload, and none takes longer ones than
 *  so many. */
#define ONIC_OUTBOX_LEAST (ONIC_QUEUE_ROUND - ONIC_QUEUE_LINE)
#define ONIC_OUTBOX_MOST  (2 * (ONIC_QUEUE_ROUND + ONIC_QUEUE_LINE))

typedef struct onic_outbox {
    onic_queue_sender_t sender;
    bool far;                /**< the receiver shares no cache with this one */
    onic_inbox_head_t *head; /**< of the inbox that it belongs to */
    onic_mapped_t queue;
    onic_file_key_t file;
    const onic_file_key_t *wake; /**< what wakes the server thread of the inbox's process */
    unsigned woken;              /**< the last sleep of that thread that this process has ended */
} onic_outbox_t;

/** Takes this process's queue in the inbox of that key and head, and gives memory to its beginning.
 *  `me` is the name that the receiver finds with the queue; `wake` is the pipe of the process whose
 *  inbox it is, the caller's as the head is until the outbox is closed. False: not to be had. */
bool onic_outbox_open(onic_outbox_t *out, const onic_segment_key_t *key, onic_inbox_head_t *head,
                      uint64_t me, const onic_file_key_t *wake);
void onic_outbox_close(onic_outbox_t *out);

/** Most bytes of a message: it makes the round longer for one of so many, if it can. */
size_t onic_outbox_most(onic_outbox_t *out, size_t wanted);

/** Sends a message; false if it is longer than onic_outbox_most or there is no room now. `wakes`:
 *  the receiver's server thread is woken for it. */
bool onic_outbox_put(onic_outbox_t *out, uint8_t id, const void *header, size_t header_len,
                     const onic_payload_t *payload, bool wakes);

/** By a server thread that stands in: it sleeps from now on, for the `nap`-th time; 0: no longer.
 *  It looks at its queues once more behind this. */
void onic_outbox_park(unsigned nap);
