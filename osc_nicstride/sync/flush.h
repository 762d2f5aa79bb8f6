/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Waiting for operations that went by message.
 */
#ifndef NICSTRIDE_FLUSH_H
#define NICSTRIDE_FLUSH_H

#include <stdbool.h>

#include "osc_nicstride/window/module.h"

/** Until when a flush waits. */
typedef enum nicstride_flush {
    NICSTRIDE_FLUSH_LOCAL, /**< all operations are locally complete */
    NICSTRIDE_FLUSH_GIVEN, /**< and get to their targets without further calls of MPI */
    NICSTRIDE_FLUSH_REMOTE /**< they are done at the target */
} nicstride_flush_t;

/** Waits for all operations to the peer. Returns the first error that came back. */
int nicstride_flush_peer(nicstride_module_t *m, nicstride_peer_t *p, nicstride_flush_t kind);
/** The same for all peers in use: every target is asked before any is waited for. */
int nicstride_flush_all_peers(nicstride_module_t *m, nicstride_flush_t kind);
/** An English fragment that says what an error class from a target means. */
const char *nicstride_error_reason(int error);

#endif
