/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What processes tell each other before they can talk: Open MPI's own exchange. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/support/export.h"
#include "common/ompi_compat.h"
#include "opal/util/proc.h"

/** Publishes `len` bytes under `key`, before the exchange of MPI_Init. One thread. False where
 *  there is no exchange, as in some processes that were started without mpirun. */
ONIC_EXPORT bool onic_modex_put_bytes(const char *key, const void *bytes, size_t len);

/** What the process `name` has published under `key`; to be freed; NULL, and *len_p 0, where it is
 *  nothing. May ask the daemon of the node, but waits never for the process itself, which may be of
 *  another job. Any MPI thread. */
ONIC_EXPORT void *onic_modex_get_bytes(opal_process_name_t name, const char *key, size_t *len_p);

/** Enters a fence of Open MPI's launcher: all processes of the job must, each as often as the
 *  others. It needs no point-to-point layer. One thread, one fence at a time; a wait for its end
 *  may be given up. False where there is none. */
ONIC_EXPORT bool onic_modex_fence_begin(void);
/** True if all have entered it. Any thread. */
ONIC_EXPORT bool onic_modex_fence_ended(void);
