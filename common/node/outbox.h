/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * A process's own queue in the inbox of another one of its job and node.
 *
 * A server thread that stands in for the MPI threads shows when it sleeps (presence.h), and looks
 * at its queues once more before it does; a sender that has put a one-sided operation into one then
 * sees that, and wakes it. For that order the sleeping side makes the barrier of both
 * (membarrier.h), which takes it 7 us, so that a message needs none. Where its kernel refuses that
 * it sleeps a millisecond at a time; where the sender's does, the sender makes a barrier with each
 * message. So there are queues only to processes that this one can wake. Other threads that sleep
 * are woken by processes that wait for them, not by messages.
 *
 * One thread at a time.
 */
#ifndef ONIC_OUTBOX_H
#define ONIC_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/node/payload.h"
#include "common/node/presence.h"
#include "common/node/queue.h"
#include "common/node/stores.h"

/** Every queue takes messages of so many bytes, header and payload. */
#define ONIC_OUTBOX_LEAST 4608

typedef struct onic_outbox {
    onic_queue_sender_t sender;
    size_t message_max;
    onic_stores_t stores[2]; /**< of payloads, by whether they are contiguous */
    onic_segment_t segment;
    onic_file_key_t file;
    const onic_presence_t *owner; /**< the page of the process whose inbox it is */
    int pipe;                     /**< and what wakes its server thread */
    unsigned woken;               /**< the sleep of that thread that has been ended */
} onic_outbox_t;

/** Can there be an inbox where the key says so? */
bool onic_outbox_can_open(const onic_segment_key_t *key);

/**
 * Takes this process's queue in another process's inbox, and gives memory to its beginning.
 *
 * @param key    of the inbox
 * @param me     this process's name, which the receiver finds with the queue
 * @param owner  the page of the process whose inbox it is, and the pipe that wakes it: the
 * caller's, until the outbox is closed
 * @return false where it cannot be had; nothing is open then
 */
bool onic_outbox_open(onic_outbox_t *out, const onic_segment_key_t *key, uint64_t me,
                      const onic_presence_t *owner, int pipe);
void onic_outbox_close(onic_outbox_t *out);

/** Sends a message, of at most out->message_max bytes; false where it is longer or there is no room
 *  now. `wakes`: it is to be seen though the receiver sleeps. */
bool onic_outbox_put(onic_outbox_t *out, uint8_t id, const void *header, size_t header_len,
                     const onic_payload_t *payload, bool wakes);

/** To be called before the first is opened: joins in barriers that others make. */
void onic_outbox_start(void);

/**
 * By a server thread that stands in: it sleeps from now on, for the `nap`-th time; or, 0, no
 * longer. False where a sender may not see that in time, and not wake it.
 */
bool onic_outbox_park(unsigned nap);

#endif
