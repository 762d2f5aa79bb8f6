/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * MPI_T performance variables: barriers by engine, what the network engines had to repair, skew.
 */
#include "coll_nicbarrier/component/state.h"

#include <stdio.h>

#include "common/support/variables.h"
#include "opal/mca/base/mca_base_pvar.h"

/** Those of an engine; a 64-bit atomic reads as what it holds. */
static void register_table(const mca_base_component_t *c, const nicbarrier_counter_t *table)
{
    _Static_assert(sizeof(unsigned long long) == sizeof(_Atomic uint64_t), "counters are 64 bits");
    for (; table != NULL && table->name != NULL; table++) {
        onic_register_counter(c, table->name, table->help, MCA_BASE_PVAR_CLASS_COUNTER,
                              (unsigned long long *)(void *)table->value);
    }
}

void nicbarrier_pvars_register(const mca_base_component_t *c)
{
    const int count = MCA_BASE_PVAR_CLASS_COUNTER;
    const int level = MCA_BASE_PVAR_CLASS_LEVEL;
    nicbarrier_counters_t *n = &nicbarrier_counters;

    for (int k = 0; nicbarrier_engines[k] != NULL; k++) {
        const char *kind = nicbarrier_engines[k]->name;
        char name[64], help[128];

        snprintf(name, sizeof(name), "barriers_%s", kind);
        snprintf(help, sizeof(help), "Barriers entered that engine %s carries", kind);
        onic_register_counter(c, name, help, count, &n->barriers[k]);
        register_table(c, nicbarrier_engines[k]->counters);
    }
    onic_register_counter(c, "barriers_below", "Barriers left to the module below", count,
                          &n->below);
    onic_register_counter(c, "agreements", "Agreements on an engine begun", count, &n->agreements);
    onic_register_counter(c, "trials", "Engines tried between nodes before barriers depend on them",
                          count, &n->trials);
    onic_register_counter(c, "declined", "Agreements that found no engine", count, &n->declined);
    onic_register_counter(c, "live_teams", "Engines set up and not yet taken apart", level,
                          &n->live_teams);
    onic_register_counter(c, "live_requests", "Request objects in use", level, &n->live_requests);
    onic_register_counter(c, "skew_count", "Barriers whose skew was measured (parameter skew)",
                          count, &n->skew_count);
    onic_register_counter(c, "skew_total",
                          "Nanoseconds from the first arrival to the last one on this node, all "
                          "measured barriers together",
                          count, &n->skew_total);
    onic_register_counter(c, "skew_max", "The longest of these times, in nanoseconds",
                          MCA_BASE_PVAR_CLASS_HIGHWATERMARK, &n->skew_max);
}
