/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Attached memory; see region.h. The table has two parts, each sorted by base: regions with
 *  bytes, then empty ones, which are kept so that they can be detached. A region may end at the
 *  very top of the address space, so ends are kept as the last byte inside. */
#include "osc_nicstride/window/region.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_REGIONS 8

/* ---- the table ------------------------------------------------------------------------------- */

static uint64_t last_byte(const nicstride_region_t *r)
{
    return r->base + (r->size - 1);
}

/* The first of the regions lo .. hi-1 (of one part of the table) whose base is above `addr`, or
 * hi. */
static size_t first_above(const nicstride_regions_t *t, size_t lo, size_t hi, uint64_t addr)
{
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (t->region[mid].base <= addr)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* True if [base, base + size) would overlap a neighbour if inserted before region `at` of those
 * with bytes. */
static bool overlaps(const nicstride_regions_t *t, size_t at, uint64_t base, uint64_t size)
{
    if (at > 0 && base - t->region[at - 1].base < t->region[at - 1].size)
        return true;
    return at < t->filled && t->region[at].base - base < size;
}

static bool reserve(nicstride_regions_t *t)
{
    if (t->n < t->cap)
        return true;

    const size_t cap = t->cap == 0 ? FIRST_REGIONS : t->cap * 2;
    nicstride_region_t *region = reallocarray(t->region, cap, sizeof(*region));
    if (region == NULL)
        return false;
    t->region = region;
    t->cap = cap;
    return true;
}

nicstride_region_status_t nicstride_regions_attach(nicstride_regions_t *t, uint64_t base,
                                                   uint64_t size)
{
    if (size > 0 && size - 1 > UINT64_MAX - base)
        return NICSTRIDE_REGION_BAD;

    const size_t at =
        size > 0 ? first_above(t, 0, t->filled, base) : first_above(t, t->filled, t->n, base);
    if (size > 0 && overlaps(t, at, base, size))
        return NICSTRIDE_REGION_OVERLAP;
    if (!reserve(t))
        return NICSTRIDE_REGION_NO_MEMORY;

    memmove(&t->region[at + 1], &t->region[at], (t->n - at) * sizeof(t->region[0]));
    t->region[at] = (nicstride_region_t){.base = base, .size = size};
    t->n++;
    t->filled += size > 0;
    return NICSTRIDE_REGION_OK;
}

/* Searches regions lo .. hi-1 (of one part of the table) for one with this base. */
static bool find_base(const nicstride_regions_t *t, size_t lo, size_t hi, uint64_t base,
                      size_t *at_p)
{
    const size_t above = first_above(t, lo, hi, base);

    if (above == lo || t->region[above - 1].base != base)
        return false;
    *at_p = above - 1;
    return true;
}

nicstride_region_status_t nicstride_regions_detach(nicstride_regions_t *t, uint64_t base)
{
    size_t at;

    /* MPI names a region only by its base. If an empty region and one with bytes share it, the
     * empty one is detached first: a program that meant the empty one may still use the bytes. */
    if (!find_base(t, t->filled, t->n, base, &at) && !find_base(t, 0, t->filled, base, &at))
        return NICSTRIDE_REGION_NONE;
    t->filled -= t->region[at].size > 0;
    memmove(&t->region[at], &t->region[at + 1], (t->n - at - 1) * sizeof(t->region[0]));
    t->n--;
    return NICSTRIDE_REGION_OK;
}

/* The last region that can be reached from region `at` through touching ones, up to byte
 * `last`. */
static size_t follow(const nicstride_regions_t *t, size_t at, uint64_t last)
{
    while (last_byte(&t->region[at]) < last && at + 1 < t->filled &&
           t->region[at + 1].base == last_byte(&t->region[at]) + 1)
        at++;
    return at;
}

/* For an empty range, the byte at `addr` decides. */
bool nicstride_regions_hold(const nicstride_regions_t *t, uint64_t addr, uint64_t size)
{
    const uint64_t more = size > 0 ? size - 1 : 0;
    const size_t above = first_above(t, 0, t->filled, addr);

    return more <= UINT64_MAX - addr && above > 0 && addr <= last_byte(&t->region[above - 1]) &&
           last_byte(&t->region[follow(t, above - 1, addr + more)]) >= addr + more;
}

void nicstride_regions_show(const nicstride_regions_t *t, nicstride_shown_t *shown)
{
    const uint64_t version = atomic_load_explicit(&shown->version, memory_order_relaxed);
    uint64_t n = 0;

    atomic_store_explicit(&shown->version, version + 1, memory_order_relaxed);
    /* These stores are releases, so that a reader of any of them also sees the odd version. */
    for (size_t i = 0; i < t->filled && n < NICSTRIDE_SHOWN_REGIONS; i++, n++) {
        const uint64_t base = t->region[i].base;

        i = follow(t, i, UINT64_MAX);
        atomic_store_explicit(&shown->region[n].base, base, memory_order_release);
        atomic_store_explicit(&shown->region[n].size, last_byte(&t->region[i]) - base + 1,
                              memory_order_release);
    }
    atomic_store_explicit(&shown->n, n, memory_order_release);
    atomic_store_explicit(&shown->version, version + 2, memory_order_release);
}

bool nicstride_shown_holds(const nicstride_shown_t *shown, uint64_t addr, uint64_t size)
{
    const uint64_t version = atomic_load_explicit(&shown->version, memory_order_acquire);
    const uint64_t n = atomic_load_explicit(&shown->n, memory_order_acquire);
    bool held = false;

    for (uint64_t i = 0; i < n && i < NICSTRIDE_SHOWN_REGIONS && !held; i++) {
        const uint64_t base = atomic_load_explicit(&shown->region[i].base, memory_order_acquire);
        const uint64_t bytes = atomic_load_explicit(&shown->region[i].size, memory_order_acquire);

        held = addr >= base && addr - base <= bytes && size <= bytes - (addr - base);
    }
    return held && version % 2 == 0 &&
           atomic_load_explicit(&shown->version, memory_order_relaxed) == version;
}

void nicstride_regions_fini(nicstride_regions_t *t)
{
    free(t->region);
    *t = (nicstride_regions_t){0};
}

/* ---- layouts --------------------------------------------------------------------------------- */

bool nicstride_regions_cover(const nicstride_regions_t *t, uint64_t base, const onic_layout_t *l,
                             uint64_t at, uint64_t len)
{
    onic_cursor_t c;
    int64_t offset;
    uint64_t n;

    /* Usually one region holds everything. */
    if (nicstride_regions_hold(t, base + (uint64_t)l->lb, (uint64_t)l->ub - (uint64_t)l->lb))
        return true;
    onic_cursor_init(&c, l, at);
    for (; len > 0 && onic_cursor_next(&c, len, &offset, &n); len -= n)
        if (!nicstride_regions_hold(t, base + (uint64_t)offset, n))
            return false;
    return true;
}
