/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The memory that a target has attached to a dynamic window: a sorted table of disjoint regions.
 *
 * The target's table is the truth. Origins may cache single regions together with the generation
 * of the table, which every attach and detach changes; a copy of another generation is worthless.
 *
 * Pure; the caller serialises. Addresses come from peers and are not trusted: all arithmetic is
 * checked.
 */
#ifndef NICSTRIDE_REGION_H
#define NICSTRIDE_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/layout/layout.h"

typedef struct nicstride_region {
    uint64_t base;
    uint64_t size;
} nicstride_region_t;

/** Zero-initialise. */
typedef struct nicstride_regions {
    nicstride_region_t *region; /**< sorted by base, disjoint */
    size_t n;
    size_t cap;
    uint64_t generation;
} nicstride_regions_t;

typedef enum nicstride_region_status {
    NICSTRIDE_REGION_OK = 0,
    NICSTRIDE_REGION_OVERLAP, /**< touches memory that is already attached */
    NICSTRIDE_REGION_NONE,    /**< nothing is attached at that base */
    NICSTRIDE_REGION_BAD,     /**< the range wraps around the address space */
    NICSTRIDE_REGION_NO_MEMORY
} nicstride_region_status_t;

/** Any number of regions; a region of size 0 is legal, is detached like any other and covers
 *  nothing. */
nicstride_region_status_t nicstride_regions_attach(nicstride_regions_t *t, uint64_t base,
                                                   uint64_t size);
nicstride_region_status_t nicstride_regions_detach(nicstride_regions_t *t, uint64_t base);

/** The region that holds [addr, addr + size), or the union of regions that touch each other and
 *  together hold it. False where there is none. O(log n + regions in the union). */
bool nicstride_regions_find(const nicstride_regions_t *t, uint64_t addr, uint64_t size,
                            nicstride_region_t *found_p);

/** True where every byte that the layout names, from address `base`, is attached; a layout may
 *  span several regions as long as it touches only attached bytes. */
bool nicstride_regions_cover(const nicstride_regions_t *t, uint64_t base, const onic_layout_t *l);

void nicstride_regions_fini(nicstride_regions_t *t);

/** Overflow-checked: does the layout at byte offset `disp` stay inside [0, size)? For windows with
 *  one region; `disp` is relative to the window's base. A layout of no bytes always fits. */
bool nicstride_layout_fits(const onic_layout_t *l, int64_t disp, uint64_t size);

/** The same for the `len` bytes that begin `offset` behind `disp`; `*at_p` is where they begin. */
bool nicstride_bytes_fit(int64_t disp, uint64_t offset, uint64_t len, uint64_t size,
                         uint64_t *at_p);

#endif
