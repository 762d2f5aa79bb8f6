/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "osc_nicstride/window/hold.h"

#include "common/layout/copy.h"

/* Locks are taken in ascending order, so processes that need several never deadlock. */

static onic_owned_lock_t *lock_of(const nicstride_hold_t *h, unsigned i)
{
    return &nicstride_ctl_stripes(h->m, h->local)[i].lock;
}

static unsigned lowest(nicstride_stripes_t set)
{
    return (unsigned)__builtin_ctzll(set);
}

/** The locks that elements in bytes [from, to) need. */
static nicstride_stripes_t needed(const nicstride_hold_t *h, int64_t from, int64_t to)
{
    return nicstride_stripes(nicstride_ctl(h->m, h->local)->stripe, (uint64_t)from, (uint64_t)to);
}

void nicstride_hold_give(nicstride_hold_t *h)
{
    for (; h->set != 0; h->set &= h->set - 1)
        onic_owned_release(lock_of(h, lowest(h->set)));
}

int nicstride_hold_take(nicstride_hold_t *h, int64_t from, int64_t to)
{
    if (!h->locks)
        return OMPI_SUCCESS;
    const nicstride_stripes_t set = needed(h, from, to);

    if (set == h->set)
        return OMPI_SUCCESS;
    nicstride_hold_give(h);
    for (nicstride_stripes_t left = set; left != 0; left &= left - 1) {
        const int rc = nicstride_ctl_lock(h->m, lock_of(h, lowest(left)));

        if (rc != OMPI_SUCCESS) {
            nicstride_hold_give(h);
            return rc;
        }
        h->set |= left & -left;
    }
    return OMPI_SUCCESS;
}

/* ---- updates that need no walk --------------------------------------------------------------- */

static void apply_bytes(const nicstride_apply_t *a, void *at, const void *src, void *old, size_t n)
{
    if (old != NULL)
        onic_copy_bytes(old, at, n * a->size);
    if (a->kind == NICSTRIDE_APPLY_REPLACE)
        onic_copy_bytes(at, src, n * a->size);
    else if (a->kind == NICSTRIDE_APPLY_REDUCE)
        a->reduce(a->ctx, src, at, n);
}

int nicstride_update(const nicstride_module_t *m, int local, const nicstride_apply_t *a, void *at,
                     int64_t disp, const void *src, void *old, size_t n)
{
    nicstride_hold_t h;
    int rc;

    nicstride_hold_init(&h, m, local, a, (uintptr_t)at % (a->size & -a->size) == 0);
    rc = nicstride_hold_take(&h, disp, disp + (int64_t)(n * a->size));
    if (rc == OMPI_SUCCESS)
        apply_bytes(a, at, src, old, n);
    nicstride_hold_give(&h);
    return rc;
}

int nicstride_swap(const nicstride_module_t *m, int local, void *at, int64_t disp, size_t size,
                   const void *compare, const void *desired, void *old)
{
    nicstride_hold_t h = {.m = m, .local = local, .locks = true};
    const int rc = nicstride_hold_take(&h, disp, disp + (int64_t)size);

    if (rc == OMPI_SUCCESS)
        nicstride_apply_cas(at, size, compare, desired, old);
    nicstride_hold_give(&h);
    return rc;
}
