/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * A stepper of engine datagram that a test adds (stepper.h), in place of the library's table. It
 * has a state and a view of its own, as one in the kernel, but gets its words from the process; and
 * it may cease to work.
 */
#pragma once

#include <stdbool.h>

/** To be set before groups are made. */
typedef struct added_stepper {
    bool absent;      /**< it can have no group */
    unsigned ends_at; /**< it is gone when it has been asked for so much; 0: never */
} added_stepper_t;

extern added_stepper_t added_stepper;
