/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Have all ranks the same settings? Found out by Open MPI's exchange during MPI_Init, before any
 * barrier: ranks that do not agree on which call sets up the engine, or on which component does the
 * barriers, would wait for each other in different things and for ever. Who finds that another rank
 * of a communicator differs, or has no such component, stays out of it, and as all compare with
 * all, all do.
 */
#include "coll_nicbarrier/component/module.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/config.h"
#include "common/help.h"
#include "common/modex.h"
#include "ompi/group/group.h"
#include "opal/util/proc.h"

#define KEY      "ompi-nic.coll.nicbarrier"
#define TEXT_MAX 320

static char mine[TEXT_MAX];
/** All processes of my job have the same: the others need not be asked again. */
static atomic_bool job_agrees;

void nicbarrier_settings_publish(void)
{
    int n = snprintf(mine, sizeof(mine), "version %s", OMPI_NIC_VERSION);
    nicbarrier_params_describe(mine + n, sizeof(mine) - (size_t)n);
    /* Where there is no exchange there are no others either; if there are, they will decline. */
    (void)onic_modex_put(KEY, mine);
}

static bool has_mine(struct ompi_communicator_t *comm, int rank, char theirs[TEXT_MAX])
{
    /* Of most processes of a large job Open MPI has nothing but the name until it is told more. */
    const opal_process_name_t name = ompi_group_get_proc_name(comm->c_local_group, rank);
    return (atomic_load(&job_agrees) && name.jobid == OPAL_PROC_MY_NAME.jobid) ||
           rank == ompi_comm_rank(comm) ||
           (onic_modex_get(name, KEY, theirs, TEXT_MAX) && strcmp(theirs, mine) == 0);
}

/** Of those that have the same settings the first rank speaks; the others have heard it then, also
 *  for later communicators. */
static void say_differs(struct ompi_communicator_t *comm, int rank, const char *theirs)
{
    static atomic_bool said;
    const char *other =
        opal_get_proc_hostname(&ompi_group_peer_lookup(comm->c_local_group, rank)->super);
    char host[256] = "?", ignored[TEXT_MAX];
    bool first = !atomic_exchange(&said, true);

    for (int i = 0; first && i < ompi_comm_rank(comm); i++) {
        first = !has_mine(comm, i, ignored);
    }
    if (!first) {
        return;
    }
    (void)gethostname(host, sizeof(host) - 1);
    onic_help("help-coll-nicbarrier.txt", "peer-differs", comm->c_name, ompi_comm_rank(comm), host,
              mine, rank, other != NULL ? other : "(unknown)",
              theirs[0] != '\0' ? theirs : "none, or not this component");
}

bool nicbarrier_settings_agree(struct ompi_communicator_t *comm)
{
    char theirs[TEXT_MAX];

    for (int i = 0; i < ompi_comm_size(comm); i++) {
        if (!has_mine(comm, i, theirs)) {
            say_differs(comm, i, theirs);
            return false;
        }
    }
    if (comm == MPI_COMM_WORLD) {
        atomic_store(&job_agrees, true);
    }
    return true;
}
