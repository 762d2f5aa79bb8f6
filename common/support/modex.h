/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What processes tell each other before they can talk: Open MPI's own exchange during MPI_Init.
 */
#ifndef ONIC_MODEX_H
#define ONIC_MODEX_H

#include <stdbool.h>
#include <stddef.h>

#include "common/support/export.h"
#include "common/ompi_compat.h"
#include "opal/util/proc.h"

/**
 * Publishes `text` under `key` for all processes. To be called from a component's open function:
 * what is published later does not travel. One thread.
 *
 * @return false where there is no exchange, as in some processes that were started without mpirun
 */
ONIC_EXPORT bool onic_modex_put(const char *key, const char *text);

/**
 * What the process `name` has published under `key`, cut to fit into `text` (size bytes, at least
 * 1). May ask the daemon of the node, and wait for its answer, but never for the process itself.
 * Any MPI thread.
 *
 * @return false where it has published nothing of that name; `text` is empty then
 */
ONIC_EXPORT bool onic_modex_get(opal_process_name_t name, const char *key, char *text, size_t size);

/**
 * Calls `visit` with the first process of each node of this job (the one of the lowest rank there),
 * until it returns false. From what the launcher has told all processes at their start: asks nobody
 * and waits for nobody. Takes memory for the processes of one node at a time. Any MPI thread.
 *
 * @return false where the nodes are not known, as without mpirun; nothing has been visited then
 */
ONIC_EXPORT bool onic_modex_nodes(bool (*visit)(opal_process_name_t first, void *arg), void *arg);

#endif
