/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The agreement: all ranks of a communicator find out together what carries their barriers, and
 * make it, or find that some rank cannot. By collectives of Open MPI's other components, since the
 * call in which it is done, a blocking barrier, may wait.
 *
 * 1. an allreduce: can every rank go on?
 * 2. an allgather: what each rank is and has (plan.h)
 * 3. each node makes a segment
 * 4. where several leaders are left, endpoints go to the partners of the schedule, and when all are
 *    connected a trial epoch runs; where it fails the next best engine is tried
 *
 * A rank that cannot go on takes part up to the next allreduce, so no rank waits for it.
 */
#pragma once

#include "common/ompi_compat.h"

#include "coll_nicbarrier/team/team.h"
#include "ompi/communicator/communicator.h"

/** What this rank asks for. Engine, ppn and the schedule are the same on all. */
typedef struct nicbarrier_agreement_config {
    int engine; /**< 1 and its number in nicbarrier_engines; 0: the best */
    int ppn;    /**< most processes of a node behind one leader; 0: all */
    nicbarrier_engine_settings_t engines;
    nicbarrier_team_config_t team;
    unsigned long long *trials; /**< counts trial epochs */
} nicbarrier_agreement_config_t;

/**
 * Collective, and waits. `able`: this rank can go on; else memory is exhausted. Returns the team,
 * or NULL where some rank could not, after one rank that could not has given the reason (once in
 * each process). The same on all ranks, unless *rc_p is an OMPI error: then the others may or may
 * not have a team, which fails if they have.
 */
nicbarrier_team_t *nicbarrier_agree(struct ompi_communicator_t *comm,
                                    const nicbarrier_agreement_config_t *config, bool able,
                                    int *rc_p);

/** Closes all engines that agreements have opened, behind a last meeting of the job. */
void nicbarrier_close_engines(void (*meet)(void));
