/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Visibility: everything is hidden but what carries ONIC_EXPORT. */
#pragma once

#define ONIC_EXPORT __attribute__((visibility("default")))
