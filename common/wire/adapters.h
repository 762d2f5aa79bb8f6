/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What UCX may use, by lists of transports (UCX_TLS: "all", "posix,tcp,self", "^ib",
 *  "\rc_verbs,ud:aux") and of devices (UCX_NET_DEVICES: "mlx5_0:1,eth0", "^mlx5_1"), and by the
 *  adapters that the kernel shows. NULL and "" mean all. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/support/export.h"

/* ---- lists: pure --------------------------------------------------------------------------- */

/** Kinds of transports. */
typedef enum onic_tls {
    ONIC_TLS_VERBS,  /**< of InfiniBand or RoCE, if only to connect */
    ONIC_TLS_RDMA,   /**< those of them that have RDMA with connections */
    ONIC_TLS_MEMORY, /**< shared memory between the processes of a node */
    ONIC_TLS_TCP
} onic_tls_t;

/** Does the list let UCX use one of that kind? */
bool onic_tls_have(onic_tls_t kind, const char *list);

/** Does a list of devices let UCX use this one ("mlx5_0"), if only one of its ports? */
bool onic_devices_have(const char *list, const char *name);

/** Writes the list without transports of InfiniBand and RoCE. False where nothing is left, or
 *  `size` bytes (at least 1) do not hold it; what is written is then of no use. */
bool onic_tls_without_verbs(const char *list, char *out, size_t size);

/** Likewise without posix shared memory, for which System V's stands in where a group of transports
 *  held both. False, too, where the list does not have it. */
bool onic_tls_without_posix(const char *list, char *out, size_t size);

/* ---- adapters ------------------------------------------------------------------------------ */

/** Where the kernel shows its adapters. */
#define ONIC_ADAPTERS "/sys/class/infiniband"

/** How many of these `devices` (a list) there are in `directory`; `active`: ports that are up. */
unsigned onic_adapters(const char *directory, const char *devices, bool active);

/** Would UCX put by an adapter? Over anything else it emulates puts by messages with
 *  acknowledgements, which is slower. `tls` is a list of transports. */
ONIC_EXPORT bool onic_rdma_here(const char *directory, const char *tls, const char *devices);
