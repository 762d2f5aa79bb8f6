/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file MCA parameters of osc_nicstride: names, units, ranges, checks. MPI_T performance
 *  variables: operations and bytes by method, and a few totals. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/pipeline/core/chunks.h"
#include "common/transport/shm/node.h"
#include "common/support/collective.h"
#include "common/support/component.h"
#include "common/support/help.h"
#include "common/transport/verbs/rc_terms.h"
#include "common/transport/ucx/adapters.h"
#include "common/transport/shm/rings.h"
#include "osc_nicstride/component/setup.h"
#include "osc_nicstride/methods/methods.h"
#include "osc_nicstride/methods/plan.h"
#include "osc_nicstride/origin/origin.h"
#include "osc_nicstride/window/state.h"

#include "ompi/constants.h"
#include "opal/mca/base/mca_base_pvar.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"

#define NUMBER(...) ONIC_SIZE(nicstride_component.params, __VA_ARGS__)
#define SWITCH(...) ONIC_SWITCH(nicstride_component.params, __VA_ARGS__)

/** "auto", then the names of the methods. */
static const char *methods[NICSTRIDE_METHODS_MAX + 1];
static const char *method, *schedule, *cost;

static const onic_param_t params[] = {
    NUMBER(priority, 0, NICSTRIDE_PRIORITY_INITIAL, 0, 1000,
           "Priority among the osc components. The default is below that of the components that "
           "come with Open MPI: select this one by name (osc=nicstride)"),
    NUMBER(server_idle, 0, 1000, 1, 1000000,
           "Microseconds that the application must be away from MPI before the server thread by "
           "itself answers one-sided requests in its place. Where all processes of a window share "
           "a node they wake it when they wait for it, and this does not matter. Smaller values "
           "answer sooner and cost more wake-ups"),
    NUMBER(memory, 20, 64, 1, 1 << 20,
           "Mebibytes of this process's memory for messages of others: replies to them, records of "
           "long transfers, and with pml_superpipe, whose parameter of this name counts where it "
           "is larger, messages that came before their receive. At least 24 KiB for each process "
           "of the job"),
    NUMBER(area, 10, 0, 0, 1 << 20,
           "Kibibytes of the receive buffers through which method pipeline brings data to this "
           "process; "
           "0 takes twice a core's L2 cache, 1 to 16 MiB. Less where /dev/shm is small: an eighth "
           "of what is free there for all processes of the node"),
    NUMBER(queues, 10, 1024, 0, 1 << 20,
           "Kibibytes of shared memory, for all of them together, of the queues through which the "
           "processes of its node and job send messages to this process. Those that are used take "
           "up 8 KiB each in any case, and what is left goes to those that need more, up to an "
           "eighth of all for each, or an equal part where there are fewer. Less where /dev/shm is "
           "small, as with the area. Where pml superpipe is selected its parameter of "
           "that name counts instead. 0: messages go by UCX"),
    NUMBER(verbose, 0, 0, 0, 2,
           "1 prints a line for each window, by its first process, and at the end what the first "
           "process of the job has counted; 2 what all processes have counted"),
    NUMBER(
        check, 0, 0, 0, 2,
        "1 checks what a program does with windows and says where accesses conflict, with rank, "
        "call, window and bytes: calls of one process that overlap, at the target or in its own "
        "buffers, before the first is complete; and those of different processes of a node "
        "where memory is mapped. For finding errors: small transfers take some times as long, "
        "long ones up to some hundred times, and shared memory of four times the window's size "
        "is needed. 2 lets such calls fail with MPI_ERR_RMA_CONFLICT. The same in all processes"),
    {.name = "method",
     .help =
         "How data moves: auto, direct (load and store in mapped memory), cma (single copy by "
         "the kernel, each contiguous piece by itself), sieve (get: single copy of the "
         "covering extent, then gather), pack (packed fragments by active messages), pipeline "
         "(packed into buffers of the receiver while it unpacks), rdma (contiguous data, put and "
         "got by an adapter, or as UCX emulates that), nic (an adapter puts and gets each "
         "contiguous piece by itself). A method that cannot do a transfer is replaced by one "
         "that can",
     .number = &nicstride_component.params.method,
     .words = methods,
     .former = "mover",
     .latter = "pipeline",
     .text = &method},
    {.name = "schedule",
     .help = ONIC_SCHEDULE_HELP,
     .number = &nicstride_component.params.schedule,
     .words = onic_schedule_words,
     .text = &schedule},
    {.name = "cost",
     .help =
         "Numbers that the choice of methods is made from: default, those that are built in for "
         "this processor or that ompi-nic-info calibrate has measured on it; or @FILE, a file of "
         "lines as in 'net: message=10000' and 'adapter: request=60' and as calibration writes "
         "them, or such a line itself. show_plan prints all of them in this form; files for "
         "some networks are installed",
     .text = &cost,
     .initial = "default"},
    SWITCH(show_plan, false,
           "Print, when the first window is made, the method that is chosen for each kind "
           "of peer, shape and size, and at the end how much was really moved by each method"),
    SWITCH(node, true,
           "Share memory between the processes of a node. Without it each process is treated as a "
           "node of its own and all its windows but shared ones are private"),
    SWITCH(cma, true,
           "Use single copy by the kernel (process_vm_readv and process_vm_writev) where it works. "
           "Where kernel.yama.ptrace_scope is 1 that needs the processes to let all of the same "
           "user attach to them, debuggers too, which they do then; nothing else needs it"),
    SWITCH(
        network_slots, true,
        "Let method pipeline bring data to and from other hosts, too, where an InfiniBand or RoCE "
        "adapter can put into buffers of the receiver. Nothing changes where there is none. "
        "Without it the receive buffers are not registered, and such transfers go as fragments or "
        "by the adapter alone"),
    SWITCH(server, true,
           "Run a server thread that answers one-sided requests while the application is away from "
           "MPI: to processes of the same node when they wake it, to others after server_idle. "
           "Without it windows whose memory is private make passive-target progress only inside "
           "MPI calls"),
    {.name = NULL},
};

