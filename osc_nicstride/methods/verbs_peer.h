/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What method nic shares with another process: a connection, and keys of its windows.
 *  Internal to verbs_wr.c, and only in builds with libibverbs.
 *
 *  The question for keys carries this process's end of a connection, of which there is one per
 *  process; the answer carries the target's end and the key of the memory. If the connection was
 *  closed to make room for others, the keys are asked for again (verbs_ask.h).
 *
 *  Transport lock. */
#pragma once

#include "common/transport/verbs/connections.h"
#include "osc_nicstride/methods/methods.h"
#include "osc_nicstride/window/module.h"

/** What method nic keeps for a process, in `of_row`. */
typedef struct nicstride_verbs_peer {
    onic_rc_t *rc;                 /**< the connection to it; NULL: none */
    bool refused;                  /**< there will be no connection */
    const nicstride_peer_t *asker; /**< the peer whose window's keys were asked for last */
    bool has_asked;                /**< the process has asked for a connection to this one */
    onic_rc_terms_t asked;         /**< the terms with which it asked */
    uint64_t process;              /**< its name, once it is served; else 0 */
} nicstride_verbs_peer_t;

/** A range of bytes of a target's window. */
typedef struct nicstride_nic_range {
    uint64_t at, end; /**< at < end */
    bool read;        /**< the bytes are read; otherwise only written */
} nicstride_nic_range_t;

/** This process's adapter, which may be closed. */
extern onic_rc_adapter_t nicstride_nic_adapter;

extern const nicstride_rkey_ops_t nicstride_verbs_rkey_ops;

/** The connection by which bytes of a target can be reached. NULL if they cannot now: then what is
 *  missing is asked for. `region` gets the pieces that hold the bytes: `*n_p` of them, at most
 *  `cap`. `*base_p` gets the address of byte 0 of the window. `region` NULL: only checks whether
 *  there are keys. */
onic_rc_t *nicstride_nic_way_locked(nicstride_peer_t *p, const nicstride_nic_range_t *range,
                                    onic_rdma_region_t *region, uint32_t cap, uint32_t *n_p,
                                    uint64_t *base_p);

/** nicstride_method_row_t's `leave`. */
void nicstride_nic_leave(void *of_row);

/** To be called when nothing is under way any more and the process leaves MPI: the adapter is
 *  closed as soon as no memory is registered. */
void nicstride_nic_end_locked(void);
