/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Strided keys of mlx5 adapters for transfers over reliable connections: a near side of many
 *  blocks, which would take several requests for one piece of the far side, becomes one block of a
 *  key. The adapter is told what the key means by a request before those that use it.
 *
 *  None of this has run on such an adapter yet. It has to be asked for.
 *
 *  Keys are made when they are first needed, and kept. Threads: as connections.h. */
#pragma once

#include "common/verbs/connections.h"

/** A key in use. */
typedef struct onic_strided_key {
    struct onic_strided_key *next; /**< of those that are not */
    void *mkey;                    /**< libmlx5's */
    bool defined;                  /**< it has meant something */
    onic_rc_t *rc;
    onic_layout_t layout; /**< all its bytes */
    onic_rdma_region_t region;
} onic_strided_key_t;

/** Keys that may be in use on a connection at a time, and requests for which its queue has room
 *  because of them. */
#define ONIC_STRIDED_KEYS     16
#define ONIC_STRIDED_REQUESTS (2 * ONIC_STRIDED_KEYS)

/** An adapter is opened: NULL, or why there can be no strided keys. */
const char *onic_strided_keys_open(onic_rc_adapter_t *a);
/** It is closed; no connections are left. */
void onic_strided_keys_close(onic_rc_adapter_t *a);

/** A queue pair with room for those requests, too; as ibv_create_qp. */
struct ibv_qp *onic_strided_pair(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);

/** For a transfer that begins next on a connection: puts a key in place of its near side, if that
 *  saves requests. NULL where it stays as it is; else to be given back when the transfer has ended.
 */
ONIC_EXPORT onic_strided_key_t *onic_strided_key_take(onic_rc_t *c, onic_rdma_side_t *near,
                                                      const onic_rdma_side_t *far);
/** `failed`: the connection is lost, and what was begun on it. */
ONIC_EXPORT void onic_strided_key_give(onic_strided_key_t *key, bool failed);
