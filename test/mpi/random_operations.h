/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Random one-sided operations, and what must come of them; see random_operations.c. */
#pragma once

/** A whole program, but for the parameters that it has set before. */
int random_operations(int argc, char **argv);
