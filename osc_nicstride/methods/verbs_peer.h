/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What method nic shares with another process: a connection, and keys of its windows.
 *  Internal to verbs_wr.c, and only in builds with libibverbs.
 *
 *  The question for keys carries this process's end of a connection, of which there is one per
 *  process; the answer carries the target's end and the key of the memory.
 *
 *  Transport lock. */
#pragma once

#include "common/transport/verbs/connections.h"
#include "osc_nicstride/methods/methods.h"
#include "osc_nicstride/methods/nic_params.h"
#include "osc_nicstride/window/peer.h"

/** What method nic keeps for a process, in `of_row`. */
typedef struct nicstride_verbs_peer {
    onic_rc_t *rc;    /**< the connection to it; NULL: none */
    bool refused;     /**< there will be no connection */
    uint64_t process; /**< its name, once it is served; else 0 */
} nicstride_verbs_peer_t;

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
