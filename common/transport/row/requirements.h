/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What several components ask of the one transport, put together. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What a component asks of the transport. Values come from the component's own MCA parameters. */
typedef struct onic_transport_config {
    bool server_thread;        /**< start the server thread (passive progress) */
    unsigned server_idle_usec; /**< microseconds for which MPI threads must be away before it takes
                                  over; 1..1e6 */
    bool single_copy;          /**< peers shall be able to copy from and to this process */
    size_t queues; /**< bytes of memory through which processes of the node send messages to
                  this one, of all together; 0: by UCX. The first component that
                  opens the transport decides, for all */
    size_t memory; /**< bytes of this process for what others send by credit (credit.h), which
                        those of the job share. The first component that opens the transport
                        decides, for all */
    bool puts; /**< puts and gets (put.h) are to be had: whoever opens the transport first decides.
                    Once asked for it is so whenever the transport is opened */
    bool publish; /**< for onic_transport_get_peer: this process's address is published when the
                       transport is opened, which must be before the exchange of MPI_Init; the
                       component keeps the transport open to the end */
} onic_transport_config_t;

static inline size_t onic_larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/** Adds what one component asks for to what all have: there is as much of everything as the most
 *  that was asked for, and the server thread takes over as soon as the most impatient wants it to.
 */
static inline void onic_requirements_add(onic_transport_config_t *all,
                                         const onic_transport_config_t *config)
{
    if (config->server_thread &&
        (!all->server_thread || config->server_idle_usec < all->server_idle_usec))
        all->server_idle_usec = config->server_idle_usec;
    all->server_thread = all->server_thread || config->server_thread;
    all->single_copy = all->single_copy || config->single_copy;
    all->publish = all->publish || config->publish;
    all->puts = all->puts || config->puts;
    all->queues = onic_larger(all->queues, config->queues);
    all->memory = onic_larger(all->memory, config->memory);
}
