/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Sending a message to a peer. Only this file decides how it travels:
 *
 *  - inline: header, layout and data in one piece that is copied. It goes alone, at once; or in a
 *    batch (message.h) with others to the same peer, if it may wait or some wait already;
 *  - beside: a fragment whose data UCX takes from its place, behind all messages that wait.
 *
 *  Waiting messages are sent when the batch is full, before anything else to the same peer (so that
 *  messages keep their order), by every flush, and whenever any thread progresses the transport: an
 *  MPI thread that waits for something, or the server thread, which is woken for that. So no
 *  message waits while anybody waits for it. While the origin is away from MPI and has no server
 *  thread, messages may stay until its next call. Batches make a burst of fetch_and_op 6 times as
 *  fast.
 *
 *  Everything is called with the transport lock held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/transport/transport.h"
#include "osc_nicstride/protocol/limits.h"
#include "osc_nicstride/protocol/message.h"
#include "osc_nicstride/window/state.h"
#include "osc_nicstride/window/peer.h"

/** A batch that is being filled, or is handed to the transport, which may keep it until the send is
 *  over. */
typedef struct nicstride_sent_batch {
    nicstride_peer_t *peer; /**< set while the transport has the batch */
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
 * all waits for it with an error.
 *
 * @param msg   its layout, if it has one, lies right behind it in memory; gets the flag
 *              NICSTRIDE_MSG_INLINE if the data travels inline
 * @param data  NULL: none
 * @param cb    as in onic_peer_send; NULL if there is no data: then the peer notes a failure
 * @return as onic_peer_send
 */
int nicstride_send_locked(nicstride_peer_t *p, nicstride_msg_t *msg, const onic_payload_t *data,
                          onic_send_cb_t cb, void *arg);

/** The same for up to NICSTRIDE_INLINE_MAX bytes of data, which are copied, for no data, or for a
 *  ticket. */
void nicstride_send_inline_locked(nicstride_peer_t *p, nicstride_msg_t *msg,
                                  const onic_payload_t *data);

/** The same for a message that consists of its header only. */
void nicstride_send_header_locked(nicstride_peer_t *p, nicstride_msg_t *msg);

/** Makes such a message with these fields. */
static inline nicstride_msg_t nicstride_note(const nicstride_peer_t *p, nicstride_msg_type_t type,
                                             unsigned op, uint64_t count)
{
    nicstride_msg_t msg;

    nicstride_msg_init(&msg, type, p->win, p->me);
    msg.op = (uint16_t)op;
    msg.count = count;
    return msg;
}
/** Makes and sends such a message. */
void nicstride_send_note_locked(nicstride_peer_t *p, nicstride_msg_type_t type, unsigned op,
                                uint64_t count);
/** The same, for MPI threads that hold no lock. False if the peer cannot be reached. */
bool nicstride_send_note(nicstride_peer_t *p, nicstride_msg_type_t type, unsigned op,
                         uint64_t count);

/** True if there is credit for a message for which the target may have to keep `kept` bytes. */
static inline bool nicstride_has_credit_locked(const nicstride_peer_t *p, uint64_t kept)
{
    return p->flow.posting < NICSTRIDE_POSTING_MAX &&
           kept <= onic_credit_left(&p->account->credit, 0);
}

/** True if such a message may be sent now: there is credit, and no lock is awaited. */
static inline bool nicstride_may_send_locked(const nicstride_peer_t *p, uint64_t kept)
{
    return nicstride_has_credit_locked(p, kept) && nicstride_asked_is_had(&p->lock.asked);
}

/** Counts a message that is about to be sent, for which the target may have to keep `kept`
 *  bytes. */
static inline void nicstride_count_sent_locked(nicstride_peer_t *p, uint64_t kept)
{
    nicstride_tx_send(&p->flow.tx);
    (void)onic_credit_take(&p->account->credit, kept, 0);
    onic_count(&nicstride_counters.messages, 1);
}

/** Puts header, layout and data into one piece in `bytes`, of at most NICSTRIDE_PIECE_MAX bytes;
 *  returns its length. Parameters as above. */
size_t nicstride_compose(unsigned char *bytes, nicstride_msg_t *msg, const onic_payload_t *data);

/** Sends an encoded message in one piece, which is copied. */
void nicstride_post_locked(nicstride_peer_t *p, const void *message, size_t len, bool may_wait);

/** Makes room for a message of `len` bytes behind those that wait for the peer; it waits with them.
 *  NULL if memory is exhausted or the message is too long; then no message waits. */
unsigned char *nicstride_message_room_locked(nicstride_peer_t *p, size_t len);

/** The most bytes of a batch to the peer, to which `len` bytes are to be added. */
size_t nicstride_batch_max_locked(nicstride_peer_t *p, size_t len);

/** Makes packed bytes [at, at + len) of a layout the payload. */
void nicstride_set_payload(onic_payload_t *p, const onic_layout_t *l, const char *base, uint64_t at,
                           uint64_t len);

/** True if messages wait for this peer. Without the lock this is a guess. */
static inline bool nicstride_waits_for_others(const nicstride_peer_t *p)
{
    return __atomic_load_n(&p->flow.batch, __ATOMIC_RELAXED) != NULL;
}

/** Sends the messages that wait for this peer. */
void nicstride_send_waiting_locked(nicstride_peer_t *p);
/** Sends all waiting messages; returns the number of batches. */
int nicstride_send_all_waiting_locked(void);
/** Discards waiting messages before the peer is freed. */
void nicstride_drop_waiting_locked(nicstride_peer_t *p);

/** While this is set, all short messages to any peer wait, so that the replies to the contents of
 *  one message go back in one. The caller that clears it calls
 *  nicstride_send_all_waiting_locked. */
extern bool nicstride_collects;

/** Notes that a message to the peer cannot be sent: nobody waits for the peer any more, in any
 *  window. */
void nicstride_give_up_locked(nicstride_peer_t *p);

/** The most bytes of inline data in a message; `far`: in active target to another node. */
static inline size_t nicstride_inline_max(bool far)
{
    const nicstride_limits_t *l = &nicstride_component.limits;

    return far ? l->far : l->near;
}

/** Bytes of header and payload that go in one fragment to the peer: `wanted` if possible. */
size_t nicstride_frag_max_locked(nicstride_peer_t *p, size_t wanted);

/** Makes the connection to the peer. */
static inline void nicstride_connect_locked(nicstride_peer_t *p)
{
    (void)nicstride_frag_max_locked(p, 0);
}
