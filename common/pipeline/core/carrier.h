/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A transfer: an end in user memory, a machine (pipe.h) that decides, and a carrier (shm/,
 *  rma/) that knows how buffers and words are reached. Components use the end and the ticket. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "common/layout/layout.h"
#include "common/pipeline/core/pipe.h"
#include "common/pipeline/core/schedules.h"
#include "common/support/life.h"

struct onic_rx_pool;
struct onic_peer;

/** One end of a transfer, in user memory. */
typedef struct onic_pipeline_end {
    onic_layout_t layout; /**< the transfer's from then on where the call succeeds: the caller's
                             owns nothing any more. Not looked at where there is `take`. */
    uint64_t at;          /**< packed bytes [at, at + len) of it; len > 0 */
    uint64_t len;
    char *base;
    /** Sender: bytes of an element of the data, which is never split between two pieces that the
     *  receiver is given; 0 or 1: any, aligned elements of up to 8 bytes are not split either. */
    uint32_t granule;
    /** Receiver: NULL to unpack into the layout; else is given the data, in order. Returns how many
     *  of the n bytes at packed position `pos` it took; 0: not now; negative: failed. No lock. */
    int64_t (*take)(void *arg, uint64_t pos, const void *data, uint64_t n);
    /** Called once, transport lock held, never before the call that gave it has returned: all is
     * packed (sender) or taken (receiver), or `status` is an error. May start transfers and send.
     */
    void (*done)(void *arg, int status);
    void *arg;
} onic_pipeline_end_t;

/** Names a lease; travels in the component's message. */
typedef struct onic_ticket {
    uint64_t buffers; /**< of the receiver's receive pool */
    uint64_t len;     /**< bytes of the transfer */
    uint64_t name;    /**< between hosts: of the transfer at the process that made the ticket */
} onic_ticket_t;

/** A transfer under way. */
typedef struct onic_transfer onic_transfer_t;

/** How transfers to a kind of peer begin, and how buffers and words are reached there. */
typedef struct onic_carrier {
    /** The record of a peer that is reached, else NULL. The transport lock is held. */
    void *(*reach)(struct onic_peer *peer);
    /* Each begins a new transfer, whose peer and end, if it has one, are filled in: takes the lease
     * and makes the ticket (send, expect) or checks it (receive, answer), and starts the machine.
     * `record` is what reach returned; for receive it may be NULL. With the transport lock. On an
     * error nothing is kept. */
    int (*send)(onic_transfer_t *t, void *record, onic_ticket_t *ticket);
    int (*expect)(onic_transfer_t *t, void *record, onic_ticket_t *ticket);
    int (*receive)(onic_transfer_t *t, void *record, onic_ticket_t *ticket);
    int (*answer)(onic_transfer_t *t, void *record, onic_ticket_t *ticket);
    /* By the thread that has claimed the transfer, without locks; with the transport lock where: */
    bool locked;
    /* Buffers are numbers below 64. */
    /** Sender: where byte `offset` of a chunk is packed to, NULL: nowhere now. Receiver: where it
     *  is found. */
    char *(*at)(onic_transfer_t *t, unsigned buffer, uint32_t offset);
    /** Sender: the word of a buffer, after the bytes that it counts. */
    void (*publish)(onic_transfer_t *t, unsigned buffer, uint64_t word);
    /** Receiver: the word as it is now; the bytes that it counts can be read. */
    uint64_t (*word)(onic_transfer_t *t, unsigned buffer);
    /** Receiver: rounds of a buffer that have been consumed. */
    void (*acknowledge)(onic_transfer_t *t, unsigned buffer, uint64_t rounds);
    /** Sender: the same as it is now. */
    uint64_t (*acknowledged)(onic_transfer_t *t, unsigned buffer);
    /** Sender that has published all: does the other side need nothing more of this process, which
     *  may make no progress from now on? NULL: always. */
    bool (*left)(const onic_transfer_t *t);
    /** Receiver: these buffers of the lease, at least one, are free again. */
    void (*release)(onic_transfer_t *t, uint64_t buffers);
    /** True if the other side is known to be dead. May take some tens of microseconds. */
    bool (*is_dead)(const onic_transfer_t *t);
    /** The transfer is over. Perhaps with locks. */
    void (*closed)(onic_transfer_t *t);
} onic_carrier_t;

typedef enum onic_role { ONIC_SENDS, ONIC_RECEIVES } onic_role_t;

/** Under the pipeline's lock. */
typedef enum onic_transfer_state {
    ONIC_TRANSFER_FREE,    /**< in the pool */
    ONIC_TRANSFER_NEW,     /**< known to its maker only */
    ONIC_TRANSFER_QUEUED,  /**< waits for a thread */
    ONIC_TRANSFER_CLAIMED, /**< a thread works on it */
    ONIC_TRANSFER_REPORTED /**< its `done` is to be called: among the reports */
} onic_transfer_state_t;

struct onic_transfer {
    TAILQ_ENTRY(onic_transfer) list;    /**< among those under way, or in the pool */
    STAILQ_ENTRY(onic_transfer) report; /**< among those whose `done` is to be called */
    onic_transfer_state_t state;
    onic_role_t role;
    bool has_end; /**< false: nothing is reported, and what comes is thrown away */
    bool over;    /**< the machine has come to its end */
    bool reports; /**< `done` is to be called with `status`, by the thread that has claimed it */
    int status;   /**< for `done` */
    atomic_uint stop; /**< what other threads ask of the one that has claimed it: ONIC_STOP_... */
    const onic_carrier_t *carrier;
    struct onic_peer *peer;
    uint64_t buffers; /**< of the lease, that the receiver has to release */
    uint64_t freed;   /**< of these, consumed for the last time */
    onic_pipeline_end_t end;
    onic_cursor_t cursor;
    union {
        onic_sender_t sender;
        onic_receiver_t receiver;
    };
    uint32_t chunks;  /**< packed so far, to be counted in the end */
    uint32_t waits;   /**< gaps, or stalls, likewise (counters.h) */
    bool waits_now;   /**< the last of them has not ended */
    unsigned stalls;  /**< looks in a row that found nothing to do */
    uint64_t stalled; /**< nanoseconds: since when, or when it was last looked into */
    bool streams;     /**< the sender writes long pieces past the caches */
    uint32_t *sizes;  /**< of an optimal schedule's chunks, until it is closed; NULL: none */
    /* Of the carrier within a node: */
    struct onic_rx_pool *rx_pool; /**< the receiver's, as mapped here */
    uint64_t owner;               /**< the process that has the lease */
    onic_life_t other;            /**< the other side */
    /* Of the carrier between hosts: */
    struct onic_rma *rma;
};

enum {
    ONIC_STOP_END = 1,  /**< the end is to be given an error */
    ONIC_STOP_LEASE = 2 /**< nothing will come: the lease is to be released, nothing is reported */
};

/** Starts the sender's machine over these buffers, or over one that stands for them before they are
 *  known, which is a `handshake`, with the chunks of a schedule, which are shown in blocks. False
 *  where it fails at once: an element of the data is longer than a buffer. */
bool onic_transfer_start_sender(onic_transfer_t *t, const onic_schedule_choice_t *choice,
                                uint64_t buffers, uint32_t buffer_bytes, uint32_t block,
                                bool handshake);
/** Starts the receiver's. */
void onic_transfer_start_receiver(onic_transfer_t *t, uint64_t len, uint64_t buffers,
                                  uint32_t buffer_bytes);
/** It is over: frees what a schedule has taken. */
void onic_transfer_free_sizes(onic_transfer_t *t);
