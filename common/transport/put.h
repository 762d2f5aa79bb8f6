/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Puts and gets over the network, to memory that the target has registered: it describes the
 *  region in a few bytes, by which a process opens it. Over an RDMA network the adapter moves the
 *  data; over others UCX does in the target's progress. The transport lock is held, if not said
 *  otherwise. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/support/export.h"
#include "common/transport/transport.h"

/** True if there can be regions: if a component had asked for puts before the transport was first
 *  opened. */
ONIC_EXPORT bool onic_transport_puts(void);

/** Registered memory of this process. */
typedef struct onic_region onic_region_t;

/** Allocates zeroed registered memory, at a whole page. NULL where it cannot be had: the transport
 *  was opened without puts, or memory is exhausted. The lock must not be held. */
ONIC_EXPORT onic_region_t *onic_region_new(size_t bytes);
/** Frees a region into which no process puts any more. The lock must not be held. */
ONIC_EXPORT void onic_region_free(onic_region_t *region);

/** Registers memory of the caller's, which must stay as it is until the region is freed. NULL as
 *  above, or where this process may not lock so much. The lock must be held. */
ONIC_EXPORT onic_region_t *onic_region_over_locked(void *base, size_t bytes);

/** As onic_region_free, with the lock held. Also after the transport has been closed. */
ONIC_EXPORT void onic_region_free_locked(onic_region_t *region);

/** Leaves a region into which peers may still put: it is freed when the transport is closed. The
 *  lock must not be held. */
ONIC_EXPORT void onic_region_leave(onic_region_t *region);
ONIC_EXPORT void *onic_region_base(const onic_region_t *region);

/** Writes what a peer needs to put into the region: this process's address, the region's address
 *  and key. Returns the length, or 0 where `cap` bytes are not enough. Lock not held. */
ONIC_EXPORT size_t onic_region_describe(const onic_region_t *region, void *bytes, size_t cap);

/** The same for a peer that knows this process: without the address. The lock must be held. */
ONIC_EXPORT size_t onic_region_key_locked(const onic_region_t *region, void *bytes, size_t cap);

/** A region of a peer. */
typedef struct onic_remote onic_remote_t;

/** Opens the region that a peer has described; with `peer` NULL the description has its address,
 *  and the peer is learned of; else it is of onic_region_key_locked. NULL and an OMPI error where
 *  the bytes are malformed or there is no way to that peer. */
ONIC_EXPORT onic_remote_t *onic_remote_open(onic_peer_t *peer, const void *bytes, size_t len,
                                            int *rc_p);

/** Closes a peer's region with which nothing is under way. Also after the transport has been
 *  closed. */
ONIC_EXPORT void onic_remote_close(onic_remote_t *remote);

/** Whose region it is. */
ONIC_EXPORT onic_peer_t *onic_remote_peer(const onic_remote_t *remote);

/** Puts `len` > 0 bytes at `data` to byte `offset` of a peer's region; `from`: the region that they
 *  lie in, NULL where they are not registered. They are the transport's until local completion.
 * Returns 1 where that is so at once, 0 where cb will be called, or an OMPI error. cb gets an error
 * also where the peer is lost; it may send. Nothing is promised of the order in which the bytes can
 *  be seen at the peer, nor of that of puts. */
ONIC_EXPORT int onic_remote_put(onic_remote_t *remote, size_t offset, const void *data, size_t len,
                                const onic_region_t *from, onic_send_cb_t cb, void *arg);

/** Gets bytes from there likewise: on completion all of them are here. */
ONIC_EXPORT int onic_remote_get(onic_remote_t *remote, size_t offset, void *data, size_t len,
                                onic_send_cb_t cb, void *arg);

/** Completes when all that was put to the peer so far can be seen there. Returns as the others. */
ONIC_EXPORT int onic_peer_flush(onic_peer_t *peer, onic_send_cb_t cb, void *arg);

/** True if an adapter puts into this peer's memory, so that its processor takes no part. Connects
 *  the peer, if need be. */
ONIC_EXPORT bool onic_peer_puts_by_rdma(onic_peer_t *peer);
