/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Verbs devices, of InfiniBand and RoCE: the port that is used, and the way from it to
 *  others. That no device is there is a normal state. What can be decided without a device is in
 *  verbs_port.h.
 *
 *  Memory: what is registered and what the adapter needs for its queues has to fit into what
 *  processes may lock, which is 64 KiB by default.
 *
 *  After fork the child has no use for any of it. The buffers are not copied to it, so that on
 *  kernels that would move the parent's pages at the next write they stay where the adapter knows
 *  them; the queues are libibverbs's own, which does the same for them on such kernels where it is
 *  asked to (RDMAV_FORK_SAFE, or UCX). The child never calls libibverbs, not even to give up what
 *  belongs to the parent; that is for the callers to see to.
 *
 *  Threads: one at a time for each port; different ones do not disturb each other.
 *
 *  Only in builds with libibverbs (OMPI_NIC_HAVE_VERBS). */
#pragma once

#include <infiniband/verbs.h>

#include "common/support/export.h"
#include "common/transport/verbs/verbs_port.h"

/** Why something could not be had: one line for the user, without a full stop or a newline. */
typedef struct onic_verbs_reason {
    char text[200];
} onic_verbs_reason_t;

/* ---- ports ----------------------------------------------------------------------------------- */

/** A port that is in use; all zero: none. */
typedef struct onic_verbs_port {
    struct ibv_context *context;
    struct ibv_pd *pd;
    uint8_t number;            /**< of the device's ports */
    uint8_t gid_index;         /**< Ethernet: which of the port's addresses is mine */
    onic_verbs_address_t mine; /**< without a queue pair */
} onic_verbs_port_t;

/** Chooses a port that is active and finds its address. What UCX is told holds here, too: by
 *  UCX_NET_DEVICES ("mlx5_0:1", "mlx5_0", "^mlx5_1:1") which ports may be used, and by
 *  UCX_IB_GID_INDEX which of an Ethernet port's addresses.
 *
 *  @return 0, or -1 and the reason; then nothing is open */
ONIC_EXPORT int onic_verbs_port_open(onic_verbs_port_t *port, onic_verbs_reason_t *why);

/** Queues on it are closed already. Does nothing where it is not open. */
ONIC_EXPORT void onic_verbs_port_close(onic_verbs_port_t *port);

/** The way from my port to another one: for an address handle, or for a queue pair that is to be
 *  connected to one there. */
ONIC_EXPORT struct ibv_ah_attr onic_verbs_route(const onic_verbs_port_t *port,
                                                const onic_verbs_address_t *to);
