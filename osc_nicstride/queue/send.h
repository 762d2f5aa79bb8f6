/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Sending a message to a peer: the one place where it is decided how it travels.
 *
 *  - inline: header, layout and data in one piece that is copied. It goes alone, at once; or in a
 *    batch (message.h) with others to the same peer, where it may wait or some wait already;
 *  - beside: a fragment whose data UCX takes from where it lies, behind all that waits.
 *
 *  What waits is sent when the batch is full, before anything else that is sent to the same peer
 *  (so that messages keep their order), by every flush, and whenever anybody progresses the
 * transport: an MPI thread that waits for anything, or the server thread, which is woken for that.
 * So nothing waits while anybody waits for it; while the origin is away from MPI and has no server
 * thread, it may stay until the origin's next call. Batches make a burst of fetch_and_op 6 times as
 * fast.
 *
 *  All is called with the transport lock held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/transport/transport.h"
#include "osc_nicstride/protocol/limits.h"
#include "osc_nicstride/protocol/message.h"
#include "osc_nicstride/window/state.h"
#include "osc_nicstride/window/module.h"

/** A batch that is filled, or on its way to the transport, which may keep it until the send is
 * over. */
typedef struct nicstride_sent_batch {
    nicstride_peer_t *peer; /**< while the transport has it */
    nicstride_batch_t batch;
} nicstride_sent_batch_t;

/** A message with room for what lies behind its header. */
typedef struct nicstride_framed {
    nicstride_msg_t msg;
    unsigned char layout[NICSTRIDE_INLINE_LAYOUT];
} nicstride_framed_t;

#define NICSTRIDE_PIECE_MAX (sizeof(nicstride_framed_t) + NICSTRIDE_INLINE_MAX)

/**
 * Sends a message. A failure is printed by the transport and marks the peer as failed, which ends
 * all waiting for it with an error.
 *
 * @param msg   its layout, if it has one, lies right behind it in memory; gets the flag
 *              NICSTRIDE_MSG_INLINE where that is how it travels
 * @param data  NULL: none
 * @param cb    as of onic_peer_send; NULL where there is no data: a failure is noted with the peer
 *              then
 * @return as onic_peer_send
 */
int nicstride_send_locked(nicstride_peer_t *p, nicstride_msg_t *msg, const onic_payload_t *data,
                          onic_send_cb_t cb, void *arg);

/** The same for data of up to NICSTRIDE_INLINE_MAX bytes, which is copied, or none; or for a
 *  ticket. */
void nicstride_send_inline_locked(nicstride_peer_t *p, nicstride_msg_t *msg,
                                  const onic_payload_t *data);

/** The same for a message that is all header. */
void nicstride_send_header_locked(nicstride_peer_t *p, nicstride_msg_t *msg);

/** Such a message with these fields. */
static inline nicstride_msg_t nicstride_note(const nicstride_peer_t *p, nicstride_msg_type_t type,
                                             unsigned op, uint64_t count)
{
    nicstride_msg_t msg;

    nicstride_msg_init(&msg, type, p->win, p->me);
    msg.op = (uint16_t)op;
    msg.count = count;
    return msg;
}
/** Sends it. */
void nicstride_send_note_locked(nicstride_peer_t *p, nicstride_msg_type_t type, unsigned op,
                                uint64_t count);
/** The same, of MPI threads, no lock held. False where the peer cannot be reached. */
bool nicstride_send_note(nicstride_peer_t *p, nicstride_msg_type_t type, unsigned op,
                         uint64_t count);

/** True if there is credit for a message for which the target may have to keep so many bytes. */
static inline bool nicstride_has_credit_locked(const nicstride_peer_t *p, uint64_t kept)
{
    return p->flow.posting < NICSTRIDE_POSTING_MAX &&
           kept <= onic_credit_left(&p->account->credit, 0);
}

/** True if it may be sent now: there is credit, and no lock is waited for. */
static inline bool nicstride_may_send_locked(const nicstride_peer_t *p, uint64_t kept)
{
    return nicstride_has_credit_locked(p, kept) && nicstride_asked_is_had(&p->lock.asked);
}

/** Counts a message about to be sent, for which the target may have to keep so many bytes. */
static inline void nicstride_count_sent_locked(nicstride_peer_t *p, uint64_t kept)
{
    nicstride_tx_send(&p->flow.tx);
    (void)onic_credit_take(&p->account->credit, kept, 0);
    nicstride_add(&nicstride_counters.messages, 1);
}

/** Header, layout and data become one piece in `bytes`, NICSTRIDE_PIECE_MAX at most; returns its
 *  length. Parameters as above. */
size_t nicstride_compose(unsigned char *bytes, nicstride_msg_t *msg, const onic_payload_t *data);

/** Sends a message that is encoded already, of one piece, which is copied. */
void nicstride_post_locked(nicstride_peer_t *p, const void *message, size_t len, bool may_wait);

/** Room for a message of `len` bytes behind those that wait for the peer; it waits with them. NULL
 *  where memory is exhausted, or it is too long: nothing waits then. */
unsigned char *nicstride_message_room_locked(nicstride_peer_t *p, size_t len);

/** The most bytes of a batch to the peer, to which so many more are to be added. */
size_t nicstride_batch_max_locked(nicstride_peer_t *p, size_t len);

/** Packed bytes [at, at + len) of a layout become the payload. */
void nicstride_set_payload(onic_payload_t *p, const onic_layout_t *l, const char *base, uint64_t at,
                           uint64_t len);

/** True if something waits for this peer. A guess, where the lock is not held. */
static inline bool nicstride_waits_for_others(const nicstride_peer_t *p)
{
    return __atomic_load_n(&p->flow.batch, __ATOMIC_RELAXED) != NULL;
}

/** Sends what waits for this peer. */
void nicstride_send_waiting_locked(nicstride_peer_t *p);
/** Sends what waits for anybody; returns how many batches. */
int nicstride_send_all_waiting_locked(void);
/** Forgets what waits, before the peer is freed. */
void nicstride_drop_waiting_locked(nicstride_peer_t *p);

/** While this holds, all short messages to anybody wait: the replies to what came in one message
 *  go back in one. The caller that ends it calls nicstride_send_all_waiting_locked. */
extern bool nicstride_collects;

/** A message to the peer does not get out: nothing waits for it any more, in whatever window. */
void nicstride_give_up_locked(nicstride_peer_t *p);

/** The most bytes of inline data in a message of a peer's, `far` in active target to another
 *  node. */
static inline size_t nicstride_inline_max(bool far)
{
    const nicstride_limits_t *l = &nicstride_component.limits;

    return far ? l->far : l->near;
}

/** Bytes of header and payload that go in one fragment to the peer, as many as are `wanted` if that
 *  can be. */
size_t nicstride_frag_max_locked(nicstride_peer_t *p, size_t wanted);

/** Makes the connection. */
static inline void nicstride_connect_locked(nicstride_peer_t *p)
{
    (void)nicstride_frag_max_locked(p, 0);
}
