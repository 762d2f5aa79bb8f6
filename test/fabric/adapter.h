/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What a program says to the adapter of its own (adapter.c). */
#ifndef TEST_FABRIC_ADAPTER_H
#define TEST_FABRIC_ADAPTER_H

#include <stddef.h>

/** Bytes that the process may still register; SIZE_MAX: any number. */
extern size_t adapter_room;

#endif
