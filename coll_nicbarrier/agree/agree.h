/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The agreement: all ranks of a communicator decide together what carries their barriers, and make
 * it, or find that some rank cannot. It uses collectives of Open MPI's other components; it runs
 * within a blocking barrier, so it may wait.
 *
 * 1. an allreduce: can every rank go on?
 * 2. an allgather: what each rank is and has (plan.h)
 * 3. each node makes a segment
 * 4. where several leaders are left, endpoints go to the partners of the schedule, and when all are
 *    connected a trial epoch runs
 *
 * A rank that cannot go on takes part up to the next allreduce, so no rank waits for it.
 */
#pragma once

#include "common/ompi_compat.h"

#include "coll_nicbarrier/team/team.h"
#include "ompi/communicator/communicator.h"

/** What this rank asks for. Engine, ppn and the schedule are the same on all ranks. */
typedef struct nicbarrier_agreement_config {
    int engine; /**< 1 + its index in nicbarrier_engines; 0: the best */
    int ppn;    /**< most processes of a node behind one leader; 0: all */
    nicbarrier_engine_settings_t engines;
    nicbarrier_team_config_t team;
    unsigned long long *trials; /**< counts trial epochs */
} nicbarrier_agreement_config_t;

/**
 * Collective, and waits. `able`: false if this rank has run out of memory. Returns the team, or
 * NULL if some rank could not go on; one such rank reports the reason (once in each process). The
 * result is the same on all ranks, unless *rc_p is an OMPI error: then the others may have a team,
 * which will fail.
 */
nicbarrier_team_t *nicbarrier_agree(struct ompi_communicator_t *comm,
                                    const nicbarrier_agreement_config_t *config, bool able,
                                    int *rc_p);

/** Closes all engines that agreements have opened, after calling `meet`, which waits for the other
 *  processes of the job. */
void nicbarrier_close_engines(void (*meet)(void));
