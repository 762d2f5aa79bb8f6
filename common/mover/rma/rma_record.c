/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The carrier between hosts: records of transfers, and bounce slots. */
#include "common/mover/rma/carrier_rma.h"

#include <stdlib.h>

onic_rma_state_t onic_rma_state;

onic_handles_t onic_rma_records;

void onic_rma_fail(onic_rma_peer_t *p)
{
    atomic_store(&p->failed, true);
    atomic_store(&onic_rma_state.failing, true);
    atomic_store(&onic_rma_state.pending, true);
}

/* ---- bounce slots ---------------------------------------------------------------------------- */

static unsigned count(uint64_t slots)
{
    return (unsigned)__builtin_popcountll(slots);
}

unsigned onic_rma_take_bounce(onic_rma_t *r, unsigned most)
{
    _Atomic(uint64_t) *mask = &onic_rma_state.bounce_free;
    uint64_t free = atomic_load_explicit(mask, memory_order_relaxed);
    unsigned taken = 0;
    /* Half of what is free, so that others find some; one at least. */
    most = count(free) / 2 < most && count(free) > 1 ? count(free) / 2 : most;
    while (taken < most && free != 0 && r->nbounce < ONIC_SLOTS_MAX) {
        const uint64_t slot = free & -free;
        if (atomic_compare_exchange_weak_explicit(mask, &free, free & ~slot, memory_order_acquire,
                                                  memory_order_relaxed)) {
            r->bounce[r->nbounce++] = (unsigned char)__builtin_ctzll(slot);
            taken++;
            free &= ~slot;
        }
    }
    return taken;
}

static void free_bounce(onic_rma_t *r)
{
    uint64_t slots = 0;
    while (r->nbounce > 0)
        slots |= UINT64_C(1) << r->bounce[--r->nbounce];
    atomic_fetch_or_explicit(&onic_rma_state.bounce_free, slots, memory_order_release);
}

char *onic_rma_bounce(const onic_rma_t *r, unsigned slot)
{
    const unsigned rank =
        r->terms.committed ? count(r->terms.lease & ((UINT64_C(1) << slot) - 1)) : 0;
    return onic_rma_state.bounce + (size_t)r->bounce[rank] * onic_rma_state.slot_bytes;
}

/* ---- records --------------------------------------------------------------------------------- */

onic_rma_t *onic_rma_new(onic_rma_peer_t *peer, bool sends)
{
    onic_rma_t *r = calloc(1, sizeof(*r));
    const uint64_t name = r != NULL ? onic_handle_new(&onic_rma_records, r) : 0;
    if (name == 0) {
        free(r);
        return NULL;
    }
    r->name = name;
    r->peer = peer;
    r->terms.sends = sends;
    return r;
}

onic_rma_t *onic_rma_find(uint64_t name)
{
    return onic_handle_get(&onic_rma_records, name);
}

void onic_rma_drop(onic_rma_t *r)
{
    if (r->terms.over && r->peer->lost) {
        /* UCX may never end what it cannot send: whatever it sends still goes to nobody. */
        free_bounce(r);
    }
    if (onic_terms_done(&r->terms) && atomic_load(&r->refs) == 0) {
        free_bounce(r);
        free(onic_handle_free(&onic_rma_records, r->name));
    }
}
