/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Updates of aligned elements of 1, 2, 4 or 8 bytes by atomics of the processor: one
 *  instruction for sums of integers, otherwise a loop of compare and swap. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "osc_nicstride/protocol/apply.h"

/** Updates `n` contiguous elements of `a->size` bytes at `at`, aligned to their size. `src` has as
 *  many, at any address; NULL for NICSTRIDE_APPLY_NO_OP. `old`, if not NULL, gets the previous
 *  values. Each element is atomic by itself. */
void nicstride_atomic_apply(const nicstride_apply_t *a, void *at, const void *src, void *old,
                            size_t n);

/** Compare and swap of one such element. `old` gets the previous value and may be the same memory
 *  as `compare`. */
void nicstride_atomic_cas(void *at, size_t size, const void *compare, const void *desired,
                          void *old);
