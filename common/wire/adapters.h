/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Adapters of InfiniBand and RoCE that UCX may use, as the kernel shows them. UCX does not tell
 * which it uses; what it may use is known.
 */
#ifndef ONIC_ADAPTERS_H
#define ONIC_ADAPTERS_H

#include <stdbool.h>

#include "common/support/export.h"

/** Where the kernel shows its adapters. */
#define ONIC_ADAPTERS "/sys/class/infiniband"

/**
 * How many there are.
 *
 * @param directory  ONIC_ADAPTERS
 * @param devices    a list as in UCX_NET_DEVICES; NULL: all
 * @param active     only those with a port that is up
 */
unsigned onic_adapters(const char *directory, const char *devices, bool active);

/** Would UCX put by an adapter? Over anything else it emulates puts by messages with
 *  acknowledgements, which is slower. `tls` is a list as in UCX_TLS; NULL: all. */
ONIC_EXPORT bool onic_rdma_here(const char *directory, const char *tls, const char *devices);

#endif
