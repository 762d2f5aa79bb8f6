/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * A process that has its lock of accumulates for a while, as far as others can see.
 */
#pragma once

#include <stdbool.h>

#include "test/mpi/testlib.h"

/**
 * This process, whose rank in the window is 0, adds `longs` words to its memory at displacement
 * `disp` from pages that cannot be read yet. The first load makes it wait for `ms` milliseconds, in
 * a handler for the signal, with the lock of accumulates, while its server thread receives.
 *
 * @param held  NULL, or called in that handler: true before the wait, false after it
 */
void busy_lock_hold(const tl_window_t *w, MPI_Aint disp, int longs, long ms, void (*held)(bool));
