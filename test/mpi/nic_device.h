/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What programs of method nic need: a device of verbs, or, on a machine without, the adapter of
 * the tests' own (test/fabric/adapter.c), which test/run loads before all else.
 */
#pragma once

/** After tl_init: skips the program where there can be neither. */
void nic_need_device(void);
