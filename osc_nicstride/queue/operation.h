/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Operations under way: something is still to be sent, or a reply is to come. An operation
 *  that is fully sent and awaits no reply has no object.
 *
 *  Everything is called with the transport lock held, unless stated otherwise. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/layout/layout.h"
#include "osc_nicstride/protocol/message.h"
#include "osc_nicstride/window/peer.h"
#include "osc_nicstride/window/transfer.h"
#include "common/transport/transport.h"
#include "osc_nicstride/queue/send.h"
#include "osc_nicstride/queue/request.h"

/** Where one of several gets stores its bytes. */
typedef struct nicstride_get {
    char *to;
    uint32_t len;
} nicstride_get_t;

/** One operation under way, or several gets with a single reply; transport lock. */
struct nicstride_op {
    STAILQ_ENTRY(nicstride_op) of_queue;
    TAILQ_ENTRY(nicstride_op) of_live;
    nicstride_peer_t *peer;
    nicstride_msg_type_t type; /**< PUT, GET, ACC, GET_ACC or CAS */
    bool sends_data;           /**< fragments carry data from the origin buffer */
    uint16_t op;
    uint16_t dtype;
    uint32_t granule; /**< bytes of an element that fragments must not tear; 1 for puts and gets */
    int64_t disp;
    uint64_t size;
    uint64_t sent;      /**< bytes handed to the transport; if not all are, it may be queued */
    uint64_t received;  /**< bytes received in replies */
    uint32_t in_flight; /**< sends that are not locally complete, and replies being received */
    bool failed;        /**< nothing more is expected, and its request has ended */
    uint64_t number;    /**< its number in the peer's queue, from 1 */
    const nicstride_method_row_t *row; /**< the row that moves its data; NULL: messages do */
    void *of_row;                      /**< what that row keeps for it */
    int error;
    uint64_t handle;       /**< for replies; 0 if there will be none */
    nicstride_get_t *gets; /**< NICSTRIDE_VECTOR_MAX of them, in the order of their bytes; NULL:
                              this is one operation, with layouts */
    unsigned ngets;
    onic_layout_t origin; /**< PUT, ACC: source; owned */
    char *origin_base;
    onic_layout_t result; /**< GET, GET_ACC: destination; owned */
    char *result_base;
    onic_layout_t target;         /**< owned */
    onic_cursor_t slice;          /**< list-form target: where the next slice begins */
    unsigned char cas[128];       /**< CAS: compare, then new value */
    nicstride_request_t *request; /**< NULL: there is none, or it has ended */
};

/** Frees an operation that is in no list, with everything that it owns. */
void nicstride_op_free_locked(nicstride_op_t *op);
/** True if the operation ends with a reply. */
static inline bool nicstride_op_wants_reply(const nicstride_op_t *op)
{
    return op->type == NICSTRIDE_MSG_GET || op->type == NICSTRIDE_MSG_GET_ACC ||
           op->type == NICSTRIDE_MSG_CAS;
}
/** Accounts for a reply's bytes, which were stored (or failed). */
void nicstride_op_received_locked(nicstride_op_t *op, uint64_t bytes, int error);
/** Ends the operation if nothing of it is under way any more. */
void nicstride_op_finish_locked(nicstride_op_t *op);
/** Marks the operation as failed: nothing more will come. */
void nicstride_op_fail(nicstride_op_t *op);
/** Callback for onic_peer_send: a send of an operation is over. */
void nicstride_op_sent_cb(void *op, int status);

/** Ends all operations to a peer that will not answer with an error: at once, or when their sends
 *  are over. */
void nicstride_ops_fail_locked(nicstride_peer_t *p);
/** True if everything that methods have begun without messages has landed at the peer. */
bool nicstride_rows_landed_locked(nicstride_peer_t *p);

/** Lets all rows continue what they have begun. `*left_p`: one has work that it could not do. */
int nicstride_rows_progress_locked(bool *left_p);
/** True if a send to the peer is still under way, or something that a row began there has not
 *  landed. */
bool nicstride_ops_in_flight_locked(nicstride_peer_t *p);
/** True if what is under way to the peer needs work of its process. An adapter's work does not. */
bool nicstride_needs_peer_locked(nicstride_peer_t *p);
/** Stops sending what is queued. The operations stay. */
void nicstride_queue_drop_locked(nicstride_peer_t *p);

/* ---- replies --------------------------------------------------------------------------------- */

/** A message from a peer. Its form is checked, but not whether its bytes are in the window. */
typedef struct nicstride_incoming {
    nicstride_module_t *m;
    nicstride_peer_t *p;
    const nicstride_msg_t *msg;
    const void *layout;
    const void *data;
    size_t len;
} nicstride_incoming_t;

/** Handles a reply: data for an operation of this process. */
void nicstride_on_data(const nicstride_incoming_t *in);

/** Stores the data of an answer that was just found in the peer's reply line (reply_line.h). */
void nicstride_place_answer_locked(nicstride_peer_t *p);

/** The error class that a peer reports; MPI_ERR_OTHER if it is not a class. */
int nicstride_error_class(int status);

/* ---- what the rows share when they start transfers ------------------------------------------- */

/** Makes an operation without layouts. It has a handle if there will be a reply. NULL if memory is
 *  exhausted. */
nicstride_op_t *nicstride_op_new_locked(nicstride_peer_t *p, nicstride_msg_type_t type,
                                        int64_t disp, uint64_t size);

/** Makes an operation for the transfer, whose layouts it takes over. NULL if memory is exhausted.
 */
nicstride_op_t *nicstride_op_of_locked(nicstride_transfer_t *t);

/** Notes that something starts that takes `way`, to or from bytes [from, to) of the target
 *  (protocol/order.h). Flushes read the number without the lock. */
static inline void nicstride_enter_locked(nicstride_peer_t *p, unsigned way, bool reads,
                                          uint64_t from, uint64_t to)
{
    nicstride_order_note(&p->order, way, reads, from, to);
    __atomic_store_n(&p->queue.enqueued, p->queue.enqueued + 1, __ATOMIC_RELAXED);
}

/** Gives what was entered last an object. */
static inline void nicstride_op_live_locked(nicstride_op_t *op)
{
    op->number = op->peer->queue.enqueued;
    TAILQ_INSERT_TAIL(&op->peer->queue.live, op, of_live);
}

/** Enters an operation of the transfer. */
void nicstride_op_enter_locked(const nicstride_transfer_t *t, nicstride_op_t *op);
