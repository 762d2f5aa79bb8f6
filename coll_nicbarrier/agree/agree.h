/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The agreement: all ranks of a communicator find out together what carries their barriers, and
 * make it, or find that somebody cannot. Never waits, so that an MPI_Ibarrier can run it.
 *
 * 1. hello    each rank: where it runs, its node's segment, its settings
 * 2. mapped   each rank: could it map the segment of its node? Now the nodes are known, and the
 *             engine. Where somebody needs a segment with a name, 1 and 2 come once more
 * 3. lengths  leaders only, if there is a network part: the length of their endpoints
 * 4. endpoints   leaders only: the endpoints
 * 5. result   each rank: is everything ready? If all are, the team is used, otherwise it is
 * freed everywhere
 *
 * Each is an exchange (exchange.h), so the agreement is a barrier, too.
 */
#ifndef NICBARRIER_AGREE_H
#define NICBARRIER_AGREE_H

#include "common/ompi_compat.h"

#include "coll_nicbarrier/engines/team.h"
#include "ompi/communicator/communicator.h"

typedef struct nicbarrier_agreement nicbarrier_agreement_t;

/** Begins. At most one for each communicator at a time; all ranks begin theirs in the same order.
 *  NULL (and *rc_p) where it cannot: memory, or point-to-point fails. */
nicbarrier_agreement_t *nicbarrier_agreement_start(struct ompi_communicator_t *comm, int *rc_p);

/** 1 where it is over, 0 where it is not yet, or an OMPI error, after which it is over. One thread
 *  at a time; may be called from opal_progress. */
int nicbarrier_agreement_progress(nicbarrier_agreement_t *a);

/** Ends it, over or not: the team, or NULL where somebody could not, after the rank that could
 *  not has said why (once in each process). On all ranks the same. */
nicbarrier_team_t *nicbarrier_agreement_finish(nicbarrier_agreement_t *a);

#endif
