/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Random one-sided operations, and what must come of them; see random_operations.c. */
#pragma once

/** Collective, behind tl_init: on windows of all kinds that were asked for. */
void random_operations(void);
