/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Connections over TCP that a test breaks while both processes live. */
#ifndef TEST_MPI_SHUTDOWN_H
#define TEST_MPI_SHUTDOWN_H

/** Notes the connections that there are: those of mpirun and of the p2p layer are none of ours. */
void shutdown_begin(void);

/** Breaks those that have been made since. Returns how many. */
int shutdown_connections(void);

#endif