/** The parameters of a method's row, or for NICSTRIDE_METHOD_AUTO those of the component; ended by
 *  one without a name. */
static const onic_param_t *params_of(int row)
{
    static const onic_param_t none = {.name = NULL};
    const onic_param_t *its = nicstride_methods[row]->params;

    return row == NICSTRIDE_METHOD_AUTO ? params : its != NULL ? its : &none;
}

/** Takes the numbers that the parameter cost gives. OMPI_SUCCESS, or an error after a text. */
static int set_table(void)
{
    nicstride_component_t *c = &nicstride_component;

    if (!onic_links_given(&c->links, cost, c->links_from, NICSTRIDE_HELP_FILE))
        return OMPI_ERR_BAD_PARAM;
    nicstride_paths_set(c->path, &c->links);
    c->limits = (nicstride_limits_t){
        .near = nicstride_inline_bytes(c->links.node.message, c->links.node.byte),
        .far = nicstride_inline_bytes(c->links.net.message, c->links.net.byte),
    };
    return OMPI_SUCCESS;
}

int nicstride_params_check(const mca_base_component_t *c)
{
    if (onic_check_given(c, NICSTRIDE_HELP_FILE) != OMPI_SUCCESS)
        return OMPI_ERR_BAD_PARAM;
    for (int m = 0; m < NICSTRIDE_METHOD_LAST; m++)
        for (const onic_param_t *p = params_of(m); p->name != NULL; p++)
            if (!onic_param_check(p, NICSTRIDE_HELP_FILE))
                return OMPI_ERR_BAD_PARAM;
    return set_table();
}

/* ---- performance variables ------------------------------------------------------------------- */

#define COUNTER(of, text, kind)                                                                    \
    {                                                                                              \
        .name = #of, .help = text, .counter = &nicstride_counters.of, .class = kind                \
    }

