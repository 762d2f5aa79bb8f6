/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Methods that move data. A row says what a method can do, what that costs, how it is
 * started and waited for, and which messages of it a target handles. The chooser knows no method by
 * name but messages. Pure, and so are `fits` and `cost` of each row; the rest of a row is not. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/layout/layout.h"
#include "common/model/link.h"
#include "common/model/table.h"

struct nicstride_transfer;
struct nicstride_peer;
struct nicstride_module;

typedef enum nicstride_method {
    NICSTRIDE_METHOD_AUTO = 0, /**< not a method: the chooser chooses */
    NICSTRIDE_METHOD_DIRECT,   /**< load and store: the target is mapped, or is this process */
    NICSTRIDE_METHOD_CMA,      /**< process_vm_readv/writev of the pieces: private, same node */
    NICSTRIDE_METHOD_SIEVE,    /**< get: process_vm_readv of the covering extent, then gather */
    NICSTRIDE_METHOD_PACK,     /**< packed fragments by active messages: everywhere */
    NICSTRIDE_METHOD_PIPELINE, /**< pipelined through receive buffers of the receiver */
    NICSTRIDE_METHOD_RDMA,     /**< contiguous on both sides: put or read by the adapter */
    NICSTRIDE_METHOD_NIC,      /**< any layout, as work requests of the adapter */
    NICSTRIDE_METHOD_LAST
} nicstride_method_t;

typedef enum nicstride_direction {
    NICSTRIDE_PUT,
    NICSTRIDE_GET,
    NICSTRIDE_ACC,
    NICSTRIDE_DIRECTIONS
} nicstride_direction_t;

/** What would answer a message now? */
typedef enum nicstride_presence {
    NICSTRIDE_PRESENT = 0, /**< an MPI thread of the target, as far as is known */
    NICSTRIDE_SERVED,      /**< its server thread, which has to be woken and can be */
    NICSTRIDE_ABSENT,      /**< nobody, until the server thread takes over */
    NICSTRIDE_PRESENCES
} nicstride_presence_t;

typedef struct nicstride_path {
    onic_link_t link;
    const onic_costs_t *costs; /**< of the node's ways, not its own; NULL: equations say it */
} nicstride_path_t;

typedef struct nicstride_method_row nicstride_method_row_t;
struct nicstride_span;

/** What a plan is made from. */
typedef struct nicstride_case {
    /** Of all methods, by number; NULL: there is none. */
    const nicstride_method_row_t *const *rows;
    nicstride_method_t forced; /**< NICSTRIDE_METHOD_AUTO: none is */
    nicstride_direction_t dir;
    const onic_layout_t *origin; /**< of the same size as the target's */
    const onic_layout_t *target;
    /** Does a method reach the target's bytes? Asked of those that may be taken. */
    bool (*reaches)(const struct nicstride_case *c, unsigned method);
    const struct nicstride_transfer *transfer; /**< for that */
    uint32_t reach; /**< where it is NULL: a set of NICSTRIDE_REACH of those that do */
    nicstride_presence_t presence;
    bool many; /**< it is under way together with others */
    const nicstride_path_t *path;
} nicstride_case_t;

#define NICSTRIDE_REACH(method) (1u << (method))

/** What a way of the node takes, nanoseconds. `bytes`: as the numbers of the way count them. */
static inline double nicstride_cost_on_node(const nicstride_case_t *c, onic_way_t put,
                                            onic_way_t get, double bytes)
{
    const uint64_t a = onic_layout_blocks(c->origin), b = onic_layout_blocks(c->target);
    const onic_way_t way = c->dir == NICSTRIDE_GET ? get : put;
    const double pieces = (double)(a > b ? a : b);

    return onic_cost(&c->path->costs->of[way][c->many], pieces, (double)c->target->size / pieces,
                     bytes);
}

/* ---- messages ---------------------------------------------------------------------------------
 */

struct nicstride_incoming;
struct nicstride_msg;
struct onic_peer;

/** What holds of all messages of a kind. */
enum {
    NICSTRIDE_OPERATES = 1,   /**< it is about memory of the window, and is counted */
    NICSTRIDE_TAKES_TURN = 2, /**< it waits for what its origin has sent before */
    NICSTRIDE_TAKES_LOCK = 4  /**< its handler tries a lock, and may find it busy */
};

/** How the target handles a kind of message. All is called with the transport lock held. */
typedef struct nicstride_handler {
    uint16_t kind;  /**< of nicstride_msg_kind_t */
    uint16_t holds; /**< a set of the above */
    /** Handles one. False where it must be put off, and nothing was done: a lock is busy. */
    bool (*handle)(const struct nicstride_incoming *in);
    /** There is no memory to put it off: ends it with an error that the origin gets. Not NULL where
     *  it may be put off and is no request for a lock. */
    void (*refuse)(const struct nicstride_incoming *in, int error);
    /** It is dropped: its window or its sender's record is gone. NULL: nothing is to be done. */
    void (*drop)(struct onic_peer *from, const struct nicstride_msg *msg, const void *layout);
} nicstride_handler_t;

struct nicstride_op;

/** What a row needs whose data an adapter moves: the target's memory registered, and a key for it
 *  (queue/keys.h), which only the row understands. All with the transport lock held. */
