/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The memory that a target has attached to a dynamic window, as a sorted table of disjoint
 *  regions; and what of it is shown in shared memory to processes of the node that access it
 *  without the target. Pure; the caller serialises. Addresses come from peers, so all arithmetic is
 *  checked. */
#pragma once

#include <stdatomic.h>
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
    size_t filled; /**< the first ones, which hold bytes */
    size_t cap;
} nicstride_regions_t;

/** The most regions that are shown, which are those at the lowest addresses. */
#define NICSTRIDE_SHOWN_REGIONS 64

/** What is shown; regions that touch are merged. All zero: none. */
typedef struct nicstride_shown {
    _Atomic uint64_t version; /**< odd while it is written */
    _Atomic uint64_t n;
    struct {
        _Atomic uint64_t base;
        _Atomic uint64_t size;
    } region[NICSTRIDE_SHOWN_REGIONS];
} nicstride_shown_t;

typedef enum nicstride_region_status {
    NICSTRIDE_REGION_OK = 0,
    NICSTRIDE_REGION_OVERLAP, /**< touches memory that is already attached */
    NICSTRIDE_REGION_NONE,    /**< nothing is attached at that base */
    NICSTRIDE_REGION_BAD,     /**< the range wraps around the address space */
    NICSTRIDE_REGION_NO_MEMORY
} nicstride_region_status_t;

/** Attaches a region. There may be any number. A region of size 0 is legal and is detached like any
 *  other, but covers nothing. */
nicstride_region_status_t nicstride_regions_attach(nicstride_regions_t *t, uint64_t base,
                                                   uint64_t size);
nicstride_region_status_t nicstride_regions_detach(nicstride_regions_t *t, uint64_t base);

/** True if a region holds [addr, addr + size), or touching regions hold it together. O(log n +
 *  these). */
bool nicstride_regions_hold(const nicstride_regions_t *t, uint64_t addr, uint64_t size);

/** True if each of the `len` packed bytes of the layout from `at` on, as far as it has that many,
 *  is attached. `base` is the layout's address. The bytes may be in several regions. Takes as long
 *  as moving these bytes. */
bool nicstride_regions_cover(const nicstride_regions_t *t, uint64_t base, const onic_layout_t *l,
                             uint64_t at, uint64_t len);

/** Shows the current table. One writer at a time. */
void nicstride_regions_show(const nicstride_regions_t *t, nicstride_shown_t *shown);
/** True if [addr, addr + size) is shown as attached. False also while the table changes. The memory
 *  read here is written by another process and may hold anything. */
bool nicstride_shown_holds(const nicstride_shown_t *shown, uint64_t addr, uint64_t size);

void nicstride_regions_fini(nicstride_regions_t *t);

/** True if the layout at byte offset `disp` lies inside [0, size), with checks for overflow. For
 *  windows with one region; `disp` is relative to the window's base. A layout of no bytes always
 *  fits. */
static inline bool nicstride_layout_fits(const onic_layout_t *l, int64_t disp, uint64_t size)
{
    int64_t lb, ub;

    if (l->size == 0)
        return true;
    if (__builtin_add_overflow(disp, l->lb, &lb) || __builtin_add_overflow(disp, l->ub, &ub))
        return false;
    return lb >= 0 && (uint64_t)ub <= size; /* ub > lb, as there are bytes */
}

/** The same for the `len` bytes that begin `offset` after `disp`; `*at_p` is where they begin. */
static inline bool nicstride_bytes_fit(int64_t disp, uint64_t offset, uint64_t len, uint64_t size,
                                       uint64_t *at_p)
{
    int64_t at, end;

    if (disp < 0 || __builtin_add_overflow(disp, offset, &at) ||
        __builtin_add_overflow(at, len, &end))
        return false;
    *at_p = (uint64_t)at;
    return (uint64_t)end <= size;
}
