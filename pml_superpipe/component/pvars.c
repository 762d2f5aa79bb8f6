/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file MPI_T performance variables: messages and bytes by protocol, and a few totals. */
#include "pml_superpipe/component/component.h"

#include <stdio.h>

#include "common/mover/mover.h"
#include "pml_superpipe/protocols/process.h"

#include "ompi/constants.h"
#include "opal/mca/base/mca_base_pvar.h"

int superpipe_pvars_register(const mca_base_component_t *c)
{
    superpipe_counters_t *n = &superpipe_counters;
    const struct {
        const char *name, *help;
        unsigned long long *counter;
    } totals[] = {
        {"announced", "Messages whose data waited at their sender", &n->announced},
        {"no_credit", "Short messages announced for want of credit", &n->no_credit},
        {"unexpected", "Messages that came before their receive", &n->unexpected},
        {"fallbacks", "Transfers that were begun again in another way", &n->fallbacks},
        {"queued",
         "Messages that came through a queue of this process, those of one-sided operations among "
         "them",
         &onic_queue_counters.received},
        {"queue_waits", "Messages for which there was no room in another process's queue",
         &onic_queue_counters.waited},
        {"reuse_hits", "Contiguous buffers of long messages that had been used before",
         &n->reuse_hits},
        {"reuse_misses", "Contiguous buffers of long messages that were used for the first time",
         &n->reuse_misses},
    };

    for (int p = SUPERPIPE_EAGER; p < SUPERPIPE_PROTOCOLS; p++) {
        const char *protocol = superpipe_rows[p]->name;
        char name[64], help[128];

        snprintf(name, sizeof(name), "messages_%s", protocol);
        snprintf(help, sizeof(help), "Messages received by protocol %s", protocol);
        onic_register_counter(c, name, help, MCA_BASE_PVAR_CLASS_COUNTER, &n->messages[p]);
        snprintf(name, sizeof(name), "bytes_%s", protocol);
        snprintf(help, sizeof(help), "Bytes received by protocol %s", protocol);
        onic_register_counter(c, name, help, MCA_BASE_PVAR_CLASS_COUNTER, &n->bytes[p]);
    }
    for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++)
        onic_register_counter(c, totals[i].name, totals[i].help, MCA_BASE_PVAR_CLASS_COUNTER,
                              totals[i].counter);
    onic_register_counter(c, "unexpected_bytes",
                          "Most bytes that such messages, with their data, have taken up at a time",
                          MCA_BASE_PVAR_CLASS_HIGHWATERMARK, &n->unexpected_bytes);
    onic_mover_register_counters(c);
    return OMPI_SUCCESS;
}
