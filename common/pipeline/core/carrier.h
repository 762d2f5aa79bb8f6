/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A transfer has an end in user memory, a machine (pipe.h) that decides, and a carrier
 *  (shm/, rma/) that accesses buffers and words. Components use the end and the ticket. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "common/layout/layout.h"
#include "common/pipeline/core/pipe.h"
#include "common/pipeline/core/schedules.h"

struct onic_rx_pool;
struct onic_peer;

/** One end of a transfer, in user memory. */
typedef struct onic_pipeline_end {
    onic_layout_t layout; /**< taken over by the transfer if the call succeeds; the caller's then
                             owns nothing. Not used if there is `take`. */
    uint64_t at;          /**< packed bytes [at, at + len) of the layout; len > 0 */
    uint64_t len;
    char *base;
    /** Sender: bytes of an element of the data, which is never split between two pieces that the
     *  receiver gets. 0 or 1: any; aligned elements of up to 8 bytes are not split either. */
    uint32_t granule;
    /** Receiver: NULL to unpack into the layout; otherwise called with the data, in order. Returns
     *  how many of the n bytes at packed position `pos` it took; 0: not now; negative: failed. */
    int64_t (*take)(void *arg, uint64_t pos, const void *data, uint64_t n);
    /** Called once, and never before the call that received it has returned: all is packed (sender)
     *  or taken (receiver), or `status` is an error. May start transfers and send. */
    void (*done)(void *arg, int status);
    void *arg;
} onic_pipeline_end_t;

/** Identifies a lease; sent in the component's message. */
typedef struct onic_ticket {
    uint64_t buffers; /**< in the receiver's receive pool */
    uint64_t len;     /**< bytes of the transfer */
    uint64_t name;    /**< between hosts: the transfer's name at the process that made the ticket */
} onic_ticket_t;

/** A running transfer. */
typedef struct onic_transfer onic_transfer_t;

/** A kind of peers: how transfers with them begin, and how their buffers and words are accessed. */
typedef struct onic_carrier {
    /** The record of a peer, or NULL if the carrier does not reach it. The transport lock is held.
     */
    void *(*reach)(struct onic_peer *peer);
    /* Both begin a new transfer, whose role, peer and end, if any, are filled in, and start the
     * machine. `record` is what reach returned. Called with the transport lock. After an error
     * nothing is kept. */
    /** At the side that begins: takes the lease and makes the ticket. */
    int (*lease)(onic_transfer_t *t, void *record, onic_ticket_t *ticket);
    /** At the other side: does what a ticket, which may be wrong, asks for. A receiver's record may
     *  be NULL. */
    int (*follow)(onic_transfer_t *t, void *record, const onic_ticket_t *ticket);
    /** The words are in shared memory, and may change while a thread looks. */
    bool is_shared;
    /* Buffer numbers are below 64. */
    /** Sender: the address to pack byte `offset` of a chunk to; NULL: not possible now. Receiver:
     *  its address. */
    char *(*at)(onic_transfer_t *t, unsigned buffer, uint32_t offset);
    /** Sender: publishes the word of a buffer, after the bytes that it counts. */
    void (*publish)(onic_transfer_t *t, unsigned buffer, uint64_t word);
    /** Receiver: the current word; the bytes that it counts can be read. */
    uint64_t (*word)(onic_transfer_t *t, unsigned buffer);
    /** Receiver: publishes how many rounds of a buffer have been consumed. */
    void (*acknowledge)(onic_transfer_t *t, unsigned buffer, uint64_t rounds);
    /** Sender: the current value of that. */
    uint64_t (*acknowledged)(onic_transfer_t *t, unsigned buffer);
    /** Sender that has published everything: true if the other side needs nothing more of this
     *  process, which may make no progress from now on. NULL: always. */
    bool (*left)(const onic_transfer_t *t);
    /** Receiver: frees these buffers of the lease, at least one. */
    void (*release)(onic_transfer_t *t, uint64_t buffers);
    /** True if the other side is known to be dead, and all its messages have been handled. */
    bool (*is_dead)(const onic_transfer_t *t);
    /** The transfer is over. Or NULL. */
    void (*closed)(onic_transfer_t *t);
} onic_carrier_t;

typedef enum onic_role { ONIC_SENDS, ONIC_RECEIVES } onic_role_t;

struct onic_transfer {
    TAILQ_ENTRY(onic_transfer) list;
    onic_role_t role;
    bool has_end; /**< false: nothing is reported, and arriving data is dropped */
    bool over;    /**< the machine has finished; the next progress frees it */
    bool reports; /**< `done` must be called with `status` */
    int status;   /**< for `done` */
    const onic_carrier_t *carrier;
    struct onic_peer *peer;
    uint64_t buffers; /**< of the lease, to be released by the receiver */
    onic_pipeline_end_t end;
    onic_cursor_t cursor;
    union {
        onic_sender_t sender;
        onic_receiver_t receiver;
    };
    bool streams;                 /**< the sender writes long pieces with streaming stores */
    struct onic_rx_pool *rx_pool; /**< on a node: the receiver's, as mapped here */
    struct onic_rma *rma;         /**< between hosts */
};

/** Starts the sender's machine with a lease, and with the chunks of a schedule, published in
 *  blocks. */
void onic_transfer_start_sender(onic_transfer_t *t, const onic_schedule_choice_t *choice,
                                const onic_lease_t *lease, uint32_t block);
