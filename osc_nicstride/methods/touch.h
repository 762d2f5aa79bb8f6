/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * When to touch the memory of a peer before the first strided put into it. Pure.
 *
 * The first store to each page of mapped memory is a fault by itself. The first load maps all of
 * NICSTRIDE_AROUND bytes round it that the peer has used already, for stores too. So one byte is
 * loaded of each such piece where the put would store to many pages of it. (A get loads anyway.)
 * Done when it is needed, not when the window is made: pages that the peer has not used yet are not
 * mapped so, and to make windows shall not cost more for those who put little.
 *
 * Earns: three quarters of the faults of the first steps of a halo exchange along columns.
 */
#ifndef NICSTRIDE_TOUCH_H
#define NICSTRIDE_TOUCH_H

#include <stdbool.h>
#include <stdint.h>

#include "common/layout/layout.h"

/** What Linux maps round a load, unless it was told otherwise. */
#define NICSTRIDE_AROUND ((uint64_t)64 << 10)

/** Is it worth while? Never for what is contiguous. */
bool nicstride_touch_pays(const onic_layout_t *l);

/** The parts, of 64 that a window of `size` bytes has, in which the bytes from `from` up to `to` >
 * from lie: who has touched them once need not do it again. */
uint64_t nicstride_touch_parts(uint64_t size, uint64_t from, uint64_t to);

#endif
