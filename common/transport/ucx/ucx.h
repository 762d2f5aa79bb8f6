/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file UCX: the row for messages to all that no other row reaches, and what it alone has:
 *  rendezvous, registered memory, puts and gets. Over an RDMA network the adapter moves that data;
 *  over others UCX does in the target's progress. */
#pragma once

#include "common/transport/row/row.h"

extern const onic_row_t onic_row_ucx;

/** Receives a rendezvous; as onic_row_t's `send`. */
int onic_ucx_receive(onic_request_t *r, const onic_rndv_t *rndv, void *buffer);

/** Registered memory of this process. */
typedef struct onic_region {
    LIST_ENTRY(onic_region) listed;
    void *base;
    size_t size;
    struct ucp_mem *memh; /**< NULL: UCX has been stopped */
    bool left;            /**< peers may still put into it: it is freed with the transport */
} onic_region_t;

/** The same of a peer. */
typedef struct onic_remote {
    LIST_ENTRY(onic_remote) listed;
    onic_peer_t *peer;
    uint64_t base;
    uint64_t size;
    struct ucp_rkey *rkey; /**< NULL: UCX has been stopped */
} onic_remote_t;

/** Registers memory; where `base` is NULL allocates it, zeroed: UCX takes what its transports reach
 *  best. NULL where it cannot. */
onic_region_t *onic_ucx_map(void *base, size_t bytes);
/** Also after UCX has been stopped. */
void onic_ucx_unmap(onic_region_t *region);
/** What a peer needs to reach the region: bytes written; 0: `cap` is too small. */
size_t onic_ucx_pack(const onic_region_t *region, void *bytes, size_t cap);

/** Opens a region of a connected peer by its key. NULL and an error. */
onic_remote_t *onic_ucx_open(onic_peer_t *peer, const void *key, int *rc_p);
/** Also after UCX has been stopped. */
void onic_ucx_close(onic_remote_t *remote);

/** Start a transfer of `len` bytes from or to the address `there` of the peer. As `send`. */
int onic_ucx_put(onic_request_t *r, const onic_remote_t *remote, uint64_t there, const void *data,
                 size_t len, const onic_region_t *from);
int onic_ucx_get(onic_request_t *r, const onic_remote_t *remote, uint64_t there, void *data,
                 size_t len);
/** Completes when all that was sent and put to the peer is there. As `send`. */
int onic_ucx_flush(onic_request_t *r);

/** True if an adapter moves the data, so that the peer's processor takes no part. False for a peer
 *  that is not connected. */
bool onic_ucx_by_rdma(const onic_peer_t *peer);
