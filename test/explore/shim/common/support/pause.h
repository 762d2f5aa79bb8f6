/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file In place of common/support/pause.h: who waits gives way. */
#pragma once

#include "test/explore/explore.h"

static inline void onic_pause(void)
{
    explore_pause();
}

static inline void onic_pause_for_holder(unsigned n)
{
    (void)n;
    explore_pause();
}
