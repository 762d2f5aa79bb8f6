/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Methods that move data. A row says what a method can do, what that costs, how it is
 *  started and waited for, and which of its messages a target handles. The chooser knows no method
 *  by name except messages. Pure, and so are `fits` and `cost` of each row; other functions of a
 *  row are not. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/layout/layout.h"
#include "common/model/link.h"

struct nicstride_transfer;
struct nicstride_peer;
struct onic_param;
struct onic_counter;

typedef enum nicstride_method {
    NICSTRIDE_METHOD_AUTO = 0, /**< not a method: the chooser chooses */
    NICSTRIDE_METHOD_DIRECT,   /**< load and store: the target is mapped, or is this process */
    NICSTRIDE_METHOD_CMA,      /**< process_vm_readv/writev of the pieces: private, same node */
    NICSTRIDE_METHOD_SIEVE,    /**< get: process_vm_readv of the covering extent, then gather */
    NICSTRIDE_METHOD_PACK,     /**< packed fragments by active messages: everywhere */
    NICSTRIDE_METHOD_PIPELINE, /**< pipelined through receive buffers of the receiver */
    NICSTRIDE_METHOD_RDMA,     /**< contiguous on both sides: put or got by the adapter */
    NICSTRIDE_METHOD_NIC,      /**< any layout, as work requests of the adapter */
    NICSTRIDE_METHOD_LAST
} nicstride_method_t;

typedef enum nicstride_direction {
    NICSTRIDE_PUT,
    NICSTRIDE_GET,
    NICSTRIDE_ACC,
    NICSTRIDE_DIRECTIONS
} nicstride_direction_t;

/** Who would answer a message now. */
typedef enum nicstride_presence {
    NICSTRIDE_PRESENT = 0, /**< an MPI thread of the target, as far as is known */
    NICSTRIDE_SERVED,      /**< its server thread, which must and can be woken */
    NICSTRIDE_ABSENT,      /**< nobody, until the server thread takes over */
    NICSTRIDE_PRESENCES
} nicstride_presence_t;

typedef struct nicstride_path {
    onic_link_t link;
    /** Costs of ways on the node that replace its own; NULL: equations give them. */
    const onic_costs_t *costs;
} nicstride_path_t;

typedef struct nicstride_method_row nicstride_method_row_t;

/** What a plan is based on. */
typedef struct nicstride_case {
    /** The rows of all methods, by number; NULL: there is none. */
    const nicstride_method_row_t *const *rows;
    nicstride_method_t forced; /**< NICSTRIDE_METHOD_AUTO: none is forced */
    nicstride_direction_t dir;
    const onic_layout_t *origin; /**< of the same size as the target's */
    const onic_layout_t *target;
    uint32_t reach; /**< a set of NICSTRIDE_REACH: no other method may be taken */
    /** The rows of these are asked whether they reach it; NULL: they do. */
    const struct nicstride_transfer *transfer;
    nicstride_presence_t presence;
    bool many;     /**< it is under way together with others */
    double pieces; /**< nicstride_pieces, where it is known; or 0 */
    const nicstride_path_t *path;
} nicstride_case_t;

#define NICSTRIDE_REACH(method) (1u << (method))

/** The blocks of the side that has more. */
static inline double nicstride_pieces(const nicstride_case_t *c)
{
    if (c->pieces > 0)
        return c->pieces;
    const uint64_t a = onic_layout_blocks(c->origin), b = onic_layout_blocks(c->target);

    return (double)(a > b ? a : b);
}

/** The cost of a way on the node, in nanoseconds. `bytes`: as the way's numbers count them. */
static inline double nicstride_cost_on_node(const nicstride_case_t *c, onic_way_t put,
                                            onic_way_t get, double bytes)
{
    const onic_way_t way = c->dir == NICSTRIDE_GET ? get : put;
    const double pieces = nicstride_pieces(c);

    return onic_cost(&c->path->costs->of[way][c->many], pieces, (double)c->target->size / pieces,
                     bytes);
}

/* ---- messages -------------------------------------------------------------------------------- */

struct nicstride_incoming;
struct nicstride_msg;

/** How the target handles a kind of message. */
typedef struct nicstride_handler {
    uint16_t kind; /**< of nicstride_msg_type_t */
    /** Handles a message. May wait for a lock of elements (window/hold.h), and for nothing else.
     *  Transport lock. */
    void (*handle)(const struct nicstride_incoming *in);
} nicstride_handler_t;

struct nicstride_op;

/** Functions of a row whose data is moved by an adapter, which needs registered memory at the
 *  target and a key for it (queue/keys.h) that only the row understands. All are called with the
 *  transport lock held. */
