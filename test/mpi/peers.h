/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The transport's peers of all ranks, for tests of what is below the components. */
#pragma once

#include <mpi.h>

#include "common/transport/transport.h"

/** Collective, with the transport open: makes known the addresses of all ranks where some rank
 *  lacks one, and fills in the peer of each. 0, or an error of Open MPI. */
int peers_get(MPI_Comm comm, onic_peer_t **peers);

/** Makes progress until `holds`, or it lasts too long; whether it holds. */
bool peers_await(bool (*holds)(void));

/** Collective: opens the transport, and the pipeline by puts to all ranks, as between hosts, with
 *  receive pools and buffers of so many bytes (0: as the components have them), and waits until all
 *  are reached. Before a window is made, since the component's own sizes do not apply then; and
 *  onic_transport_require with puts before MPI_Init. */
void peers_open_pipeline(size_t pool, size_t buffer);
