/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The component: parameters and performance variables, selection, start and end. */
#include "pml_superpipe/calls/calls.h"

#include <stdlib.h>

#include "common/config.h"
#include "common/support/component.h"
#include "common/support/help.h"
#include "common/support/series.h"
#include "common/transport/transport.h"
#include "common/transport/shm/rings.h"

#include "ompi/mca/pml/base/base.h"
#include "opal/mca/base/mca_base_pvar.h"

/** The component is selected by name (pml=superpipe): by default Open MPI considers only its own.
 */
#define PRIORITY 10

ONIC_EXPORT extern superpipe_component_t mca_pml_superpipe_component;

/* ---- parameters and performance variables ---------------------------------------------------- */

#define NUMBER(...) ONIC_SIZE(superpipe.params, __VA_ARGS__)
#define SWITCH(...) ONIC_SWITCH(superpipe.params, __VA_ARGS__)

static const char *protocols[SUPERPIPE_PROTOCOLS + 1]; /**< their names */
static const char *protocol, *schedule, *cost;

static const onic_param_t params[] = {
    NUMBER(eager, 0, 8192, 0, 1 << 20,
           "Most bytes of a message that is sent with its envelope, before it is known that a "
           "receive waits for it; fewer where a fragment of the transport holds fewer"),
    NUMBER(early, 0, 65536, 0, SUPERPIPE_EARLY_MAX,
           "Most bytes of a longer message that are sent behind its announcement without being "
           "asked for, by credit: all of it, or what can be sent while the answer is awaited"),
    NUMBER(memory, 20, 64, 1, 1 << 20,
           "Mebibytes that messages which brought their data before their receive may take up in "
           "this process, of all senders together; at least 24 KiB for each process of the job. "
           "Without credit a message is announced, and its data stays with its sender"),
    NUMBER(buffered, 10, 16384, 0, 1 << 20,
           "Kibibytes that copies of short messages without credit may take up at their sender, "
           "which need not wait for the receive then. The first one starts the server thread, "
           "which sends them while the process computes"),
    NUMBER(area, 10, 0, 0, 1 << 20,
           "Kibibytes of the receive buffers through which protocol pipeline brings data to this "
           "process; 0 takes twice a core's L2 cache, 1 to 16 MiB. Less where /dev/shm is small: "
           "an eighth of what is free there for all processes of the node"),
    NUMBER(slot, 10, 0, 0, 1 << 20,
           "Kibibytes of one receive buffer, which is the longest chunk; 0 takes what follows "
           "from the area"),
    NUMBER(queues, 10, 4096, 0, 1 << 20,
           "Kibibytes of shared memory, for all of them together, of the queues through which the "
           "processes of its node and job send messages to this process. Those that are used take "
           "up 8 KiB each in any case, and what is left goes to those that need more, up to an "
           "eighth of all for each, or an equal part where there are fewer. Less where /dev/shm is "
           "small, as with the area. 0: messages go by UCX"),
    NUMBER(verbose, 0, 0, 0, 2,
           "1 prints a line of the first process of the job that the component is in use, and at "
           "the end what that process has counted; 2 what all processes have counted"),
    {.name = "protocol",
     .help = "How data moves: auto, eager (with its envelope, up to what a fragment holds), stream "
             "(packed fragments by active messages), pipeline (packed into buffers of the receiver "
             "while it unpacks), copy (the receiver reads the memory of a sender on its node), "
             "rendezvous (UCX moves contiguous data between user memory, not within a node but "
             "where an adapter connects its processes). A protocol that cannot do a transfer is "
             "replaced by one that can",
     .number = &superpipe.params.protocol,
     .words = protocols,
     .former = "mover",
     .latter = "pipeline",
     .text = &protocol},
    {.name = "schedule",
     .help = ONIC_SCHEDULE_HELP,
     .number = &superpipe.params.schedule,
     .words = onic_schedule_words,
     .text = &schedule},
    {.name = "cost",
     .help = "Numbers that the choice of protocols is made from: default, those that are built in "
             "for this processor; or @FILE, which names a file of lines as in net: message=10000 "
             "and adapter: message=4000 and as calibration writes them, or such a line itself. "
             "ompi-nic-info calibrate measures them for this machine; show_plan "
             "prints what is in use",
     .text = &cost,
     .initial = "default"},
    {.name = "cma",
     .help = "Use single copy by the kernel (process_vm_readv) where it works. Where "
             "kernel.yama.ptrace_scope is 1 that needs the processes to let all of the same user "
             "attach to them, debuggers too, which they do then",
     .flag = &superpipe.params.single_copy,
     .on = true},
    SWITCH(network_slots, true,
           "Let protocol pipeline bring data from other hosts, too, through buffers that an "
           "InfiniBand "
           "or RoCE adapter puts into: it registers no memory but the receive buffers. "
           "Nothing changes where there is no adapter"),
    SWITCH(show_plan, false,
           "Print at the start which protocol is chosen for each kind of peer, data and size"),
    {.name = NULL},
};

