/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Operations that go to the target by messages, from their start to their local completion.
 */
#ifndef NICSTRIDE_STREAM_H
#define NICSTRIDE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/layout.h"
#include "osc_nicstride/module.h"
#include "osc_nicstride/proto.h"
#include "osc_nicstride/request.h"
#include "osc_nicstride/target.h"

/** One operation under way; wire lock. */
struct nicstride_op {
    nicstride_op_t *next;
    nicstride_op_t *live_next;
    nicstride_op_t *live_prev;
    nicstride_module_t *module;
    nicstride_peer_t *peer;
    nicstride_msg_type_t type; /**< PUT, GET, ACC, GET_ACC or CAS */
    bool rndv;
    bool sends_data; /**< fragments carry data of the origin buffer */
    uint16_t op;
    uint16_t dtype;
    uint32_t granule; /**< bytes of an element that fragments must not tear; 1 for data */
    int64_t disp;
    uint64_t size;
    uint64_t sent;      /**< bytes of the operation given to the wire */
    uint64_t received;  /**< bytes of replies */
    uint32_t in_flight; /**< sends not locally complete, and replies being received */
    bool queued;        /**< in the peer's queue */
    uint64_t number;    /**< of this operation in the peer's queue, from 1 */
    int error;
    uint64_t handle;      /**< for replies; 0 where there are none */
    bool plain;           /**< GET, GET_ACC, CAS: result_base is contiguous, result is not set */
    onic_layout_t origin; /**< PUT, ACC: source; owned */
    char *origin_base;
    onic_layout_t result; /**< GET, GET_ACC: destination; owned */
    char *result_base;
    onic_layout_t target; /**< owned */
    onic_cursor_t slice;  /**< list-form target: where the next slice begins */
    size_t encoded_len;   /**< stride-form target: its encoding */
    unsigned char encoded[ONIC_LAYOUT_ENCODED_MAX];
    unsigned char cas[128]; /**< CAS: compare, then new value */
    nicstride_request_t *request;
};

/** A new operation towards the target of `a`; takes over a->target. NULL: memory exhausted.
 *  Otherwise the wire lock is held when it returns: fill in the rest and start it. */
nicstride_op_t *nicstride_op_new(nicstride_module_t *m, nicstride_target_t *a,
                                 nicstride_msg_type_t type, uint64_t size);
/** Gives the operation to its peer and sends what may be sent; releases the wire lock. Waits
 *  (progressing) only where very many operations are queued already. On an error the operation is
 *  freed. */
int nicstride_op_start(nicstride_op_t *op);
/** Ends all operations to a peer that will not answer, with an error: at once, or when their sends
 *  are over. Wire lock. */
void nicstride_ops_fail_locked(nicstride_peer_t *p);
/** Is a send of an operation, or of another message, to the peer still under way? Wire lock. */
bool nicstride_ops_in_flight_locked(const nicstride_peer_t *p);
/** Frees the operations that a peer will never end, the wire being closed. */
void nicstride_ops_drop(nicstride_peer_t *p);
/** Frees the operation objects kept for reuse, at the end of the process. */
void nicstride_ops_fini(void);
/** Bytes of header and payload that go in one fragment to the peer. */
size_t nicstride_frag_max_locked(nicstride_peer_t *p);
/** Sends what the peer's flow control allows. */
void nicstride_pump_queue_locked(nicstride_module_t *m, nicstride_peer_t *p);
/** The same. There is nothing mostly: small operations pass the queue by. */
static inline void nicstride_pump_locked(nicstride_module_t *m, nicstride_peer_t *p)
{
    if (p->head != NULL)
        nicstride_pump_queue_locked(m, p);
}
/** Takes what the peer answered in its slot. */
void nicstride_take_answer_locked(nicstride_peer_t *p);
/** Has the peer answered there? Then that is taken. To be called wherever its answers are waited
 *  for, and before it is asked for another. */
static inline bool nicstride_look_locked(nicstride_peer_t *p)
{
    if (p->slot == NULL || !nicstride_slot_look(p->slot, &p->slot_seen))
        return false;
    nicstride_take_answer_locked(p);
    return true;
}
/** A reply's bytes were put in place (or failed): accounts for them. */
void nicstride_op_received_locked(nicstride_op_t *op, uint64_t bytes, int error);

/** Sends a message without layout and payload. A failure is printed by the wire and marks the peer
 *  as failed, which ends all waiting for it with an error. */
void nicstride_send_locked(nicstride_module_t *m, nicstride_peer_t *p, nicstride_msg_t *msg);

#endif
