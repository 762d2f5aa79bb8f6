/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/mover/counters.h"

#include "common/mover/transfer_internal.h"

#include "opal/mca/base/mca_base_pvar.h"

onic_mover_counters_t onic_mover_counters;

void onic_mover_register_counters(const mca_base_component_t *c)
{
    const int count = MCA_BASE_PVAR_CLASS_COUNTER;
    onic_mover_counters_t *n = &onic_mover_counters;

    onic_register_counter(c, "chunks", "Chunks packed into slots of receivers", count, &n->chunks);
    onic_register_counter(c, "gaps",
                          "Times a sender waited until its receiver had emptied a slot, or had "
                          "granted some",
                          count, &n->gaps);
    onic_register_counter(
        c, "stalls", "Times a receiver had taken all that was in its slots and waited for more",
        count, &n->stalls);
    onic_register_counter(c, "refused_leases",
                          "Slots that were asked for and not to be had at once", count,
                          &n->refused);
    onic_register_counter(c, "slots_in_use",
                          "Most slots of this process's landing area that were in use at a time",
                          MCA_BASE_PVAR_CLASS_HIGHWATERMARK, &n->slots);
}

void onic_mover_count(unsigned long long *counter, unsigned long long n)
{
    __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

void onic_mover_count_transfer(const onic_transfer_t *t)
{
    onic_mover_counters_t *n = &onic_mover_counters;
    if (t->chunks > 0) {
        onic_mover_count(&n->chunks, t->chunks);
    }
    if (t->waits > 0) {
        onic_mover_count(t->role == ONIC_SENDS ? &n->gaps : &n->stalls, t->waits);
    }
}

void onic_mover_count_slots(unsigned in_use)
{
    unsigned long long most = __atomic_load_n(&onic_mover_counters.slots, __ATOMIC_RELAXED);
    while (in_use > most &&
           !__atomic_compare_exchange_n(&onic_mover_counters.slots, &most, in_use, true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}
