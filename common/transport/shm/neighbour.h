/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What a process can do with another one of its node without a message: copy from and to its
 *  memory, see whether it is in MPI, wake its server thread. The transport lock is held, if not
 *  said otherwise. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "common/support/export.h"
#include "common/transport/row/message_types.h"
#include "common/transport/row/address.h"
#include "common/transport/shm/inbox.h"
#include "common/transport/shm/presence.h"
#include "common/transport/shm/refused.h"

/* ---- single copy between processes of one node --------------------------------------------- */

/** True if single copy (process_vm_readv, _writev) reaches this peer. Found out once, by reading a
 *  nonce. The opposite direction may differ. */
ONIC_EXPORT bool onic_peer_can_cma(onic_peer_t *peer);

/** Copies from the peer's memory, or to it where `write`: `bytes` in all, less than 2 GiB, of as
 *  many pieces as one system call takes. Where the kernel refuses, part of it may have been copied;
 *  the caller remembers that, for it may concern one direction or some memory alone. Only where
 *  onic_peer_can_cma was true. Any thread; no lock. */
ONIC_EXPORT onic_refused_t onic_peer_copy(const onic_peer_t *peer, bool write,
                                          const struct iovec *here, unsigned nhere,
                                          const struct iovec *there, unsigned nthere,
                                          uint64_t bytes);

/** The peer's process id, or -1. Meaningful where onic_peer_can_cma is true. */
ONIC_EXPORT pid_t onic_peer_pid(onic_peer_t *peer);

/* ---- is it in MPI? (presence.h) -------------------------------------------------------------- */

/* What the first call of one of these finds out stays until the transport is closed. Later calls
 * need no lock. */

/** The page of a peer; NULL where it cannot be had. */
ONIC_EXPORT const onic_presence_t *onic_peer_presence(onic_peer_t *peer);

/** True if the peer has a server thread that this process can wake, and it can see whether that is
 *  needed. */
ONIC_EXPORT bool onic_peer_can_wake(onic_peer_t *peer);

/** Wakes that thread. System calls; no lock. Only where onic_peer_can_wake was true. */
ONIC_EXPORT void onic_peer_wake(const onic_peer_t *peer);

/* ---- for the transport ----------------------------------------------------------------------- */

/** This process, as others of its node find it. */
typedef struct onic_here {
    uint64_t name; /**< onic_name */
    onic_cma_id_t id;
    uint64_t nonce;
    int wake_pipe; /**< a byte in it ends the server thread's sleep */
} onic_here_t;

extern onic_here_t onic_here;

/** Makes the pipe. MPI thread. */
void onic_here_start(void);
void onic_here_stop(void);

/** Lets the processes of this node copy from and to this one's memory. */
void onic_cma_allow(void);

/** True if both are on one node, and process ids and the clock mean the same to both. */
bool onic_same_place(const onic_cma_id_t *a, const onic_cma_id_t *b);

/** The head of the peer's inbox; NULL where it cannot be had. Then peer->wakes says whether this
 *  process may open the peer's pipe: to wake the peer's server thread, if there is one. */
onic_inbox_head_t *onic_peer_inbox(onic_peer_t *peer);

/** Gives back what that has mapped. */
void onic_peer_close_files(onic_peer_t *peer);
