/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The component's state; see state.h. */
#include "coll_nicbarrier/component/state.h"

nicbarrier_state_t nicbarrier_state = {.lock = ATOMIC_FLAG_INIT};
nicbarrier_counters_t nicbarrier_counters;
