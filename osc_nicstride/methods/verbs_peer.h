/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What method nic has with another process: a connection, and keys of its windows. Internal
 *  to verbs_wr.c, and only in builds with libibverbs.
 *
 *  With the question for keys a process tells its end of a connection, which it has one of to each
 *  other process; with the answer the target tells its own, and the key of the memory. Where the
 *  connection has gone, to make room for others, the keys are asked for again (verbs_ask.h).
 *
 *  Transport lock. */
#pragma once

#include "common/transport/verbs/connections.h"
#include "osc_nicstride/methods/methods.h"
#include "osc_nicstride/window/module.h"

/** With a process: what it keeps in `of_row`. */
typedef struct nicstride_verbs_peer {
    onic_rc_t *rc;                 /**< the connection to it; NULL: none */
    bool refused;                  /**< there will be none */
    const nicstride_peer_t *asker; /**< whose window was asked for keys last */
    bool has_asked;                /**< for one to me, */
    onic_rc_terms_t asked;         /**< with these terms */
    uint64_t process;              /**< its name, once it is served; else 0 */
} nicstride_verbs_peer_t;

/** Bytes of a target's window. */
typedef struct nicstride_nic_range {
    uint64_t at, end; /**< at < end */
    bool read;        /**< they are to be read; else only written */
} nicstride_nic_range_t;

/** The process's adapter, perhaps closed. */
extern onic_rc_adapter_t nicstride_nic_adapter;

extern const nicstride_rkey_ops_t nicstride_verbs_rkey_ops;

/** The connection by which bytes of a target can be reached, NULL where they cannot now: then what
 *  is missing is asked for. `region` gets the pieces that they lie in, `*n_p` of them, `cap` at
 *  most, and `*base_p` the address of byte 0 of the window; NULL: it is only asked whether there
 *  are keys. */
onic_rc_t *nicstride_nic_way_locked(nicstride_peer_t *p, const nicstride_nic_range_t *range,
                                    onic_rdma_region_t *region, uint32_t cap, uint32_t *n_p,
                                    uint64_t *base_p);

/** nicstride_method_row_t's `leave`. */
void nicstride_nic_leave(void *of_row);

/** Nothing is under way any more, and the process leaves MPI: the adapter is closed when no memory
 *  is registered. */
void nicstride_nic_end_locked(void);
