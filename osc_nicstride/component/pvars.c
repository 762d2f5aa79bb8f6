/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * MPI_T performance variables: operations and bytes by method, and a few totals.
 */
#include <stddef.h>
#include <stdio.h>

#include "osc_nicstride/component/setup.h"
#include "osc_nicstride/window/component.h"
#include "osc_nicstride/methods/methods.h"
#include "common/support/collective.h"
#include "common/support/variables.h"

#include "ompi/constants.h"
#include "opal/mca/base/mca_base_pvar.h"

int nicstride_pvars_register(const mca_base_component_t *c)
{
    const int count = MCA_BASE_PVAR_CLASS_COUNTER;
    const int level = MCA_BASE_PVAR_CLASS_LEVEL;
    nicstride_counters_t *n = &nicstride_counters;

    for (int m = NICSTRIDE_METHOD_DIRECT; m < NICSTRIDE_METHOD_LAST; m++) {
        const char *method = nicstride_methods[m]->name;
        char name[64], help[128];

        snprintf(name, sizeof(name), "ops_%s", method);
        snprintf(help, sizeof(help), "Operations of all kinds done by method %s", method);
        onic_register_counter(c, name, help, count, &n->ops[m]);
        snprintf(name, sizeof(name), "bytes_%s", method);
        snprintf(help, sizeof(help), "Bytes of target memory put, got or updated by method %s",
                 method);
        onic_register_counter(c, name, help, count, &n->bytes[m]);
    }
    onic_register_counter(c, "accumulates",
                          "Calls that accumulate, fetch_and_op and compare_and_swap among them",
                          count, &n->accumulates);
    onic_register_counter(c, "messages", "Fragments sent to targets", count, &n->messages);
    onic_register_counter(c, "batches", "Short messages sent together, several in one", count,
                          &n->batches);
    onic_register_counter(c, "locks_together", "Locks asked for in one message with an operation",
                          count, &n->together);
    onic_register_counter(c, "slot_answers",
                          "Answers to single operations that came by shared memory", count,
                          &n->slot_answers);
    onic_register_counter(c, "knocks", "Helper threads of other processes that were woken", count,
                          &n->knocks);
    onic_register_counter(c, "queued",
                          "Messages that came through a queue of this process, those of the "
                          "point-to-point layer among them",
                          count, &onic_queue_counters.received);
    onic_register_counter(c, "queue_waits",
                          "Messages for which there was no room in another process's queue", count,
                          &onic_queue_counters.waited);
    onic_register_counter(c, "deferred", "Messages put off because a lock was busy", count,
                          &n->deferred);
    onic_register_counter(c, "deferred_bytes",
                          "Most bytes that messages put off have taken up at a time",
                          MCA_BASE_PVAR_CLASS_HIGHWATERMARK, &n->deferred_bytes);
    onic_register_counter(c, "lent_bytes",
                          "Most bytes that were lent to other processes at a time, for what their "
                          "messages take up here",
                          MCA_BASE_PVAR_CLASS_HIGHWATERMARK, &n->lent_bytes);
    onic_register_counter(c, "reply_bytes",
                          "Most bytes of replies that were asked for by message at a time",
                          MCA_BASE_PVAR_CLASS_HIGHWATERMARK, &n->reply_bytes);
    onic_register_counter(c, "refused", "Messages refused: malformed, or for a window that is gone",
                          count, &n->refused);
    onic_register_counter(c, "collectives",
                          "Collectives by which windows were made and barriers set up, beside "
                          "those of Open MPI itself",
                          count, &onic_collectives);
    onic_register_counter(c, "lookups",
                          "Processes whose parameters were looked up in what all have published in "
                          "MPI_Init",
                          count, &n->lookups);
    onic_register_counter(c, "live_ops", "Operation objects in use", level, &n->ops_live);
    onic_register_counter(c, "live_requests", "Request objects in use", level, &n->requests_live);
    return OMPI_SUCCESS;
}
