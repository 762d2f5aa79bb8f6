/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The component: version check, parameters, start and end of the network engines.
 */
#include "coll_nicbarrier/component/module.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/config.h"
#include "common/support/help.h"
#include "common/support/series.h"
#include "common/wire/wire.h"
#include "ompi/constants.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/proc.h"

static int component_open(void);
static int component_close(void);
static int component_register(void);
static int component_init(bool progress_threads, bool mpi_threads);

/** Of coll/tuned: with a lower one this component has nonblocking barriers at most. */
#define PRIORITY_OF_STOCK 30

nicbarrier_counters_t nicbarrier_counters;

ONIC_EXPORT nicbarrier_component_t mca_coll_nicbarrier_component = {
    .super =
        {
            .collm_version =
                {
                    ONIC_COLL_VERSION,
                    .mca_component_name = "nicbarrier",
                    MCA_BASE_MAKE_VERSION(component, OMPI_NIC_VERSION_MAJOR, OMPI_NIC_VERSION_MINOR,
                                          OMPI_NIC_VERSION_RELEASE),
                    .mca_open_component = component_open,
                    .mca_close_component = component_close,
                    .mca_register_component_params = component_register,
                },
            .collm_data = {MCA_BASE_METADATA_PARAM_NONE},
            .collm_init_query = component_init,
            .collm_comm_query = nicbarrier_comm_query,
        },
    .lock = ATOMIC_FLAG_INIT,
};

static int component_register(void)
{
    if (!onic_series_matches("coll_nicbarrier")) {
        return OMPI_ERR_NOT_AVAILABLE;
    }
    nicbarrier_pvars_register(&mca_coll_nicbarrier_component.super.collm_version);
    return nicbarrier_params_register(&mca_coll_nicbarrier_component.super.collm_version);
}

void nicbarrier_announce(void)
{
    const nicbarrier_params_t *p = &mca_coll_nicbarrier_component.params;

    for (int kind = 0; nicbarrier_engines[kind] != NULL; kind++) {
        const nicbarrier_engine_t *engine = nicbarrier_engines[kind];
        if (engine->announce != NULL && (p->engine == kind || (p->engine == NICBARRIER_ANY_ENGINE &&
                                                               p->priority > PRIORITY_OF_STOCK))) {
            engine->announce(p->engine == kind);
        }
    }
}

static int component_open(void)
{
    onic_add_help_dir(&nicbarrier_counters, OMPI_NIC_HELP_DIR);
    if (nicbarrier_params_check() != OMPI_SUCCESS) {
        return OMPI_ERR_BAD_PARAM;
    }
    nicbarrier_settings_publish();
    nicbarrier_announce();
    return onic_ucx_load();
}

static int component_init(bool progress_threads, bool mpi_threads)
{
    (void)progress_threads;
    (void)mpi_threads;
    return OMPI_SUCCESS;
}

/** What a thread that waits for a team calls. */
static void progress(void)
{
    (void)opal_progress();
}

nicbarrier_agreement_config_t nicbarrier_agreement_config(void)
{
    const nicbarrier_params_t *p = &mca_coll_nicbarrier_component.params;
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);

    return (nicbarrier_agreement_config_t){
        .engine = p->engine,
        .ppn = p->ppn,
        .settings = p->fingerprint,
        .engines = p->settings,
        .team = {.spins_max = p->spin,
                 .skew = p->skew,
                 .oversubscribed = (long)opal_process_info.num_local_peers + 1 > processors,
                 .progress = progress},
        .trials = &nicbarrier_counters.trials,
    };
}

/**
 * Called when all communicators are gone, behind the fence in which all processes of the job have
 * said that they are in MPI_Finalize: nobody waits in a barrier any more.
 */
static int component_close(void)
{
    nicbarrier_component_t *c = &mca_coll_nicbarrier_component;

    if (c->progressing) {
        (void)opal_progress_unregister(nicbarrier_progress);
        c->progressing = false;
    }
    while (c->all != NULL) {
        nicbarrier_barriers_free(c->all);
    }
    nicbarrier_close_engines();
    return OMPI_SUCCESS;
}
