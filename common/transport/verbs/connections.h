/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Reliable connections of a process: queue pairs by which it writes and reads the memory of
 *  others, and those by which others do that with its own.
 *
 *      connections.c  the adapter: its port, its limits, its completions
 *      connect.c      queue pairs: how they are made, connected and ended, on both sides
 *
 *  A connection goes one way, and belongs to the process that began it: only that one issues
 *  requests. How the terms of both sides (rc_terms.h) get to each other is the caller's business.
 *  There are so many connections at most in each direction. Who finds no place does without.
 *
 *  An error (the other side does not answer, or does not allow it) ends all transfers of a
 *  connection, and the connection; those of others go on.
 *
 *  That a transfer has ended says that the adapter of the other side has taken its bytes: what that
 *  process learns from this one later, by whatever way, it learns after them. No access asks for
 *  relaxed ordering.
 *
 *  Threads: one at a time for all of one adapter. `ended` and `lost` are called by onic_rc_poll,
 *  onic_rc_make and onic_rc_begin. */
#pragma once

#include "common/transport/verbs/rc_terms.h"
#include "common/transport/verbs/requests.h"
#include "common/transport/verbs/verbs.h"

typedef struct onic_rc_adapter onic_rc_adapter_t;

typedef enum onic_rc_state {
    ONIC_RC_FREE = 0,
    ONIC_RC_MADE,     /**< the other side is to be told its terms */
    ONIC_RC_CONNECTED /**< takes transfers */
} onic_rc_state_t;

/** A connection that this process began. */
typedef struct onic_rc {
    onic_rc_adapter_t *adapter;
    onic_rc_state_t state;
    uint32_t id; /**< its place, and how often that was used, as completions name it */
    struct ibv_qp *qp;
    onic_rc_terms_t terms;
    onic_rdma_limits_t limits; /**< for transfers */
    onic_request_queue_t queue;
    void *owner;
} onic_rc_t;

/** One that another process began; all zero: none. */
typedef struct onic_rc_served {
    LIST_ENTRY(onic_rc_served) list;
    struct ibv_qp *qp;
    onic_verbs_address_t address; /**< of the other side */
    onic_rc_terms_t terms;
} onic_rc_served_t;

typedef struct onic_rc_spec {
    unsigned connections; /**< in each direction, 1 .. ONIC_RC_MOST */
    unsigned window;      /**< requests under way on each, */
    unsigned batch;       /**< and the other terms of requests.h: those that cannot be are made
                               such that they can */
    unsigned signal;
    unsigned pieces;       /**< in the list of a request; fewer where the adapter takes fewer */
    unsigned inline_bytes; /**< carried by a write; none where the adapter carries fewer */
} onic_rc_spec_t;

/** A connection is over; its transfers have ended. The owner must not use it any more. `why` is one
 *  line for the user where it was an error, or NULL where the adapter is closed. */
typedef void (*onic_rc_lost_fn_t)(void *owner, const char *why);

struct onic_rc_adapter {
    onic_rc_spec_t spec;
    onic_verbs_port_t port;
    onic_rc_terms_t terms;     /**< what the adapter can do */
    onic_rdma_limits_t limits; /**< likewise */
    uint8_t reads_served;      /**< of others at a time, on each connection */
    struct ibv_cq *completions;
    onic_rc_t *mine;
    LIST_HEAD(, onic_rc_served) served;
    unsigned nserved;
    struct ibv_send_wr *wr; /**< for one batch */
    struct ibv_sge *sge;
    onic_rdma_counts_t *counts;
    onic_rc_lost_fn_t lost;
};

/** Opens an adapter, which adds to `counts`. 0, or -1 and the reason; then nothing is open. */
ONIC_EXPORT int onic_rc_open(onic_rc_adapter_t *a, const onic_rc_spec_t *spec,
                             onic_rdma_counts_t *counts, onic_rc_lost_fn_t lost,
                             onic_verbs_reason_t *why);

/** Close, in two parts, because memory is to be given back in between; stop may be left out. Stop
 *  ends all connections without ado: transfers end as failed, owners are told. Both do nothing
 *  where it is closed. */
ONIC_EXPORT void onic_rc_stop(onic_rc_adapter_t *a);
ONIC_EXPORT void onic_rc_close(onic_rc_adapter_t *a);

static inline bool onic_rc_is_open(const onic_rc_adapter_t *a)
{
    return a->completions != NULL;
}

/** Looks for completions. Returns how many there were. */
ONIC_EXPORT int onic_rc_poll(onic_rc_adapter_t *a);

/* ---- connections that this process begins ---------------------------------------------------- */

/** A new connection, whose `terms` the other side is to be told. NULL: all places are taken, or the
 *  adapter does not give one. Looks for completions before. */
ONIC_EXPORT onic_rc_t *onic_rc_make(onic_rc_adapter_t *a, void *owner);

/** The other side has answered. False where it cannot be had: then it is over (without `lost`). */
ONIC_EXPORT bool onic_rc_connect(onic_rc_t *c, const onic_rc_terms_t *answer);

/** Begins a transfer, with the connection's limits. It may end, and the connection be lost, before
 *  this returns. */
ONIC_EXPORT void onic_rc_begin(onic_rc_t *c, onic_rdma_transfer_t *t);

/** Gives up a connection that the other side has refused, or whose other side is lost: its
 *  transfers end as failed. Does not call `lost`. */
ONIC_EXPORT void onic_rc_drop(onic_rc_t *c);

/* ---- connections that others begin ----------------------------------------------------------- */

/** A process asks for a connection, which is `s`. True and the answer, the same one when it asks
 *  again with the same terms; another connection of that process is over then. False where none can
 *  be had. */
ONIC_EXPORT bool onic_rc_serve(onic_rc_adapter_t *a, onic_rc_served_t *s,
                               const onic_rc_terms_t *asked, onic_rc_terms_t *answer);

/** Ends the connection, if there is one, of a process that has left. */
ONIC_EXPORT void onic_rc_unserve(onic_rc_adapter_t *a, onic_rc_served_t *s);

/* ---- memory ---------------------------------------------------------------------------------- */

/** Registers memory that others may write and read. NULL where it cannot be. Any thread. */
ONIC_EXPORT struct ibv_mr *onic_rc_expose(const onic_rc_adapter_t *a, void *base, size_t bytes);
/** Ends the registration: nobody reaches the memory any more. */
ONIC_EXPORT void onic_rc_conceal(struct ibv_mr *mr);
