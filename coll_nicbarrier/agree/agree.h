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
 * 1. an allgather: what each rank is and has (plan.h); from it all know the engine
 * 2. each node makes a segment
 * 3. where several leaders are left, they open the engine, endpoints go to the partners of the
 *    schedule, and when all are connected a trial epoch runs: it is no barrier of the user, but
 *    shows that messages of the engine get through
 *
 * Behind each part but the first an allreduce asks whether every rank can go on. A rank that cannot
 * takes part up to there, so no rank waits for it. Where a rank has no memory the job ends.
 */
#pragma once

#include "common/ompi_compat.h"

#include "coll_nicbarrier/team/team.h"
#include "ompi/communicator/communicator.h"

/** What this rank asks for. Engine, ppn and schedule are the same on all ranks. */
typedef struct nicbarrier_agreement_config {
    int engine;   /**< 1 + its index in nicbarrier_engines; 0: the best */
    int ppn;      /**< most processes of a node behind one leader; 0: all */
    int polls;    /**< waiting.h */
    int schedule; /**< nicbarrier_schedule_kind_t */
    bool thread;  /**< engines may have helper threads */
} nicbarrier_agreement_config_t;

/** Counts of this process. */
typedef struct nicbarrier_agreements {
    unsigned long long begun, declined;
    unsigned long long trials; /**< trial epochs */
} nicbarrier_agreements_t;

extern nicbarrier_agreements_t nicbarrier_agreements;

/** The epoch of the trial; barriers are numbered from the next. */
#define NICBARRIER_TRIAL_EPOCH 1

/**
 * Collective, and waits. Returns the team, or NULL if some rank could not go on; one such rank
 * reports the reason (once in each process). The result is the same on all ranks, unless *rc_p is
 * an OMPI error: then the others may have a team, which will fail.
 */
nicbarrier_team_t *nicbarrier_agree(struct ompi_communicator_t *comm,
                                    const nicbarrier_agreement_config_t *config, int *rc_p);

/** Closes all engines that agreements have opened. */
void nicbarrier_close_engines(void);
