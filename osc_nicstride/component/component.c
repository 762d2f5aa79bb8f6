/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The component: version check, parameters, start and end of the process-wide state. */
#include <stdlib.h>

#include "osc_nicstride/component/setup.h"
#include "osc_nicstride/methods/methods.h"
#include "osc_nicstride/window/state.h"
#include "osc_nicstride/window/op.h"
#include "osc_nicstride/origin/origin.h"
#include "osc_nicstride/queue/operation.h"
#include "common/config.h"
#include "common/pipeline/pipeline.h"
#include "common/support/component.h"
#include "common/support/help.h"
#include "common/support/series.h"
#include "common/transport/ucx/adapters.h"
#include "common/transport/put.h"
#include "common/transport/transport.h"

#include "ompi/runtime/mpiruntime.h"
#include "opal/runtime/opal_progress.h"

ONIC_EXPORT extern nicstride_osc_t mca_osc_nicstride_component;

static int component_register(void)
{
    if (!onic_series_matches(&mca_osc_nicstride_component.super.osc_version))
        return OMPI_ERR_NOT_AVAILABLE;
    nicstride_params_register(&mca_osc_nicstride_component.super.osc_version);
    return OMPI_SUCCESS;
}

/** Tells the transport what UCX must provide: an adapter's operations, if there is an adapter or it
 *  is to be emulated. */
static void require_wire(const nicstride_params_t *p)
{
    const bool here = onic_rdma_here(ONIC_ADAPTERS, getenv("UCX_TLS"), getenv("UCX_NET_DEVICES"));

    onic_transport_require(
        &(onic_transport_config_t){.puts = here || p->method == NICSTRIDE_METHOD_RDMA});
}

static int component_open(void)
{
    int rc;

    nicstride_component.methods = nicstride_methods;
    onic_add_help_dir(&nicstride_counters, OMPI_NIC_HELP_DIR);
    rc = nicstride_params_check(&mca_osc_nicstride_component.super.osc_version);
    if (rc != OMPI_SUCCESS)
        return rc;
    /* This comes before anybody opens the transport; a point-to-point layer does that before this
     * component is initialized. The transport must use what was asked for, and must be able to put
     * into buffers of other hosts if an adapter can. */
    require_wire(&nicstride_component.params);
    if (nicstride_component.params.network_slots)
        onic_pipeline_announce();
    return nicstride_agreement_init();
}

static int component_close(void)
{
    nicstride_agreement_fini();
    return OMPI_SUCCESS;
}

static int component_init(bool progress_threads, bool mpi_threads)
{
    nicstride_component_t *c = &nicstride_component;

    (void)progress_threads;
    (void)mpi_threads;
    OBJ_CONSTRUCT(&c->windows, opal_hash_table_t);
    OBJ_CONSTRUCT(&nicstride_flattened.lock, opal_mutex_t);
    nicstride_flattened.keyval = MPI_KEYVAL_INVALID;
    if (opal_hash_table_init(&c->windows, 16) != OPAL_SUCCESS)
        return OMPI_ERR_OUT_OF_RESOURCE;
    return nicstride_ops_init();
}

static int component_query(ompi_win_t *win, void **base, size_t size, onic_disp_unit_t disp_unit,
                           ompi_communicator_t *comm, opal_info_t *info, int flavor)
{
    (void)win;
    (void)base;
    (void)size;
    (void)disp_unit;
    (void)info;
    if (flavor == MPI_WIN_FLAVOR_SHARED && ompi_group_have_remote_peers(comm->c_local_group))
        return OMPI_ERR_RMA_SHARED;
    if (!nicstride_all_agree(comm))
        return OMPI_ERR_NOT_SUPPORTED;
    return (int)nicstride_component.params.priority;
}

/** Closes the transport here and not in close: in Open MPI 4.1 the point-to-point layer still works
 *  here. If every process of the job was a member of some window, a barrier ensures that no peer
 *  still has messages under way to this process. Otherwise closing waits for late
 *  acknowledgements. */
static int component_finalize(void)
{
    nicstride_component_t *c = &nicstride_component;
    ompi_communicator_t *world = &ompi_mpi_comm_world.comm;
    bool closed = true;

    if (c->wire_open)
        onic_transport_flush();
    /* Nobody waits for dead processes. Open MPI 5 destroys MPI_COMM_WORLD before it comes here. */
    if (c->world_met && world->c_local_group != NULL && world->c_coll != NULL &&
        ompi_comm_size(world) > 1 && (!c->wire_open || !onic_transport_job_is_broken()))
        world->c_coll->coll_barrier(world, world->c_coll->coll_barrier_module);
    if (c->wire_open)
        closed = nicstride_close_wire();
    for (unsigned i = 0; i < NICSTRIDE_METHODS_MAX; i++)
        if (nicstride_methods[i] != NULL && nicstride_methods[i]->end != NULL)
            nicstride_methods[i]->end();
    nicstride_say_idle();
    onic_print_counters(&mca_osc_nicstride_component.super.osc_version,
                        c->params.show_plan && c->params.verbose == 0 ? 1 : (int)c->params.verbose);
    /* If the transport stays open, its peers still point at these, and what ends late looks for
     * windows. */
    if (closed) {
        onic_handles_fini(&c->ops);
        nicstride_processes_fini();
        OBJ_DESTRUCT(&c->windows);
    } else {
        (void)opal_hash_table_remove_all(&c->windows);
    }
    nicstride_ops_fini();
    OBJ_DESTRUCT(&nicstride_flattened.lock);
    return OMPI_SUCCESS;
}

ONIC_EXPORT nicstride_osc_t mca_osc_nicstride_component = {
    .super =
        {
            .osc_version =
                {
                    ONIC_OSC_VERSION,
                    .mca_component_name = "nicstride",
                    MCA_BASE_MAKE_VERSION(component, OMPI_NIC_VERSION_MAJOR, OMPI_NIC_VERSION_MINOR,
                                          OMPI_NIC_VERSION_RELEASE),
                    .mca_open_component = component_open,
                    .mca_close_component = component_close,
                    .mca_register_component_params = component_register,
                },
            .osc_data = {MCA_BASE_METADATA_PARAM_NONE},
            .osc_init = component_init,
            .osc_query = component_query,
            .osc_select = nicstride_win_select,
            .osc_finalize = component_finalize,
        },
    .methods = nicstride_methods,
};