typedef struct nicstride_rkey_ops {
    /** Could the row be used with the peer, by what this process and that one have? Asked once for
     *  each peer of a window, which is of another node. */
    bool (*usable)(struct nicstride_peer *p);

    /** Registers own memory, `bytes` > 0 of it; NULL where that cannot be, which is remembered. */
    void *(*register_memory)(struct nicstride_module *m, void *base, uint64_t bytes);
    /** No peer reaches it any more. */
    void (*withdraw)(void *memory);

    /** Writes what the peer needs to reach `memory`, at most `cap` bytes; returns how many, or 0
     *  where it cannot be told. `memory` NULL: what goes with the question for keys; only rows that
     *  write something there are answered. */
    size_t (*offer)(struct nicstride_peer *p, void *memory, void *bytes, size_t cap);
    /** Reads what the peer has written, whose length is to be checked: a key for the region, NULL
     *  where it is of no use. `span` NULL: it came with a question, and NULL is returned. */
    void *(*accept)(struct nicstride_peer *p, const struct nicstride_span *span, const void *bytes,
                    size_t len);
    /** The key is not used any more. */
    void (*drop)(void *key);
} nicstride_rkey_ops_t;

/** A method. */
struct nicstride_method_row {
    const char *name;
    bool needs_target; /**< the target takes part: it has to be there */

    /** Can it move such layouts, wherever it reaches the target? NULL: any. */
    bool (*fits)(const nicstride_case_t *c);

    /** What that takes, nanoseconds, with a target that is present. */
    double (*cost)(const nicstride_case_t *c);

    /** Does it reach the target's bytes? It keeps what it finds out. MPI threads, no lock. */
    bool (*reach)(const struct nicstride_transfer *t);

    /** Does a transfer, or begins it: what is needed longer is taken over from `t`. `*done_p` says
     *  whether it is locally complete; else the row will complete the transfer's request, if there
     *  is one. OMPI_SUCCESS, or an error after a text; or OMPI_ERR_NOT_AVAILABLE, without one, and
     *  nothing was done: messages must do it. MPI threads, no lock held. */
    int (*start)(struct nicstride_transfer *t, bool *done_p);

    /** It enters what it begins among the peer's operations by itself (queue/operation.h), until
     * that is locally complete. Else that is so when `start` returns, or waits for `flush` unseen.
     */
    bool enters;

    /** Where the target takes no part: its puts take effect in the order in which they were begun,
     *  but in dynamic windows. */
    bool in_order;

    /** Messages of it that a target handles, `nhandlers` of them. */
    const nicstride_handler_t *handlers;
    unsigned nhandlers;

    /** Ends what moves an operation of its own (nicstride_op_t's `row`), which has failed. NULL: it
     *  ends by itself. Transport lock. */
    void (*cancel)(struct nicstride_op *op);
    /** The target answers such an operation by a message. False: the answer is not to be taken, the
     *  operation ends in another way. NULL: there is no such answer. Transport lock. */
    bool (*answered)(struct nicstride_op *op, const struct nicstride_msg *msg);

    /** Goes on with what it has begun, in the next progress after it has asked for it
     *  (onic_transport_ask with ONIC_LOCKED), on any thread. Returns events done, or a negative
     * value where work is left that it could not do. NULL: there is nothing to do. Transport lock.
     */
    int (*progress)(void);
    /** What is a matter of MPI threads, when it has asked for that (onic_transport_ask with
     * ONIC_MPI). Returns events done. NULL: nothing is. No lock held. */
    int (*finish)(void);

    /** Has all landed that it has begun at the peer? Asked again and again by flushes, and before
     * an epoch is closed, until it has; no event needs to announce it. NULL: it leaves nothing
     * under way but what the target counts as messages. Transport lock. */
    bool (*flush)(struct nicstride_peer *p);

    /** Does what it has begun at the peer, and has not landed, take work of that process? Not what
     *  an adapter does. NULL: never. Transport lock. */
    bool (*needs_peer)(struct nicstride_peer *p);

    /** By what keys it reaches memory; NULL: it needs none. */
    const nicstride_rkey_ops_t *rkey_ops;

    /** The process is forgotten, and with it what the row keeps there (nicstride_process_t's
     *  `of_row`, not NULL). NULL: nothing. Transport lock, or nobody else is there any more. */
    void (*leave)(void *of_row);

    /** Nothing is under way, and the window goes away: frees what the row keeps for it. NULL:
     * nothing. MPI threads, no lock held. */
    void (*free)(struct nicstride_module *m);

    /** The process leaves MPI: ends what is under way, to peers that are lost, and gives up what
     *  the row keeps for all windows. Memory of windows that the user forgot is withdrawn after
     *  that. NULL: nothing. MPI thread, no lock held. */
    void (*end)(void);
};

/** So many rows there can be. */
#define NICSTRIDE_METHODS_MAX (ONIC_CHOICES + 1)

_Static_assert(NICSTRIDE_METHOD_LAST < NICSTRIDE_METHODS_MAX,
               "methods are choices, and one of a test has room");

/** Directions as tables tell them apart: of gets those whose blocks fill most of what covers them,
 *  and those that leave most of it out, have cells of their own, since a sieve reads all of that.
 */
#define NICSTRIDE_FLOWS (NICSTRIDE_DIRECTIONS + 2)

/** The choices of a process; methods/plan.h reads them. */
typedef struct nicstride_table {
    /** Of all methods, by number; NULL: there is none. */
    const nicstride_method_row_t *const *rows;
    nicstride_path_t path[ONIC_KINDS];
    /** 0: not made yet. Any thread makes it, and all make the same. */
    onic_order_t order[ONIC_ADAPTER][NICSTRIDE_PRESENCES][NICSTRIDE_FLOWS][2][ONIC_SHAPES]
                      [ONIC_SIZES];
} nicstride_table_t;
