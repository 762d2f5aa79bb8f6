/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What a program's first transfers would pay for, done when the first window is made. */
#ifndef NICSTRIDE_CONNECT_H
#define NICSTRIDE_CONNECT_H

#include "osc_nicstride/window/module.h"

/**
 * Makes the connections to a process's neighbours, where there are none yet, and touches the queues
 * between them. Making a connection takes as long as a thousand short messages, and the pages of
 * its queues are slow until both sides have touched them. Collective: all members take what is
 * sent. MPI thread, no lock held.
 */
void nicstride_connect_neighbours(nicstride_module_t *m);

#endif
