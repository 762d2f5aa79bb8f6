/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "pml_superpipe/protocols/state.h"

superpipe_counters_t superpipe_counters;
superpipe_process_t superpipe;
