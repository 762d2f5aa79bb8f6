/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Connections over TCP that a test breaks while both processes live. */
#pragma once

/** Before tl_init: osc_nicstride is to use TCP alone, and no thread of its own. */
void shutdown_set_up(void);

/** Collective: skips unless there are so many ranks on one host, has a process that hangs be ended
 *  by a signal, and notes the connections that there are: those of mpirun and of the p2p layer are
 *  none of ours. */
void shutdown_begin(int ranks);

/** Breaks those that have been made since. Returns how many. */
int shutdown_connections(void);
