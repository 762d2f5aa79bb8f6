/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file In place of test/unit's: for the naive models that unit tests compare with. */
#pragma once

#include "test/explore/explore.h"

#define UNIT_CHECK(condition) EXPLORE_ASSERT(condition)