static const onic_counter_t totals[] = {
    {"announced", "Messages whose data waited at their sender", &superpipe_counters.announced, 0},
    {"no_credit", "Short messages announced for want of credit", &superpipe_counters.no_credit, 0},
    {"unexpected", "Messages that came before their receive", &superpipe_counters.unexpected, 0},
    {"fallbacks", "Transfers that were begun again in another way", &superpipe_counters.fallbacks,
     0},
    {"queued",
     "Messages that came through a queue of this process, those of one-sided operations among them",
     &onic_queue_counters.received, 0},
    {"queue_waits", "Messages for which there was no room in another process's queue",
     &onic_queue_counters.waited, 0},
    {"unexpected_bytes", "Most bytes that such messages, with their data, have taken up at a time",
     &superpipe_counters.unexpected_bytes, MCA_BASE_PVAR_CLASS_HIGHWATERMARK},
};

static void register_counters(const mca_base_component_t *c)
{
    superpipe_counters_t *n = &superpipe_counters;

    for (int p = SUPERPIPE_EAGER; p < SUPERPIPE_PROTOCOLS; p++) {
        const char *row = superpipe_rows[p]->name;

        onic_register_counter_of(c, "messages", row, "Messages received by protocol",
                                 &n->messages[p]);
        onic_register_counter_of(c, "bytes", row, "Bytes received by protocol", &n->bytes[p]);
    }
    onic_register_counters(c, totals, sizeof(totals) / sizeof(totals[0]));
    onic_pipeline_register_counters(c);
}

static int register_variables(const mca_base_component_t *c)
{
    register_counters(c);
    for (int i = 0; i < SUPERPIPE_PROTOCOLS; i++)
        protocols[i] = superpipe_rows[i]->name;
    for (const onic_param_t *p = params; p->name != NULL; p++)
        onic_param_register(c, p);
    return OMPI_SUCCESS;
}

static int check_params(void)
{
    if (onic_check_given(&mca_pml_superpipe_component.super.pmlm_version, SUPERPIPE_HELP_FILE) !=
        OMPI_SUCCESS)
        return OMPI_ERR_BAD_PARAM;
    for (const onic_param_t *p = params; p->name != NULL; p++)
        if (!onic_param_check(p, SUPERPIPE_HELP_FILE))
            return OMPI_ERR_BAD_PARAM;
    return onic_links_given(&superpipe.table.links, cost, superpipe.links_from, SUPERPIPE_HELP_FILE)
               ? OMPI_SUCCESS
               : OMPI_ERR_BAD_PARAM;
}

/* ---- start and end --------------------------------------------------------------------------- */

static mca_pml_base_module_t module = {
    .pml_add_procs = superpipe_add_procs,
    .pml_del_procs = superpipe_del_procs,
    .pml_enable = superpipe_enable,
    .pml_progress = superpipe_yield,
    .pml_add_comm = superpipe_add_comm,
    .pml_del_comm = superpipe_del_comm,
    .pml_irecv_init = superpipe_irecv_init,
    .pml_irecv = superpipe_irecv,
    .pml_recv = superpipe_recv,
    .pml_isend_init = superpipe_isend_init,
    .pml_isend = superpipe_isend,
    .pml_send = superpipe_send,
    .pml_iprobe = superpipe_iprobe,
    .pml_probe = superpipe_probe,
    .pml_start = superpipe_start,
    .pml_improbe = superpipe_improbe,
    .pml_mprobe = superpipe_mprobe,
    .pml_imrecv = superpipe_imrecv,
    .pml_mrecv = superpipe_mrecv,
    .pml_dump = superpipe_dump,
    .pml_max_contextid = INT32_MAX,
    .pml_max_tag = INT32_MAX,
};

static int component_register(void)
{
    if (!onic_series_matches(&mca_pml_superpipe_component.super.pmlm_version))
        return OMPI_ERR_NOT_AVAILABLE;
    return register_variables(&mca_pml_superpipe_component.super.pmlm_version);
}

/** Called in all processes, whether they use the component or not. */
static int component_open(void)
{
    onic_add_help_dir(&superpipe_counters, OMPI_NIC_HELP_DIR);
    /* Before anyone opens the transport. */
    if (superpipe.params.network_slots)
        onic_pipeline_announce();
    return OMPI_SUCCESS;
}

