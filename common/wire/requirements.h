/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What several components ask of the one wire, put together: none of them is to be worse off
 * because another one opened it first. Pure.
 */
#ifndef ONIC_REQUIREMENTS_H
#define ONIC_REQUIREMENTS_H

#include <stdbool.h>

#include "common/wire/wire.h"

/** Longest list of transports that is kept. */
#define ONIC_TLS_MAX 1024

/** All zero: nothing has been asked for. */
typedef struct onic_requirements {
    onic_wire_config_t all; /**< its `tls` is NULL or points to the next */
    char tls[ONIC_TLS_MAX];
} onic_requirements_t;

/**
 * Adds what one component asks for:
 * - a server thread is there if anybody wants one, and takes over as soon as the most impatient of
 *   those wants it to;
 * - single copy reaches this process if anybody is to use it;
 * - the address is published if anybody wants that;
 * - queues have as much memory as the most that was asked for;
 * - fragments of TCP are as long as the longest that was asked for;
 * - transports are those that were given first: UCX has one set of them. False where others are
 *   given now, or the list is too long to be kept; all else is added.
 */
bool onic_requirements_add(onic_requirements_t *r, const onic_wire_config_t *config);

#endif
