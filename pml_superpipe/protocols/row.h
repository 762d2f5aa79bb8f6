/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file A protocol is a row: when it can bring the data of a message, what that costs
 *  (common/model/link.h), how the receiver starts it and how the sender answers. Pure, and so is
 *  the cost of each row. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/model/link.h"
#include "common/model/table.h"
#include "common/pipeline/core/schedules.h"
#include "pml_superpipe/matching/header.h"

struct onic_peer;
struct onic_rndv;
struct superpipe_request;

/** What is known of a message that has found its receive. */
typedef struct superpipe_case {
    uint64_t length;        /**< bytes that are wanted, at least 1 */
    uint64_t send_block;    /**< bytes of a contiguous piece at the sender, on average */
    uint64_t receive_block; /**< and here */
    bool one_piece;         /**< both have it in one piece, whose address the sender has sent */
    onic_kind_t kind;       /**< of the sender, for the receiver */
    bool self;              /**< sender and receiver are one process */
    unsigned refused;       /**< bits of protocols that were found not to bring what it sends */
    double wait;            /**< nanoseconds until the sender would answer: it is not in MPI */
    bool many;              /**< other long messages of the sender are under way */
    double pins;            /**< registrations that it has to bear if there are any, 0 .. 2: one
                               for each side (cost.h) */
    struct onic_peer *wire; /**< the sender; NULL: any of that kind, for the table */
    uint32_t slot;          /**< bytes of a receive buffer, */
    onic_schedule_kind_t schedule; /**< and its chunks */
    const onic_link_t *link;       /**< the numbers of the kind; */
    const onic_costs_t *costs;     /**< of the node those of its ways; else NULL */
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

/** What a sender says to a CTS. */
typedef enum superpipe_answer {
    SUPERPIPE_ANSWERED,
    SUPERPIPE_NOT_NOW, /**< NACK is to be sent, */
    SUPERPIPE_NEVER    /**< and that the protocol cannot be used with the receiver at all */
} superpipe_answer_t;

/** A protocol, wholly. What it keeps for a transfer it frees when that ends, in `start` that fails,
 *  `refused` or `cancel`. Lock held but for can, cost and progress. */
typedef struct superpipe_row {
    const char *name; /**< value of pml_superpipe_protocol */
    bool (*can)(const superpipe_case_t *c);
    double (*cost)(const superpipe_case_t *c); /**< nanoseconds */

    /* The receiver. */
    /** Gets the data of a receive that has its message, or begins to. False where that cannot be
     *  now, and nothing has changed: the message comes as a stream. */
    bool (*start)(struct superpipe_request *r);
    /** DATA came for a receive of this protocol, within its bounds. NULL: none comes. */
    void (*data)(struct superpipe_request *r, const superpipe_incoming_t *in,
                 struct onic_rndv *rndv);
    /** NACK came. False where the receive ends by itself all the same; true, or NULL: the message
     *  comes as a stream. */
    bool (*refused)(struct superpipe_request *r);

    /* The sender. */
    /** CTS came for a send of this process. NULL: the receiver sends none. */
    superpipe_answer_t (*answer)(struct superpipe_request *r, const superpipe_incoming_t *in);

    /* Both. */
    /** The peer of a transfer that is `moving` (transfer.h) is lost: takes it back. False: a thread
     *  is inside of it, and this is called again. There where it sets `moving`. */
    bool (*cancel)(struct superpipe_request *r);
    /** Goes on with what needs an MPI thread, without the lock, after onic_transport_ask with
     * ONIC_MPI; how many. Or NULL. */
    int (*progress)(void);
    /** The component is closed: nothing is queued any more. Or NULL. */
    void (*close)(void);
} superpipe_row_t;

/** There is room for one more, of which a test makes use. */
#define SUPERPIPE_ROWS (SUPERPIPE_PROTOCOLS + 1)

/** By superpipe_protocol_t. The first two are not chosen by the receiver, and have a name alone. */
extern const superpipe_row_t *superpipe_rows[SUPERPIPE_ROWS];

/** Most bytes of a short message. `eager`: the parameter; `fragment`: what a message of the
 * transport holds besides the envelope. Where another protocol is forced only empty ones are short.
 */
static inline uint64_t superpipe_short_most(uint64_t eager, uint64_t fragment,
                                            superpipe_protocol_t forced)
{
    if (forced > SUPERPIPE_EAGER)
        return 0;
    return forced == SUPERPIPE_EAGER || fragment < eager ? fragment : eager;
}

/** The choices of a process. */
typedef struct superpipe_table {
    onic_links_t links;            /**< what they come from, */
    uint32_t slot;                 /**< with the bytes of a receive buffer, */
    onic_schedule_kind_t schedule; /**< and the pipeline's chunks */
    /** By kind of peer, registrations (0, 1, 2), one or many, shape and size. 0: not made yet. Any
     *  thread makes it, and all make the same. */
    onic_order_t order[ONIC_KINDS][3][2][ONIC_SHAPES][ONIC_SIZES];
} superpipe_table_t;
