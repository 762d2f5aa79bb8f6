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
    const int count = MCA_BASE_PVAR_CLASS_COUNTER;
    superpipe_counters_t *n = &superpipe_counters;

    for (int p = SUPERPIPE_EAGER; p < SUPERPIPE_PROTOCOLS; p++) {
        const char *protocol = superpipe_rows[p]->name;
        char name[64], help[128];

        snprintf(name, sizeof(name), "messages_%s", protocol);
        snprintf(help, sizeof(help), "Messages received by protocol %s", protocol);
        onic_register_counter(c, name, help, count, &n->messages[p]);
        snprintf(name, sizeof(name), "bytes_%s", protocol);
        snprintf(help, sizeof(help), "Bytes received by protocol %s", protocol);
        onic_register_counter(c, name, help, count, &n->bytes[p]);
    }
    onic_register_counter(c, "announced", "Messages whose data waited at their sender", count,
                          &n->announced);
    onic_register_counter(c, "no_credit", "Short messages announced for want of credit", count,
                          &n->no_credit);
    onic_register_counter(c, "kept", "Messages of which not even the header had credit", count,
                          &n->kept);
    onic_register_counter(c, "unexpected", "Messages that came before their receive", count,
                          &n->unexpected);
    onic_register_counter(c, "unexpected_bytes",
                          "Most bytes that such messages, with their data, have taken up at a time",
                          MCA_BASE_PVAR_CLASS_HIGHWATERMARK, &n->unexpected_bytes);
    onic_register_counter(c, "unpaid",
                          "Headers that were requested beyond the credit of their sender, since a "
                          "receive or probe waits for them or for one behind them",
                          count, &n->unpaid);
    onic_register_counter(c, "fallbacks", "Transfers that were begun again in another way", count,
                          &n->fallbacks);
    onic_register_counter(c, "queued",
                          "Messages that came through a queue of this process, those of one-sided "
                          "operations among them",
                          count, &onic_queue_counters.received);
    onic_register_counter(c, "queue_waits",
                          "Messages for which there was no room in another process's queue", count,
                          &onic_queue_counters.waited);
    onic_mover_register_counters(c);
    onic_register_counter(c, "reuse_hits",
                          "Contiguous buffers of long messages that had been used before", count,
                          &n->reuse_hits);
    onic_register_counter(c, "reuse_misses",
                          "Contiguous buffers of long messages that were used for the first time",
                          count, &n->reuse_misses);
    return OMPI_SUCCESS;
}
