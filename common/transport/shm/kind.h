/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Kinds of peer, as far as choices differ. Pure. */
#pragma once

/** Those of the node by what both processors share, as Open MPI knows; then those of other nodes.
 */
typedef enum onic_kind {
    ONIC_NEAR,    /**< the last level of cache */
    ONIC_FAR,     /**< none */
    ONIC_NET,     /**< reached by messages only */
    ONIC_ADAPTER, /**< an adapter reads and writes its memory */
    ONIC_KINDS,
    ONIC_DISTANCES = ONIC_NET /**< the first so many are of the node */
} onic_kind_t;