typedef struct nicstride_rkey_ops {
    /** True if the row could be used with the peer, given what both processes have. Called once for
     *  each peer of a window, which is on another node. */
    bool (*usable)(struct nicstride_peer *p);

    /** Registers `bytes` > 0 bytes of this process's memory; NULL if that is impossible, which is
     *  remembered. */
    void *(*register_memory)(void *base, uint64_t bytes);
    /** Withdraws registered memory that no peer reaches any more. */
    void (*withdraw)(void *memory);

    /** Writes what goes with the question for its key, at most `cap` bytes. Returns the number of
     *  bytes; 0: the peer is not asked now. */
    size_t (*ask)(struct nicstride_peer *p, void *bytes, size_t cap);
    /** Writes what the peer, which has asked with `question`, needs to reach `memory`. Returns as
     *  above; 0 if it cannot be told. Lengths must be checked. */
    size_t (*answer)(struct nicstride_peer *p, void *memory, const void *question, size_t len,
                     void *bytes, size_t cap);
    /** Reads an answer, whose length must be checked. Returns a key for the peer's memory, or NULL
     *  if it is of no use. */
    void *(*accept)(struct nicstride_peer *p, const void *bytes, size_t len);
    /** Frees a key that is not used any more. */
    void (*drop)(void *key);
} nicstride_rkey_ops_t;

/** A method. */
struct nicstride_method_row {
    const char *name;
    bool needs_target; /**< the target takes part, so it must be present */

    /** Its own parameters, ended by one without a name, or NULL; and its `ncounters` counters. */
    const struct onic_param *params;
    const struct onic_counter *counters;
    unsigned ncounters;

    /** True if it can move such layouts, provided it reaches the target. NULL: it can move any. */
    bool (*fits)(const nicstride_case_t *c);

    /** The cost in nanoseconds, with a target that is present. */
    double (*cost)(const nicstride_case_t *c);

    /** True if it reaches the target's bytes. Keeps the result. MPI threads, no lock. */
    bool (*reach)(const struct nicstride_transfer *t);

    /** Does a transfer or begins it; what is needed longer is taken over from `t`. `*done_p` says
     *  whether it is locally complete; if not, the row completes the transfer's request later, if
     *  there is one. What it begins it enters among the peer's operations (queue/operation.h). If
     *  the target takes no part, its puts take effect in the order in which they began.
     *  OMPI_SUCCESS, or an error after a text; or OMPI_ERR_NOT_AVAILABLE without a text: then
     *  nothing was done, and messages must be used. MPI threads, no lock held. */
    int (*start)(struct nicstride_transfer *t, bool *done_p);

    /** Its `nhandlers` kinds of messages that a target handles. */
    const nicstride_handler_t *handlers;
    unsigned nhandlers;

    /** Ends what moves one of its operations (nicstride_op_t's `row`) that has failed. NULL: that
     *  ends by itself. Transport lock. */
    void (*cancel)(struct nicstride_op *op);
    /** Called when the target answers such an operation by a message. False: the answer must be
     *  ignored, and the operation ends in another way. NULL: there is no such answer. Transport
     *  lock. */
    bool (*answered)(struct nicstride_op *op, const struct nicstride_msg *msg);

    /** Continues what it has begun, in the next progress after it asked for that
     *  (onic_transport_ask with ONIC_LOCKED), on any thread. Returns the number of events, or a
     *  negative value if work is left that could not be done. NULL: there is nothing to do.
     *  Transport lock. */
    int (*progress)(void);
    /** Does what only MPI threads may do, after it asked for that (onic_transport_ask with
     *  ONIC_MPI). Returns the number of events. NULL: there is nothing to do. No lock held. */
    int (*finish)(void);

    /** True if everything that it has begun at the peer has landed. Flushes call this again and
     *  again until it is true, and so does the closing of an epoch; no event needs to announce it.
     *  NULL: it leaves nothing under way except what the target counts as messages. Transport
     *  lock. */
    bool (*flush)(struct nicstride_peer *p);

    /** True if what it has begun at the peer and has not landed needs work of that process. An
     *  adapter's work does not. NULL: never. Transport lock. */
    bool (*needs_peer)(struct nicstride_peer *p);

    /** Functions for the keys by which it reaches memory; NULL: it needs none. */
    const nicstride_rkey_ops_t *rkey_ops;

    /** Frees what the row keeps with a process (nicstride_process_t's `of_row`, not NULL) that is
     *  being forgotten. NULL: there is nothing to free. Transport lock, or no other thread is
     *  left. */
    void (*leave)(void *of_row);

    /** Called when the process leaves MPI: ends what is under way to lost peers, and frees what the
     *  row keeps for all windows. Memory of windows that the user forgot stays registered. NULL:
     *  there is nothing to do. MPI thread, no lock held. */
    void (*end)(void);
};

/** The most rows that there can be: those of all methods, and one of a test. */
#define NICSTRIDE_METHODS_MAX (NICSTRIDE_METHOD_LAST + 1)
