/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Operations that are under way: those of which something is still to be sent, or a reply to
 *  come. What is sent whole and waits for no reply leaves none behind.
 *
 *  All is called with the transport lock held where nothing else is said. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/layout/layout.h"
#include "osc_nicstride/protocol/message.h"
#include "osc_nicstride/window/module.h"
#include "common/transport/transport.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/queue/request.h"

/** Where one of several gets puts its bytes. */
typedef struct nicstride_get {
    char *to;
    uint32_t len;
} nicstride_get_t;

/** One operation under way, or several gets that have one reply; transport lock. */
struct nicstride_op {
    STAILQ_ENTRY(nicstride_op) of_queue;
    TAILQ_ENTRY(nicstride_op) of_live;
    nicstride_peer_t *peer;
    nicstride_msg_type_t type; /**< PUT, GET, ACC, GET_ACC or CAS */
    bool sends_data;           /**< fragments carry data of the origin buffer */
    uint16_t op;
    uint16_t dtype;
    uint32_t granule; /**< bytes of an element that fragments must not tear; 1 for data */
    uint32_t list_id; /**< that its slices give the target's list; 0: none (describe.h) */
    int64_t disp;
    uint64_t size;
    uint64_t sent;      /**< bytes of the operation given to the transport */
    uint64_t received;  /**< bytes of replies */
    uint32_t in_flight; /**< sends not locally complete, and replies being received */
    bool queued;        /**< in the peer's queue */

    bool reported;   /**< its request has ended */
    bool failing;    /**< nothing more will come of it */
    uint64_t number; /**< of this operation in the peer's queue, from 1 */
    /** Sends its next message: 1, or 0 where there is no credit for it; else an error. Of those
     * that are queued. */
    int (*send)(struct nicstride_op *op);
    const nicstride_method_row_t *row; /**< that moves its data otherwise; NULL: messages do */
    void *of_row;                      /**< what that keeps for it */
    int error;
    uint64_t handle;       /**< for replies; 0 where there are none */
    nicstride_get_t *gets; /**< NICSTRIDE_VECTOR_MAX of them, in the order of their bytes; NULL: it
                              is one operation, of which the layouts tell */
    unsigned ngets;
    onic_layout_t origin; /**< PUT, ACC: source; owned */
    char *origin_base;
    onic_layout_t result; /**< GET, GET_ACC: destination; owned */
    char *result_base;
    onic_layout_t target;         /**< owned */
    onic_cursor_t slice;          /**< list-form target: where the next slice begins */
    unsigned char cas[128];       /**< CAS: compare, then new value */
    nicstride_request_t *request; /**< NULL: none, or it has ended */
};

/** Frees one that is in no list, with what it owns. */
void nicstride_op_free_locked(nicstride_op_t *op);
/** True if it ends with a reply. */
static inline bool nicstride_op_wants_reply(const nicstride_op_t *op)
{
    return op->type == NICSTRIDE_MSG_GET || op->type == NICSTRIDE_MSG_GET_ACC ||
           op->type == NICSTRIDE_MSG_CAS;
}
/** A reply's bytes were put in place (or failed): accounts for them. */
void nicstride_op_received_locked(nicstride_op_t *op, uint64_t bytes, int error);
/** Ends the operation once nothing of it is under way any more. */
void nicstride_op_finish_locked(nicstride_op_t *op);
/** Nothing more will come of it. */
void nicstride_op_fail(nicstride_op_t *op);
/** A send of an operation is over; for onic_peer_send. */
void nicstride_op_sent_cb(void *op, int status);

/** Ends all operations to a peer that will not answer, with an error: at once, or when their sends
 *  are over. */
void nicstride_ops_fail_locked(nicstride_peer_t *p);
/** True if all that methods have begun by themselves, without messages, has landed at the peer. */
bool nicstride_rows_landed_locked(nicstride_peer_t *p);

/** All rows go on with what they have begun. `*left_p`: one has work that it could not do. */
int nicstride_rows_progress_locked(bool *left_p);
/** True if a send to the peer is still under way, or something that a row has begun there has not
 *  landed. */
bool nicstride_ops_in_flight_locked(nicstride_peer_t *p);
/** True if what is under way to the peer takes work of its process. An adapter's work does not. */
bool nicstride_needs_peer_locked(nicstride_peer_t *p);
/** Nothing more of what is queued is sent. The operations stay. */
void nicstride_queue_drop_locked(nicstride_peer_t *p);
/** Frees the operations that a peer will never end, the transport being closed. */
void nicstride_ops_drop(nicstride_peer_t *p);

/* ---- what comes back ------------------------------------------------------------------------- */

/** A message of a peer. Its form is checked, but not yet whether its bytes are in the window. */
typedef struct nicstride_incoming {
    nicstride_module_t *m;
    nicstride_peer_t *p;
    const nicstride_msg_t *msg;
    const void *layout;
    const void *data;
    size_t len;
    /** That the message names; NULL: none, or one that is not there. */
    struct nicstride_cached_layout *list;
} nicstride_incoming_t;

/** A reply: data for an operation of ours. */
void nicstride_on_data(const nicstride_incoming_t *in);

/** Puts in place what the peer answered in its reply line (reply_line.h), which was just found. */
void nicstride_place_answer_locked(nicstride_peer_t *p);

/** An error class as a peer reports it; what is none becomes MPI_ERR_OTHER. */
int nicstride_error_class(int status);

/* ---- what the rows share when they start transfers --------------------------------------------
 */

/** A new operation, without layouts, with its handle where there will be a reply. NULL where memory
 * is exhausted. */
nicstride_op_t *nicstride_op_new_locked(nicstride_peer_t *p, nicstride_msg_type_t type,
                                        int64_t disp, uint64_t size);

/** An operation of the transfer, with its reply's place; the rest of its layouts where it is
 *  `queued`. NULL where memory is exhausted. */
nicstride_op_t *nicstride_op_of_locked(nicstride_transfer_t *t, bool queued);

/** Something is under way that goes that way, to or from the bytes [from, to) of the target
 *  (protocol/order.h). Flushes look at the number without the lock. */
static inline void nicstride_enter_locked(nicstride_peer_t *p, unsigned way, bool reads,
                                          uint64_t from, uint64_t to)
{
    nicstride_use_locked(p);
    nicstride_order_note(&p->order, way, reads, from, to);
    __atomic_store_n(&p->queue.enqueued, p->queue.enqueued + 1, __ATOMIC_RELAXED);
}

/** What was entered last has such an object. */
static inline void nicstride_op_live_locked(nicstride_op_t *op)
{
    op->number = op->peer->queue.enqueued;
    TAILQ_INSERT_TAIL(&op->peer->queue.live, op, of_live);
}

/** Enters an operation of the transfer; NULL: it needs no object. */
void nicstride_op_enter_locked(const nicstride_transfer_t *t, nicstride_op_t *op);
