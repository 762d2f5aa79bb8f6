/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * May a target be accessed now?
 */
#ifndef NICSTRIDE_ENTER_H
#define NICSTRIDE_ENTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/support/device.h"
#include "osc_nicstride/window/module.h"

/** NULL, or why the target may not be accessed now. Notes that it is, and waits until it is done
 *  with the last fence. */
const char *nicstride_enter(nicstride_module_t *m, int target);

/** Request-based calls are for passive-target epochs. */
int nicstride_check_passive(nicstride_module_t *m, const char *call, int target);

#endif
