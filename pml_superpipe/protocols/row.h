/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A protocol is a row: when it can move the data of a message, what that costs
 *  (common/model/link.h), how the receiver starts it, and how the sender answers. This file and the
 *  costs of rows are pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/model/link.h"
#include "common/pipeline/core/schedules.h"
#include "pml_superpipe/matching/header.h"

struct onic_peer;
struct onic_rndv;
struct superpipe_request;

/** A message that has found its receive, as far as it is known. */
typedef struct superpipe_case {
    uint64_t length;        /**< bytes wanted, at least 1 */
    uint64_t send_block;    /**< mean bytes of a contiguous piece at the sender */
    uint64_t receive_block; /**< the same at the receiver */
    bool one_piece;         /**< contiguous on both sides, and the sender's address is known */
    onic_kind_t kind;       /**< for the receiver: of the sender */
    bool self;              /**< sender and receiver are one process */
    unsigned refused;       /**< bit mask of protocols that failed for this sender's messages */
    double wait; /**< nanoseconds until the sender is expected to answer, if it is not in MPI */
    bool many;   /**< other long messages of the sender are in flight */
    double pins; /**< registrations whose cost it has to bear, 0 .. 2: up to one for each side
                    (cost.h) */
    struct onic_peer *peer;        /**< the sender; NULL: any peer of that kind, for the table */
    uint32_t slot;                 /**< bytes of a receive buffer */
    onic_schedule_kind_t schedule; /**< how the pipeline divides data into chunks */
    const onic_link_t *link;       /**< the model's numbers for the kind */
    const onic_costs_t *costs;     /**< on a node the costs of its ways; else NULL */
} superpipe_case_t;

static inline bool superpipe_on_node(const superpipe_case_t *c)
{
    return c->kind < ONIC_NET;
}

/** True if at least one side has a buffer that was not used lately. */
static inline bool superpipe_is_fresh(const superpipe_case_t *c)
{
    return c->pins > 0.5;
}

/** A protocol. It frees its state of a transfer when that ends: in a failing `start` or in
 *  `cancel`. All except can, cost and progress are called with the lock held. */
typedef struct superpipe_row {
    const char *name; /**< a value of pml_superpipe_protocol */
    bool (*can)(const superpipe_case_t *c);
    double (*cost)(const superpipe_case_t *c); /**< nanoseconds */

    /* Of the receiver. */
    /** Gets the data of a receive that has its message, or begins to. False if that is not possible
     *  now and nothing has changed: the message comes as a stream. */
    bool (*start)(struct superpipe_request *r);
    /** DATA has come for a receive of this protocol, within its bounds. NULL: the protocol has no
     *  DATA. */
    void (*data)(struct superpipe_request *r, const superpipe_incoming_t *in,
                 struct onic_rndv *rndv);
    /* Of the sender. */
    /** CTS has come for a send of this process. False if it cannot be met, and nothing has changed:
     *  the message goes as a stream, and `data` gets that. NULL: the receiver sends none. */
    bool (*answer)(struct superpipe_request *r, const superpipe_incoming_t *in);

    /* Of both. */
    /** The peer of a transfer that is `moving` (transfer.h) is lost: takes the transfer back.
     *  Required for rows that set `moving`. */
    void (*cancel)(struct superpipe_request *r);
    /** Continues work that needs an MPI thread, without the lock, after onic_transport_ask with
     *  ONIC_MPI. Returns the number of events. Or NULL. */
    int (*progress)(void);
} superpipe_row_t;

/** One more than the protocols, for a test. */
#define SUPERPIPE_ROWS (SUPERPIPE_PROTOCOLS + 1)

/** Indexed by superpipe_protocol_t. The receiver never chooses the first two, which only have a
 *  name. */
extern const superpipe_row_t *superpipe_rows[SUPERPIPE_ROWS];

/** Most bytes of a short message. `eager`: the parameter; `fragment`: the payload of one transport
 *  message besides the envelope. If another protocol is forced only empty messages are short. */
static inline uint64_t superpipe_short_most(uint64_t eager, uint64_t fragment,
                                            superpipe_protocol_t forced)
{
    if (forced > SUPERPIPE_EAGER)
        return 0;
    return forced == SUPERPIPE_EAGER || fragment < eager ? fragment : eager;
}

/** What the choices of a process are made from. */
typedef struct superpipe_table {
    onic_links_t links;            /**< the numbers that choices are made from */
    uint32_t slot;                 /**< bytes of a receive buffer */
    onic_schedule_kind_t schedule; /**< how the pipeline divides data into chunks */
} superpipe_table_t;
