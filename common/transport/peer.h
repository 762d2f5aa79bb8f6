/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The processes that the transport reaches. The lock must be held where nothing else is
 *  said, but for what never changes of a peer; see transport.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/support/export.h"
#include "common/transport/shm/neighbour.h"

struct ompi_communicator_t;
struct onic_node;

/* ---- names and addresses ------------------------------------------------------------------- */

/** The name of a process: its job, and its number there, as in Open MPI's opal_process_name_t. */
static inline uint64_t onic_name(uint32_t job, uint32_t number)
{
    return (uint64_t)job << 32 | number;
}

/** The peer of that name, of this job or of one that it is connected with; where it is not known
 *  yet, what it has published is fetched (onic_transport_config_t's publish). It stays until the
 *  transport is closed. MPI thread, lock not held; never in a handler. NULL and an OMPI error:
 *  OMPI_ERR_NOT_FOUND where it has published nothing that this version understands. */
ONIC_EXPORT onic_peer_t *onic_transport_get_peer(uint64_t name, int *rc_p);

/** The name of a communicator's member. MPI threads. */
ONIC_EXPORT uint64_t onic_rank_name(struct ompi_communicator_t *comm, int rank);

/** The peer of that name if it is known, else NULL. Handlers may ask. */
ONIC_EXPORT onic_peer_t *onic_peer_named(uint64_t name);

ONIC_EXPORT uint64_t onic_peer_name(const onic_peer_t *peer);

/** The name of this process, while the transport is open. Any thread. */
ONIC_EXPORT uint64_t onic_transport_me(void);

/** True for this process itself. What it sends to itself is handled in a later progress. */
ONIC_EXPORT bool onic_peer_is_self(const onic_peer_t *peer);

/** A pointer that a component (`am_id`) may keep with a peer; NULL at first. */
ONIC_EXPORT void **onic_peer_slot(onic_peer_t *peer, unsigned am_id);

/** True if this process knows the addresses of all members. MPI thread, lock not held. */
ONIC_EXPORT bool onic_transport_knows(struct ompi_communicator_t *comm);

/** The address of this process, which others need to send to it: its size; and writes it, returning
 *  the size, or 0 where `cap` bytes are not enough. */
ONIC_EXPORT size_t onic_address_record_size(void);
ONIC_EXPORT size_t onic_address_record(void *bytes, size_t cap);

/** By all members of `comm`, of which `node` are those of this node: all tell all their addresses,
 * of at most `most` bytes. They are kept: in shared memory, once for each node, where all are of
 * one job, else by each process. They may be used when all members have returned. OMPI_SUCCESS, or
 * an error, which may differ between ranks. MPI thread, lock not held. */
ONIC_EXPORT int onic_transport_exchange(struct ompi_communicator_t *comm, struct onic_node *node,
                                        size_t most);

/** True if the connection to the peer is lost, or none can be had. Prints so the first time. */
ONIC_EXPORT bool onic_peer_lost(onic_peer_t *peer);
/** The same without a text: for peers that may have left in good order. */
ONIC_EXPORT bool onic_peer_is_lost(const onic_peer_t *peer);

/** Neither side can go on without a message that could not be sent: the connection counts as lost
 *  from now on, so that all that waits for the peer ends. The transport itself does so for messages
 *  that it had taken, but for a rendezvous. */
ONIC_EXPORT void onic_peer_give_up(onic_peer_t *peer);

/** Counts lost connections, and attempts to use one: when the number has changed there is more to
 *  end. Any thread; no lock. */
ONIC_EXPORT unsigned onic_transport_losses(void);

/* ---- processes of this machine that die --------------------------------------------------------
 *
 * UCX tells nothing of the end of a process that is reached by shared memory. So a process that
 * waits for others looks whether they are alive. The connection to one that is found to have died
 * counts as lost from then on, with all that follows from that. A process that is stopped is alive;
 * so is one of which it cannot be known (another machine, another pid namespace).
 */

/** Looks whether one of those processes has ended; each call looks at the next one, and none at any
 *  while the lock is busy. Progress does so now and then. Some 10 us. MPI thread, lock not held. */
ONIC_EXPORT void onic_transport_look_for_dead(void);

/** True if a process of this job on this machine was found dead. Those of other jobs, such as
 *  children, may have ended in good order. Any thread. */
ONIC_EXPORT bool onic_transport_job_is_broken(void);

/** True if this one process has ended. Takes no note of that, so the lock may be held. Any
 *  thread. */
ONIC_EXPORT bool onic_peer_is_dead(const onic_peer_t *peer);

/** The same, and its connections count as lost from then on. Lock not held. */
ONIC_EXPORT bool onic_peer_look(onic_peer_t *peer);

/** True while messages that had come from lost processes are handled. Until then no wait for them
 *  ends with an error; then onic_transport_losses grows once more. */
ONIC_EXPORT bool onic_transport_drains(void);

/** True if the process was found to have ended. Any thread; no lock. */
ONIC_EXPORT bool onic_peer_has_died(const onic_peer_t *peer);
