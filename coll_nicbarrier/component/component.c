/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The component: version check, parameters, start and end of the network engines. */
#include "coll_nicbarrier/component/state.h"

#include <sched.h>
#include <string.h>

#include "common/config.h"
#include "common/support/help.h"
#include "common/support/clock.h"
#include "common/support/component.h"
#include "common/support/modex.h"
#include "common/support/series.h"
#include "common/transport/transport.h"
#include "ompi/constants.h"
#include "ompi/runtime/params.h"
#include "opal/runtime/opal_progress.h"

ONIC_EXPORT extern mca_coll_base_component_t mca_coll_nicbarrier_component;

static int component_register(void)
{
    if (!onic_series_matches(&mca_coll_nicbarrier_component.collm_version))
        return OMPI_ERR_NOT_AVAILABLE;
    nicbarrier_params_register(&mca_coll_nicbarrier_component.collm_version);
    return OMPI_SUCCESS;
}

/** Reports a job in which this is the only component for collectives: it does barriers alone, so
 *  all others are missing, and Open MPI's own message does not say why. */
static void check_alone(void)
{
    const char *const *selected = NULL;
    const int i = mca_base_var_find("ompi", "coll", NULL, NULL);

    if (i >= 0 && mca_base_var_get_value(i, &selected, NULL, NULL) == OPAL_SUCCESS &&
        selected != NULL && *selected != NULL && strcmp(*selected, "nicbarrier") == 0) {
        onic_say_once("coll_nicbarrier does barriers alone: give --mca coll_nicbarrier_priority 90 "
                      "in place of --mca coll nicbarrier");
    }
}

static int component_open(void)
{
    onic_add_help_dir(&nicbarrier_counters, OMPI_NIC_HELP_DIR);
    if (nicbarrier_params_check(&mca_coll_nicbarrier_component.collm_version) != OMPI_SUCCESS)
        return OMPI_ERR_BAD_PARAM;
    check_alone();
    nicbarrier_settings_publish();
    if (nicbarrier_state.params.verbose > 0 && !nicbarrier_params_wanted()) {
        onic_say_once("coll_nicbarrier: not in use, because coll_nicbarrier_priority is not above "
                      "that of Open MPI's components: give 90");
    }
    return OMPI_SUCCESS;
}

static int component_init(bool progress_threads, bool mpi_threads)
{
    (void)progress_threads;
    (void)mpi_threads;
    return OMPI_SUCCESS;
}

/** Nanoseconds that a process waits for the others before it closes its engines. */
#define LEAVE_NSEC UINT64_C(5000000000)

/** The last messages of the last barriers may be lost, so engines answer until all processes of the
 *  job have come here. Usually the fence of MPI_Finalize has seen to that. */
static void meet(void)
{
    const uint64_t end = onic_now_nsec() + LEAVE_NSEC;
    const bool fenced = !nicbarrier_state.late && !ompi_async_mpi_finalize;

    if (fenced || !nicbarrier_params_wanted() || !onic_modex_fence_begin())
        return;
    while (!onic_modex_fence_ended() && onic_now_nsec() < end) {
        opal_progress();
        sched_yield();
    }
}

/** Called after all communicators have been freed. */
static int component_close(void)
{
    if (nicbarrier_state.progressing) {
        (void)opal_progress_unregister(nicbarrier_progress);
        nicbarrier_state.progressing = false;
    }
    if (nicbarrier_params_wanted()) {
        onic_print_counters(&mca_coll_nicbarrier_component.collm_version,
                            nicbarrier_state.params.verbose);
    }
    while (!LIST_EMPTY(&nicbarrier_state.all))
        nicbarrier_barriers_end(LIST_FIRST(&nicbarrier_state.all));
    meet();
    nicbarrier_close_engines();
    return OMPI_SUCCESS;
}

ONIC_EXPORT mca_coll_base_component_t mca_coll_nicbarrier_component = {
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
};
