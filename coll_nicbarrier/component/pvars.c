/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * MPI_T performance variables: barriers by engine, what the network engines had to repair, skew.
 */
#include "coll_nicbarrier/component/module.h"

#include <stdio.h>

#include "coll_nicbarrier/engines/datagram/datagram.h"
#include "common/variables.h"
#include "ompi/constants.h"
#include "opal/mca/base/mca_base_pvar.h"

/** Counters of engine datagram; a 64-bit atomic reads as what it holds. */
static void register_datagram(const mca_base_component_t *c)
{
    nicbarrier_datagram_counters_t *d = &nicbarrier_datagram_counters;
    const struct {
        const char *name;
        const char *help;
        _Atomic uint64_t *counter;
    } counters[] = {
        {"datagram_messages", "Engine datagram: messages sent without being asked", &d->messages},
        {"nacks_sent", "Engine datagram: requests to repeat a message, sent", &d->nacks},
        {"nacks_received", "Engine datagram: such requests received", &d->nacks_seen},
        {"retransmits", "Engine datagram: messages repeated, each for a request", &d->retransmits},
        {"recovered", "Engine datagram: repeated messages received that were needed",
         &d->recovered},
        {"duplicates", "Engine datagram: messages received that said nothing new", &d->duplicates},
        {"refused", "Engine datagram: packets received that were not understood, or from strangers",
         &d->refused},
        {"dropped", "Engine datagram: packets not sent, for tests (parameter drop)", &d->dropped},
        {"verbs_sent", "Engine datagram: packets sent by verbs", &d->verbs_sent},
        {"verbs_received", "Engine datagram: packets received by verbs", &d->verbs_received},
        {"nack_copies", "Engine datagram: requests sent by UDP in addition, after some by verbs",
         &d->copies},
        {"verbs_fallbacks",
         "Engine datagram: partners that did not answer by verbs and get UDP instead",
         &d->fallbacks},
        {"thread_wakeups",
         "Engine datagram: times that the helper thread woke up while the application was away",
         &d->thread_wakeups},
        {"datagram_completed",
         "Engine datagram: barriers completed; those that become so together count as one",
         &d->completed},
        {"thread_completed", "Engine datagram: of these, completed by the helper thread",
         &d->thread_completed},
        {"handovers",
         "Engine datagram: times that the helper thread was told to stand in at once, because the "
         "program computes behind its nonblocking barriers",
         &d->handovers},
    };

    _Static_assert(sizeof(unsigned long long) == sizeof(_Atomic uint64_t), "counters are 64 bits");
    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
        onic_register_counter(c, counters[i].name, counters[i].help, MCA_BASE_PVAR_CLASS_COUNTER,
                              (unsigned long long *)(void *)counters[i].counter);
    }
}

int nicbarrier_pvars_register(const mca_base_component_t *c)
{
    const int count = MCA_BASE_PVAR_CLASS_COUNTER;
    const int level = MCA_BASE_PVAR_CLASS_LEVEL;
    nicbarrier_counters_t *n = &nicbarrier_counters;

    for (int k = NICBARRIER_SHM; k < NICBARRIER_KINDS; k++) {
        const char *kind = nicbarrier_kind_name((nicbarrier_kind_t)k);
        char name[64], help[128];

        snprintf(name, sizeof(name), "barriers_%s", kind);
        snprintf(help, sizeof(help), "Barriers entered that engine %s carries", kind);
        onic_register_counter(c, name, help, count, &n->barriers[k]);
    }
    onic_register_counter(
        c, "barriers_below",
        "Barriers left to the module below, or done by messages while it was agreed "
        "that there is no engine",
        count, &n->barriers[NICBARRIER_AUTO]);
    onic_register_counter(c, "agreements", "Agreements on an engine begun", count, &n->agreements);
    onic_register_counter(c, "trials", "Engines tried between nodes before barriers depend on them",
                          count, &n->trials);
    onic_register_counter(c, "declined", "Agreements that found no engine", count, &n->declined);
    onic_register_counter(c, "live_teams", "Engines set up and not yet taken apart", level,
                          &n->live_teams);
    onic_register_counter(c, "live_requests", "Request objects in use", level, &n->live_requests);
    register_datagram(c);
    onic_register_counter(c, "skew_count", "Barriers whose skew was measured (parameter skew)",
                          count, &n->skew_count);
    onic_register_counter(c, "skew_total",
                          "Nanoseconds from the first arrival to the last one on this node, all "
                          "measured barriers together",
                          count, &n->skew_total);
    onic_register_counter(c, "skew_max", "The longest of these times, in nanoseconds",
                          MCA_BASE_PVAR_CLASS_HIGHWATERMARK, &n->skew_max);
    return OMPI_SUCCESS;
}
