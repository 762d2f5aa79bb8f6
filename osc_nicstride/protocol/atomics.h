/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Updates of aligned elements of 1, 2, 4 or 8 bytes by the processor's atomics: by one
 *  instruction where it has one, else by loops of compare and swap. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "osc_nicstride/protocol/apply.h"

/** Updates `n` elements of `a->size` bytes that lie one behind another at `at`, aligned to that
 *  size. `src` has as many, at any address; NULL for NICSTRIDE_APPLY_NO_OP. `old`, where not NULL,
 *  gets the values from before. Each element is atomic by itself. */
void nicstride_atomic_apply(const nicstride_apply_t *a, void *at, const void *src, void *old,
                            size_t n);

/** Compare and swap of one such element: `old` gets the value from before, and may be the memory of
 *  `compare`. */
void nicstride_atomic_cas(void *at, size_t size, const void *compare, const void *desired,
                          void *old);
