/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The agreement: all ranks of a communicator find out together what carries their barriers, and
 * make it, or find that somebody cannot. Never waits, so that an MPI_Ibarrier can run it. How they
 * do that stands in protocol.h; this runs it over Open MPI's point-to-point messages.
 *
 * Memory is taken at the start alone, but for endpoints and a segment; where there is none, the
 * rank takes part with what the process keeps for that, and says that it cannot go on.
 */
#ifndef NICBARRIER_AGREE_H
#define NICBARRIER_AGREE_H

#include "common/ompi_compat.h"

#include "coll_nicbarrier/team/team.h"
#include "ompi/communicator/communicator.h"

typedef struct nicbarrier_agreement nicbarrier_agreement_t;

/** What this rank wants. Of these, engine, ppn, settings and the schedule are the same on all. */
typedef struct nicbarrier_agreement_config {
    int engine;        /**< its number in nicbarrier_engines, or -1: that which does best */
    int ppn;           /**< most processes of a node behind one leader; 0: all */
    uint64_t settings; /**< a hash of what must be the same on all ranks */
    uint32_t number;   /**< of this agreement on its communicator, from 1: the same on all ranks */
    nicbarrier_engine_settings_t engines;
    nicbarrier_team_config_t team;
    unsigned long long *trials; /**< counts trial epochs */
} nicbarrier_agreement_config_t;

/**
 * Begins. At most one for each communicator at a time; all ranks begin theirs in the same order.
 * Opens the network engines that this rank may need, so it is to be called within MPI calls, with
 * no lock held, and never within opal_progress. NULL (and *rc_p) where memory is exhausted and
 * another agreement has what was kept for that.
 */
nicbarrier_agreement_t *nicbarrier_agreement_start(struct ompi_communicator_t *comm,
                                                   const nicbarrier_agreement_config_t *config,
                                                   int *rc_p);

/** 1 where it is over, 0 where it is not yet, or an OMPI error, after which it is over. One thread
 *  at a time, of all agreements; may be called from opal_progress. */
int nicbarrier_agreement_progress(nicbarrier_agreement_t *a);

/** Ends it, over or not: the team, or NULL where somebody could not, after the rank that could
 *  not has said why (once in each process). The same on all ranks, unless
 *  nicbarrier_agreement_progress has returned an error. */
nicbarrier_team_t *nicbarrier_agreement_finish(nicbarrier_agreement_t *a);

#endif
