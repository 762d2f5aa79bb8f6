/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The component: selection, start and end. */
#include "pml_superpipe/calls/calls.h"

#include <stdlib.h>

#include "common/config.h"
#include "common/support/help.h"
#include "common/support/series.h"
#include "common/wire/wire.h"
#include "pml_superpipe/component/component.h"

#include "ompi/mca/pml/base/base.h"

ONIC_EXPORT extern mca_pml_base_component_t mca_pml_superpipe_component;

static mca_pml_base_module_t module = {
    .pml_add_procs = superpipe_add_procs,
    .pml_del_procs = superpipe_del_procs,
    .pml_enable = superpipe_enable,
    .pml_progress = superpipe_look,
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
    if (!onic_series_matches("pml_superpipe"))
        return OMPI_ERR_NOT_AVAILABLE;
    superpipe_pvars_register(&mca_pml_superpipe_component.pmlm_version);
    return superpipe_params_register(&mca_pml_superpipe_component.pmlm_version);
}

/** In all processes, whether they will use it or not. */
static int component_open(void)
{
    onic_add_help_dir(&superpipe_counters, OMPI_NIC_HELP_DIR);
    /* Before anybody opens the wire. */
    onic_mover_announce(superpipe.params.network_slots ? ONIC_MOVER_RMA_AUTO
                                                       : ONIC_MOVER_RMA_NEVER);
    return onic_ucx_load();
}

/** Wire and mover. The address of this process is published with the wire. */
static int open_wire(void)
{
    const onic_wire_config_t wire = {.single_copy = superpipe.params.single_copy,
                                     .tls = superpipe.params.tls,
                                     .queues = superpipe.params.queues,
                                     .tcp_seg_size = superpipe.params.tcp_segment,
                                     .credit = superpipe.pool.first,
                                     .publish = true};
    const onic_mover_config_t mover = {.area = superpipe.params.area,
                                       .slot = superpipe.params.slot};
    int rc = onic_wire_open(&wire);

    if (rc != OMPI_SUCCESS)
        return rc;
    rc = onic_mover_open(&mover);
    if (rc != OMPI_SUCCESS)
        (void)onic_wire_close();
    return rc;
}

/** Another component may keep the wire open, and its records of peers. */
static void forget_peers(void)
{
    onic_wire_lock();
    for (superpipe_peer_t *p = superpipe.peers; p != NULL; p = p->next) {
        superpipe_early_drop_locked(p);
        *onic_peer_slot(p->wire, ONIC_AM_PML) = NULL;
    }
    onic_wire_unlock();
}

static void free_all(void)
{
    /* Those of a communicator that was never made. */
    for (superpipe_message_t *m = superpipe.comms.parked.head, *next; m != NULL; m = next) {
        next = m->next;
        free(m);
    }
    free(superpipe.comms.known);
    onic_handles_fini(&superpipe.handles);
    for (superpipe_peer_t *p = superpipe.peers, *next; p != NULL; p = next) {
        next = p->next;
        free(p->learned);
        free(p);
    }
    free(superpipe.numbered);
    OBJ_DESTRUCT(&superpipe.requests);
}

/* MPI may be initialized again (sessions): nothing but the parameters stays. */
static int component_finalize(void)
{
    if (!superpipe.open)
        return OMPI_SUCCESS;
    superpipe.open = false;
    onic_wire_set_am_fn(ONIC_AM_SHORT, NULL);
    onic_wire_set_named_fn(ONIC_AM_PML, NULL);
    onic_wire_set_deferred_fn(ONIC_AM_PML, NULL);
    onic_wire_set_forget_fn(ONIC_AM_PML, NULL);
    onic_wire_set_mpi_fn(ONIC_AM_PML, NULL);
    onic_mover_close();
    forget_peers();
    (void)onic_wire_close();
    free_all();
    superpipe = (superpipe_process_t){.params = superpipe.params, .links = superpipe.links};
    return OMPI_SUCCESS;
}

static mca_pml_base_module_t *component_init(int *priority, bool progress_threads, bool mpi_threads)
{
    (void)progress_threads;
    (void)mpi_threads;
    if (superpipe_params_check() != OMPI_SUCCESS)
        return NULL;
    superpipe_pool_init(&superpipe.pool, superpipe.params.memory, (uint64_t)ompi_proc_world_size());
    if (open_wire() != OMPI_SUCCESS)
        return NULL;
    superpipe.done_tail = &superpipe.done_head;
    superpipe.copy_tail = &superpipe.copy_head;
    OBJ_CONSTRUCT(&superpipe.requests, opal_free_list_t);
    superpipe.open = true;
    onic_wire_set_mpi_fn(ONIC_AM_PML, superpipe_complete_all);
    onic_wire_set_deferred_fn(ONIC_AM_PML, superpipe_stream_locked);
    onic_wire_set_forget_fn(ONIC_AM_PML, superpipe_forget);
    if (opal_free_list_init(&superpipe.requests, sizeof(superpipe_request_t), opal_cache_line_size,
                            OBJ_CLASS(superpipe_request_t), 0, opal_cache_line_size, 64, -1, 64,
                            NULL, 0, NULL, NULL, NULL) != OPAL_SUCCESS ||
        onic_wire_set_named_fn(ONIC_AM_PML, superpipe_arrived) != OMPI_SUCCESS ||
        onic_wire_set_am_fn(ONIC_AM_SHORT, superpipe_short_arrived) != OMPI_SUCCESS) {
        (void)component_finalize();
        return NULL;
    }
    *priority = SUPERPIPE_PRIORITY;
    return &module;
}

ONIC_EXPORT mca_pml_base_component_t mca_pml_superpipe_component = {
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
};
