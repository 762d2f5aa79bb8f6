/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Visibility: only what carries ONIC_EXPORT can be seen from outside the library. */
#pragma once

#define ONIC_EXPORT __attribute__((visibility("default")))
