/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What UCX may use, by the user's lists of transports (UCX_TLS: "posix,tcp,self", "^ib") and
 *  of devices (UCX_NET_DEVICES: "mlx5_0:1,eth0", "^mlx5_1"), and by the adapters that the kernel
 *  shows. NULL, "" and "all" mean all. These are guesses, for costs and for values of our own: UCX
 *  alone makes sense of its lists. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/support/export.h"

/** Kinds of transports. */
typedef enum onic_tls {
    ONIC_TLS_VERBS,  /**< of InfiniBand or RoCE, if only to connect */
    ONIC_TLS_RDMA,   /**< those of them that have RDMA with connections */
    ONIC_TLS_MEMORY, /**< shared memory between the processes of a node */
    ONIC_TLS_TCP
} onic_tls_t;

/** True if the list leaves UCX its own choice. */
bool onic_tls_are_free(const char *list);

/** True if the list lets UCX use a transport of that kind. A list of exclusions does unless it
 *  names the kind as a whole. */
bool onic_tls_have(onic_tls_t kind, const char *list);

/** True if a list of devices lets UCX use this one ("mlx5_0"). */
bool onic_devices_have(const char *list, const char *name);

/** The same for one of its ports, from 1 on: the list may name it ("mlx5_0:1") or the device. */
ONIC_EXPORT bool onic_devices_have_port(const char *list, const char *device, unsigned port);

/** Where the kernel shows its adapters. */
#define ONIC_ADAPTERS "/sys/class/infiniband"

/** How many of these `devices` (a list) there are in `directory`; `active`: ports that are up. */
unsigned onic_adapters(const char *directory, const char *devices, bool active);

/** True if UCX would put by an adapter. Over anything else it emulates puts by messages with
 *  acknowledgements, which is slower. `tls` is a list of transports. */
ONIC_EXPORT bool onic_rdma_here(const char *directory, const char *tls, const char *devices);

/** True if this process may lock `bytes` more. The kernel's answer depends on the limit (ulimit
 *  -l), capabilities and user namespaces, so it is asked; no memory is locked for that. */
bool onic_can_lock(size_t bytes);
