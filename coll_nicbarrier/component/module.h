/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The modules of the component (one for each communicator), and which settings they have.
 *
 * A communicator's barriers go to the module below until the K-th of them (parameter setup_call).
 * The first blocking one from that on runs the agreement (agree.h), by collectives of the modules
 * below, which all ranks call there in the same order. Nonblocking ones that have begun below end
 * there. What was agreed holds until the communicator is freed: a team (team.h) carries its
 * barriers, or the module below does. An agreement that ends in an error here fails all barriers of
 * the communicator, since others may use what it was to make.
 */
#ifndef NICBARRIER_MODULE_H
#define NICBARRIER_MODULE_H

#include "coll_nicbarrier/component/barriers.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/coll.h"

/** Publishes the settings of this process, and has the engines that may be chosen register with
 *  common/ before other components start; from the component's open function. */
void nicbarrier_settings_publish(void);
/** Whether this component may do the barriers of a communicator: the same answer on all its ranks.
 *  Looks up other processes for MPI_COMM_WORLD, never for others. Any MPI thread. */
bool nicbarrier_settings_agree(struct ompi_communicator_t *comm);

/** What the module below would do. */
typedef struct nicbarrier_below {
    mca_coll_base_module_barrier_fn_t barrier;
    mca_coll_base_module_t *barrier_module;
    mca_coll_base_module_ibarrier_fn_t ibarrier;
    mca_coll_base_module_t *ibarrier_module;
    mca_coll_base_module_barrier_init_fn_t barrier_init;
    mca_coll_base_module_t *barrier_init_module;
} nicbarrier_below_t;

typedef struct nicbarrier_module {
    mca_coll_base_module_t super;
    nicbarrier_barriers_t *barriers; /**< NULL where there is no team */
    bool below_for_good;             /**< no other agreement is begun; nor within one */
    int failure;                     /**< the code that the agreement has ended with here */
    int calls;                       /**< up to the one that is to set up the engine */
    nicbarrier_below_t below;
} nicbarrier_module_t;

OBJ_CLASS_DECLARATION(nicbarrier_module_t);

/** The module for a communicator, and the component's priority; NULL: none. */
mca_coll_base_module_t *nicbarrier_comm_query(struct ompi_communicator_t *comm, int *priority);

#endif
