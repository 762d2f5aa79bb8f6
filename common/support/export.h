/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Visibility: everything is hidden but what carries ONIC_EXPORT. */
#ifndef ONIC_EXPORT_H
#define ONIC_EXPORT_H

#define ONIC_EXPORT __attribute__((visibility("default")))

#endif
