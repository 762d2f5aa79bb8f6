/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Measures the constants of the cost model (cost.h) on the running machine.
 */
#ifndef NICSTRIDE_CALIBRATE_H
#define NICSTRIDE_CALIBRATE_H

#include <stdbool.h>

/**
 * A window is made, with others on this node if `neighbours`: the first such window of a process
 * measures, unless parameters say otherwise, and takes less than a millisecond for it. Any thread.
 */
void nicstride_calibrate(bool neighbours);

#endif
