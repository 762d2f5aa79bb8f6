/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The pipeline as between hosts: by puts to all processes, those of this host, too, which
 * UCX makes of messages where there is no adapter. Components take it as they find it. */
#pragma once

#include <stddef.h>

/** Before MPI_Init. */
void pipeline_puts_announce(void);

/** Collective, before there is a window: opens it with a receive pool and buffers of so many bytes,
 * 0 as components have them, over these transports of UCX's, NULL for all; returns when all reach
 *  each other. */
void pipeline_puts_open(size_t pool, size_t buffer, const char *tls);

/** Collective, when all windows are freed. Checks that all buffers are back. */
void pipeline_puts_close(void);
