/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file What the parts of the agreement share: agree.c has the whole, network.c what leaders do.
 *  Their functions return OMPI_SUCCESS, or the error of a message that has failed. What this rank
 *  cannot do is no error, but takes part in the next allreduce. All are for the thread that runs
 *  the agreement. */
#ifndef NICBARRIER_AGREEMENT_H
#define NICBARRIER_AGREEMENT_H

#include "coll_nicbarrier/agree/agree.h"
#include "coll_nicbarrier/agree/plan.h"
#include "common/node/node.h"

/** A leader's buffers: its endpoint and those of its partners. Never freed where a message fails,
 *  since others may be under way. */
typedef struct nicbarrier_exchange nicbarrier_exchange_t;

typedef struct nicbarrier_agreement {
    struct ompi_communicator_t *comm;
    const nicbarrier_agreement_config_t *config;
    nicbarrier_options_t options;
    nicbarrier_facts_t mine;
    nicbarrier_facts_t *facts; /**< of all */
    int32_t *room;             /**< of the plan */
    nicbarrier_plan_t plan;
    nicbarrier_team_t *team;
    nicbarrier_exchange_t *exchange; /**< a leader's among several */
    bool connected;                  /**< its engine is */
    int engine;                      /**< that has been agreed on, or NICBARRIER_ANY_ENGINE */
    nicbarrier_reason_t why;
    int reporter; /**< the rank that is to give the reason why nothing came of it */
} nicbarrier_agreement_t;

/* ---- network.c ------------------------------------------------------------------------------ */

/** Opens an engine, once for each process. 0, or -1 and the reason. */
int nicbarrier_open_engine(int engine, const nicbarrier_engine_settings_t *settings,
                           nicbarrier_reason_t *why);

/** All ranks: an allreduce of *value_p, which becomes the least of all; a->reporter is the first
 *  rank with a reason. */
int nicbarrier_least(nicbarrier_agreement_t *a, int *value_p);

/** A leader among several: makes its buffers. False where memory is exhausted. */
bool nicbarrier_make_exchange(nicbarrier_agreement_t *a);

/** All ranks: the part between several leaders. Sets a->engine. */
int nicbarrier_set_up_network(nicbarrier_agreement_t *a);

#endif
