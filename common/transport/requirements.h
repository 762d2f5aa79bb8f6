/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What several components ask of the one wire, put together. Pure. */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "common/transport/transport.h"

/** Longest list of transports that is kept. */
#define ONIC_TLS_MAX 1024

/** All zero: nothing has been asked for. */
typedef struct onic_requirements {
    onic_transport_config_t all; /**< its `tls` is NULL or points to the next */
    char tls[ONIC_TLS_MAX];
} onic_requirements_t;

static inline size_t onic_larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/** Adds what one component asks for: there is as much of everything as the most that was asked for,
 *  and the server thread takes over as soon as the most impatient wants it to. Transports are those
 *  given first. False where others are given now, or the list is too long; all else is added. */
static inline bool onic_requirements_add(onic_requirements_t *r,
                                         const onic_transport_config_t *config)
{
    onic_transport_config_t *all = &r->all;

    if (config->server_thread &&
        (!all->server_thread || config->server_idle_usec < all->server_idle_usec))
        all->server_idle_usec = config->server_idle_usec;
    all->server_thread = all->server_thread || config->server_thread;
    all->single_copy = all->single_copy || config->single_copy;
    all->publish = all->publish || config->publish;
    all->puts = all->puts || config->puts;
    all->queues = onic_larger(all->queues, config->queues);
    all->memory = onic_larger(all->memory, config->memory);
    all->tcp_seg_size = onic_larger(all->tcp_seg_size, config->tcp_seg_size);
    if (config->tls == NULL || *config->tls == '\0')
        return true;
    if (all->tls != NULL)
        return strcmp(r->tls, config->tls) == 0;
    const size_t len = strlen(config->tls);
    if (len >= sizeof(r->tls))
        return false;
    memcpy(r->tls, config->tls, len + 1);
    all->tls = r->tls;
    return true;
}
