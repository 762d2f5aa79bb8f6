/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Would UCX put by an RDMA adapter? Over anything else it emulates puts by messages with
 * acknowledgements, which is slower. UCX does not tell; what it may use is known.
 */
#ifndef ONIC_RDMA_H
#define ONIC_RDMA_H

#include <stdbool.h>

#include "common/support/export.h"

/** May UCX use RDMA with connections? `tls` is a list as in UCX_TLS; NULL: all. Pure. */
bool onic_rdma_tls(const char *tls);

/**
 * Is there an adapter with a port that is up and that UCX may use?
 *
 * @param directory  where the kernel shows its adapters: /sys/class/infiniband
 * @param devices    a list as in UCX_NET_DEVICES; NULL: all
 */
ONIC_EXPORT bool onic_rdma_here(const char *directory, const char *tls, const char *devices);

#endif
