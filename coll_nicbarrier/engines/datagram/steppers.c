/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The steppers of this build; see stepper.h. */
#include "coll_nicbarrier/engines/datagram/stepper.h"

#include <stddef.h>

const nicbarrier_stepper_t *const nicbarrier_steppers[] = {&nicbarrier_stepper_bpf,
                                                           &nicbarrier_stepper_host, NULL};