static const onic_counter_t counters[] = {
    COUNTER(messages, "Fragments sent to targets", 0),
    COUNTER(locks_together, "Locks asked for in one message with an operation", 0),
    COUNTER(window_locks, "Times that the lock of a window was asked for", 0),
    COUNTER(wakeups, "Helper threads of other processes that were woken", 0),
    {"queued",
     "Messages that came through a queue of this process, those of the point-to-point layer "
     "among "
     "them",
     &onic_queue_counters.received, 0},
    {"queue_waits", "Messages for which there was no room in another process's queue",
     &onic_queue_counters.waited, 0},
    COUNTER(keys_asked, "Times that a target was asked for a key of its memory, for an adapter", 0),
    COUNTER(keys_refused, "Of these, those that got none", 0),
    COUNTER(conflicts, "Calls that a checked window (parameter check) found to be wrong", 0),
    COUNTER(refused, "Messages refused: malformed, or for a window that is gone", 0),
    {"layouts_found", "Uses of irregular datatypes whose block lists had been kept",
     &nicstride_flattened.hits, 0},
    COUNTER(lists_named, "Messages described by the name of a block list that the target has", 0),
    {"collectives",
     "Collectives by which windows were made and barriers set up, beside those of Open MPI "
     "itself",
     &onic_collectives, 0},
    COUNTER(lookups,
            "Processes whose parameters were looked up in what all have published in MPI_Init", 0),
    COUNTER(live_ops, "Operation objects in use", MCA_BASE_PVAR_CLASS_LEVEL),
    COUNTER(live_requests, "Request objects in use", MCA_BASE_PVAR_CLASS_LEVEL),
};

void nicstride_params_register(const mca_base_component_t *c)
{
    nicstride_counters_t *n = &nicstride_counters;

    for (int m = 0; m < NICSTRIDE_METHOD_LAST; m++)
        methods[m] = nicstride_methods[m]->name;
    for (int m = 0; m < NICSTRIDE_METHOD_LAST; m++)
        for (const onic_param_t *p = params_of(m); p->name != NULL; p++)
            onic_param_register(c, p);
    for (int m = NICSTRIDE_METHOD_DIRECT; m < NICSTRIDE_METHOD_LAST; m++) {
        onic_register_counter_of(c, "ops", methods[m], "Operations of all kinds done by method",
                                 &n->ops[m]);
        onic_register_counter_of(c, "bytes", methods[m],
                                 "Bytes of target memory put, got or updated by method",
                                 &n->bytes[m]);
    }
    onic_register_counters(c, counters, sizeof(counters) / sizeof(counters[0]));
    for (int m = NICSTRIDE_METHOD_DIRECT; m < NICSTRIDE_METHOD_LAST; m++)
        onic_register_counters(c, nicstride_methods[m]->counters, nicstride_methods[m]->ncounters);
}

/* ---- the table ------------------------------------------------------------------------------- */

void nicstride_plan_show(const nicstride_module_t *m)
{
    nicstride_component_t *c = &nicstride_component;
    char table[16384], text[ONIC_LINKS_TEXT_MAX];
    FILE *to = c->plan_shown || m->rank != 0 ? NULL : fmemopen(table, sizeof(table), "w");

    if (to == NULL)
        return;
    c->plan_shown = true;
    nicstride_plan_table(to, nicstride_methods, c->path, (nicstride_method_t)c->params.method);
    fclose(to);
    onic_links_write(&c->links, text, sizeof(text));
    opal_output(0,
                "osc_nicstride: methods by kind of peer, block and size\n%s"
                "osc_nicstride: the numbers that this comes from: %s\n%s",
                table, c->links_from, text);
}

void nicstride_window_show(const nicstride_module_t *m)
{
    const char *on_node = "";

    if (m->node.n > 1) {
        const int other = m->node.me == 0 ? 1 : 0;

        on_node = m->mapped[other] != NULL ? "; on the node by load and store"
                                           : "; on the node by single copy, buffers and messages";
    }
    opal_output(0, "osc_nicstride: window %u of %d processes, %d of them on %s%s%s", m->name,
                m->size, m->node.n, opal_process_info.nodename, on_node,
                m->size > m->node.n ? "; to other nodes by messages, or an adapter" : "");
}

void nicstride_say_idle(void)
{
    const int forced = nicstride_component.params.method;

    if (forced != NICSTRIDE_METHOD_AUTO)
        onic_say_idle("osc_nicstride_method", nicstride_methods[forced]->name,
                      nicstride_counters.ops, NICSTRIDE_METHODS_MAX, forced);
}
