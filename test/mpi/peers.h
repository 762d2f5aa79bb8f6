/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The transport's peers of all ranks, for tests of what is below the components. */
#pragma once

#include <mpi.h>

#include "common/transport/transport.h"

/** Collective, with the transport open: makes known the addresses of all ranks where some rank
 * lacks one, and fills in the peer of each. 0, or an error of Open MPI. */
int peers_get(MPI_Comm comm, onic_peer_t **peers);
