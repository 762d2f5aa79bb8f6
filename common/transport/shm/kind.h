/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Kinds of peer, as far as choices differ. Pure. */
#pragma once

#include <stdbool.h>

/** Those of the node by what both processors share, as hwloc says; then those of other nodes. */
typedef enum onic_kind {
    ONIC_NEAR,    /**< the last level of cache */
    ONIC_PACKAGE, /**< a package */
    ONIC_FAR,     /**< nothing */
    ONIC_NET,     /**< reached by messages only */
    ONIC_ADAPTER, /**< an adapter reads and writes its memory */
    ONIC_KINDS,
    ONIC_DISTANCES = ONIC_NET /**< the first so many are of the node */
} onic_kind_t;

/** That of two processes of a node, on a machine with so many last-level caches and packages, at
 *  least 1 of each, where `share_` says that they are known to share one. */
static inline onic_kind_t onic_distance_by(int caches, int packages, bool share_cache,
                                           bool share_package)
{
    if (caches == 1 || share_cache)
        return ONIC_NEAR;
    return packages == 1 || share_package ? ONIC_PACKAGE : ONIC_FAR;
}