/** Opens transport and pipeline. The transport publishes the address of this process. */
static int open_wire(void)
{
    const onic_transport_config_t config = {.single_copy = superpipe.params.single_copy,
                                            .queues = superpipe.params.queues,
                                            .memory = superpipe.params.memory,
                                            .publish = true};
    const onic_pipeline_config_t pipeline = {.rx_pool = superpipe.params.area,
                                             .rx_buffer = superpipe.params.slot,
                                             .schedule =
                                                 (onic_schedule_kind_t)superpipe.params.schedule,
                                             .links = &superpipe.table.links};
    const int rc = onic_transport_open(&config);

    if (rc != OMPI_SUCCESS)
        return rc;
    onic_pipeline_open(&pipeline);
    superpipe.table.slot = onic_pipeline_rx_buffer();
    superpipe.table.schedule = pipeline.schedule;
    return OMPI_SUCCESS;
}

/** Another component may keep the transport open, and with it the transport's peers. */
static void forget_peers(void)
{
    superpipe_peer_t *p;

    onic_transport_lock();
    LIST_FOREACH(p, &superpipe.peers, of_all)
        *onic_peer_slot(p->peer, ONIC_AM_PML) = NULL;
    onic_transport_unlock();
}

static void free_all(void)
{
    /* Messages for communicators that were never made. */
    for (uint32_t i = 0; i < SUPERPIPE_CONTEXT_LISTS; i++)
        for (superpipe_message_t *m;
             (m = TAILQ_FIRST(superpipe_match_arrived(&superpipe.match, i))) != NULL; free(m))
            superpipe_match_take(&superpipe.match, m);
    onic_handles_fini(&superpipe.handles);
    for (superpipe_peer_t *p; (p = LIST_FIRST(&superpipe.peers)) != NULL;) {
        LIST_REMOVE(p, of_all);
        free(p);
    }
    OBJ_DESTRUCT(&superpipe.requests);
}

/* MPI may be initialized again (sessions), so only the parameters are kept. */
static int component_finalize(void)
{
    if (!superpipe.open)
        return OMPI_SUCCESS;
    superpipe.open = false;
    if (superpipe.params.protocol != SUPERPIPE_AUTO) {
        onic_say_idle("pml_superpipe_protocol", protocol, superpipe_counters.messages,
                      SUPERPIPE_PROTOCOLS, (int)superpipe.params.protocol);
    }
    onic_print_counters(&mca_pml_superpipe_component.super.pmlm_version, superpipe.params.verbose);
    onic_transport_set_fns(ONIC_AM_SHORT, ONIC_TRANSPORT_NO_FNS);
    onic_transport_set_fns(ONIC_AM_PML, ONIC_TRANSPORT_NO_FNS);
    onic_pipeline_close();
    forget_peers();
    (void)onic_transport_close();
    free_all();
    superpipe =
        (superpipe_process_t){.params = superpipe.params, .table.links = superpipe.table.links};
    return OMPI_SUCCESS;
}

static mca_pml_base_module_t *component_init(int *priority, bool progress_threads, bool mpi_threads)
{
    (void)progress_threads;
    (void)mpi_threads;
    if (check_params() != OMPI_SUCCESS)
        return NULL;
    if (open_wire() != OMPI_SUCCESS)
        return NULL;
    superpipe_match_init(&superpipe.match);
    OBJ_CONSTRUCT(&superpipe.requests, opal_free_list_t);
    superpipe.open = true;
    if (opal_free_list_init(&superpipe.requests, sizeof(superpipe_request_t), opal_cache_line_size,
                            OBJ_CLASS(superpipe_request_t), 0, opal_cache_line_size, 64, -1, 64,
                            NULL, 0, NULL, NULL, NULL) != OPAL_SUCCESS) {
        (void)component_finalize();
        return NULL;
    }
    onic_transport_set_fns(ONIC_AM_PML,
                           &(onic_transport_fns_t){.am = superpipe_arrived,
                                                   .work[ONIC_LOCKED] = superpipe_stream_locked,
                                                   .work[ONIC_MPI] = superpipe_complete_all});
    onic_transport_set_fns(ONIC_AM_SHORT, &(onic_transport_fns_t){.am = superpipe_short_arrived});
    *priority = PRIORITY;
    return &module;
}

ONIC_EXPORT superpipe_component_t mca_pml_superpipe_component = {
    .super =
        {
            .pmlm_version =
                {
                    ONIC_PML_VERSION,
                    .mca_component_name = "superpipe",
                    MCA_BASE_MAKE_VERSION(component, OMPI_NIC_VERSION_MAJOR, OMPI_NIC_VERSION_MINOR,
                                          OMPI_NIC_VERSION_RELEASE),
                    .mca_open_component = component_open,
                    .mca_register_component_params = component_register,
                },
            .pmlm_data = {MCA_BASE_METADATA_PARAM_NONE},
            .pmlm_init = component_init,
            .pmlm_finalize = component_finalize,
        },
    .rows = superpipe_rows,
    .fetched = superpipe_fetched_locked,
};
