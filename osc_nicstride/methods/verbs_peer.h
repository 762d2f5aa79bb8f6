/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What method nic shares with another process: a connection, and keys of its windows.
 *  Internal to verbs_wr.c.
 *
 *  The question for keys carries this process's end of a connection, of which there is one per
 *  process; the answer carries the target's end and the key of the memory.
 *
 *  Transport lock. */
#pragma once

#include <stddef.h>

#include "common/config.h"
#include "common/transport/verbs/requests.h"

/* Also in builds without libibverbs, so that parameters and counters are the same everywhere: */
/** The connections that there may be in each direction. */
extern size_t nicstride_nic_connections;
/** Counts of requests. */
extern onic_rdma_counts_t nicstride_nic_counts;

#if OMPI_NIC_HAVE_VERBS

#include "common/transport/verbs/connections.h"
#include "osc_nicstride/methods/methods.h"
#include "osc_nicstride/window/peer.h"

/** The key of a peer's window. */
typedef struct nicstride_nic_key {
    uint64_t addr; /**< the address of the window there */
    uint32_t key;
} nicstride_nic_key_t;

/** This process's adapter, which may be closed. */
extern onic_rc_adapter_t nicstride_nic_adapter;

extern const nicstride_rkey_ops_t nicstride_verbs_rkey_ops;

/** The connection by which the peer's window can be reached, and the window's key. NULL if it
 *  cannot be reached now; the target has then been asked for what is missing. `read`: bytes are
 *  read, otherwise only written. */
onic_rc_t *nicstride_nic_way_locked(nicstride_peer_t *p, bool read,
                                    const nicstride_nic_key_t **key);

/** nicstride_method_row_t's `leave`. */
void nicstride_nic_leave(void *of_row);

/** To be called when nothing is under way any more and the process leaves MPI: the adapter is
 *  closed as soon as no memory is registered. */
void nicstride_nic_end_locked(void);

#endif
