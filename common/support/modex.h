/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What processes tell each other before they can talk: Open MPI's own exchange during
 *  MPI_Init. */
#ifndef ONIC_MODEX_H
#define ONIC_MODEX_H

#include <stdbool.h>
#include <stddef.h>

#include "common/support/export.h"
#include "common/ompi_compat.h"
#include "opal/util/proc.h"

/**
 * Publishes `len` bytes under `key` for all processes. To be called before the exchange
 * of MPI_Init, from a component's open or init function: what is published later travels with the
 * next onic_modex_fence_begin only. One thread.
 *
 * @return false where there is no exchange, as in some processes that were started without mpirun
 */
ONIC_EXPORT bool onic_modex_put_bytes(const char *key, const void *bytes, size_t len);

/**
 * What the process `name` has published under `key`; to be freed. May ask the daemon of the node,
 * and wait for its answer, but never for the process itself. Any MPI thread. The process may be of
 * another job that this one is connected with.
 *
 * @return NULL where it has published nothing of that name; *len_p is 0 then
 */
ONIC_EXPORT void *onic_modex_get_bytes(opal_process_name_t name, const char *key, size_t *len_p);

/**
 * Enters a fence of Open MPI's launcher: all processes of the job must, each as often as the
 * others. It needs no point-to-point layer. What has been published is there for others when it has
 * ended. One thread, one fence at a time; a wait for its end may be given up.
 *
 * @return false where there is none
 */
ONIC_EXPORT bool onic_modex_fence_begin(void);
/** Has everybody entered it? Any thread. */
ONIC_EXPORT bool onic_modex_fence_ended(void);

/**
 * Calls `visit` with the first process of each node of this job (the one of the lowest rank there),
 * until it returns false. From what the launcher has given all processes at their start, without a
 * question to any other process. Takes memory for the processes of one node at a time. Any MPI
 * thread.
 *
 * @return false where not all nodes are known, as without mpirun; some may have been visited
 */
ONIC_EXPORT bool onic_modex_nodes(bool (*visit)(opal_process_name_t first, void *arg), void *arg);

#endif
