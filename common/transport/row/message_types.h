/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What a message is: whose it is, what it carries, and how its sender is told. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/support/export.h"
#include "common/transport/row/payload.h"

/** A process that can be sent to (peer.h). */
typedef struct onic_peer onic_peer_t;

/** Active-message identifiers: one for each component, one for the pipeline that they share, one
 *  for the shortest messages of a point-to-point layer, and one of the transport's own, for credit
 *  (message.h). */
enum {
    ONIC_AM_OSC = 1,
    ONIC_AM_PML = 2,
    ONIC_AM_COLL = 3,
    ONIC_AM_PIPELINE = 4,
    ONIC_AM_SHORT = 5,
    ONIC_AM_CREDIT = 6,
    ONIC_AM_COUNT,                  /**< one more than the highest of them */
    ONIC_AM_ADDRESS = ONIC_AM_COUNT /**< the transport's own: the address of its sender */
};

/** True if messages of this identifier name their sender: their header begins with its
 *  onic_transport_me(), and their handler gets its record. Others tell it by their contents. */
static inline bool onic_am_is_named(unsigned am_id)
{
    return am_id == ONIC_AM_PML || am_id == ONIC_AM_SHORT || am_id == ONIC_AM_CREDIT;
}

/** True if the receiver's server thread serves such messages: they wake it. Those of a
 *  point-to-point layer wait for an MPI thread anyway. */
static inline bool onic_am_is_served(unsigned am_id)
{
    return am_id != ONIC_AM_PML && am_id != ONIC_AM_SHORT && am_id != ONIC_AM_CREDIT;
}

/** Called with the lock held when a send is locally complete, never before the call that started it
 *  has returned: no call of this process is needed for it to arrive. `status` may be an error. */
typedef void (*onic_send_cb_t)(void *arg, int status);

/** Flags of onic_peer_send. */
enum {
    ONIC_SEND_RNDV = 1 /**< contiguous payload by rendezvous, without copies where UCX can */
};

/** Most bytes of an active message's header, for any peer. Set when the transport is opened. */
ONIC_EXPORT extern size_t onic_header_max;

/** Each ring takes messages of so many bytes, header and payload. */
#define ONIC_MESSAGE_LEAST 7936

/** The longest message that onic_peer_send_now takes by UCX. */
#define ONIC_SEND_NOW_MAX 128

/** A rendezvous payload that has been announced but not yet received. */
typedef struct onic_rndv onic_rndv_t;
