/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The module of one communicator: which barrier goes where. */
#include "coll_nicbarrier/component/state.h"

#include "ompi/constants.h"
#include "ompi/runtime/mpiruntime.h"

/** The functions of the module below. */
typedef struct nicbarrier_below {
    mca_coll_base_module_barrier_fn_t barrier;
    mca_coll_base_module_t *barrier_module;
    mca_coll_base_module_ibarrier_fn_t ibarrier;
    mca_coll_base_module_t *ibarrier_module;
} nicbarrier_below_t;

typedef struct nicbarrier_module {
    mca_coll_base_module_t super;
    nicbarrier_barriers_t barriers;
    int failure; /**< the code with which the agreement has failed here */
    int calls;   /**< up to the one that sets up the engine; one more behind the agreement */
    nicbarrier_below_t below;
} nicbarrier_module_t;

/* ---- life ----------------------------------------------------------------------------------- */

static void construct(nicbarrier_module_t *m)
{
    m->barriers.team = NULL;
    m->failure = OMPI_SUCCESS;
    m->calls = 0;
    m->below = (nicbarrier_below_t){NULL, NULL, NULL, NULL};
}

static void release(mca_coll_base_module_t *module)
{
    if (module != NULL)
        OBJ_RELEASE(module);
}

static void destruct(nicbarrier_module_t *m)
{
    nicbarrier_barriers_end(&m->barriers);
    release(m->below.barrier_module);
    release(m->below.ibarrier_module);
}

OBJ_CLASS_INSTANCE(nicbarrier_module_t, mca_coll_base_module_t, construct, destruct);

/* ---- barriers ------------------------------------------------------------------------------- */

/** Agrees on a team for the communicator. If there is none, the module below serves for good, since
 *  another agreement would ask the same. */
static void set_up(nicbarrier_module_t *m, struct ompi_communicator_t *comm)
{
    /* First, since collectives of other modules may call barriers during the agreement. */
    m->calls++;
    const int rc = nicbarrier_barriers_set_up(&m->barriers, comm);
    if (rc != OMPI_SUCCESS)
        m->failure = rc > OMPI_SUCCESS ? rc : MPI_ERR_OTHER;
}

/** For a call that no team carries: the error that it returns, or OMPI_SUCCESS if the module below
 *  is to do it. */
static int failure_of(const nicbarrier_module_t *m, struct ompi_communicator_t *comm)
{
    const bool failed = m->failure != OMPI_SUCCESS;

    return failed && ONIC_REVOKED(comm) ? ONIC_ERR_REVOKED : m->failure;
}

/** Counts a call that no team carries. @return true if the agreement is due */
static bool is_due(nicbarrier_module_t *m)
{
    m->calls += m->calls < nicbarrier_state.params.setup_call;
    return m->calls == nicbarrier_state.params.setup_call;
}

/** A barrier while there is no team. */
static int barrier_without(nicbarrier_module_t *m, struct ompi_communicator_t *comm)
{
    if (is_due(m))
        set_up(m, comm);
    if (m->barriers.team != NULL)
        return nicbarrier_barriers_wait(&m->barriers);
    const int rc = failure_of(m, comm);
    if (rc != OMPI_SUCCESS)
        return rc;
    onic_count(&nicbarrier_counters.below, 1);
    return m->below.barrier(comm, m->below.barrier_module);
}

static int barrier(struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    nicbarrier_module_t *m = (nicbarrier_module_t *)module;

    return m->barriers.team != NULL ? nicbarrier_barriers_wait(&m->barriers)
                                    : barrier_without(m, comm);
}

static int ibarrier_without(nicbarrier_module_t *m, struct ompi_communicator_t *comm,
                            ompi_request_t **request)
{
    const int rc = failure_of(m, comm);

    if (rc != OMPI_SUCCESS)
        return rc;
    (void)is_due(m);
    onic_count(&nicbarrier_counters.below, 1);
    return m->below.ibarrier(comm, request, m->below.ibarrier_module);
}

static int ibarrier(struct ompi_communicator_t *comm, ompi_request_t **request,
                    mca_coll_base_module_t *module)
{
    nicbarrier_module_t *m = (nicbarrier_module_t *)module;

    return m->barriers.team != NULL ? nicbarrier_barriers_begin(&m->barriers, request)
                                    : ibarrier_without(m, comm, request);
}

/* ---- selection ------------------------------------------------------------------------------ */

static void keep(mca_coll_base_module_t *module)
{
    if (module != NULL)
        OBJ_RETAIN(module);
}

/** Modules are enabled from the lowest priority to the highest, so the functions installed now are
 *  those of the module below. */
static int enable(mca_coll_base_module_t *module, struct ompi_communicator_t *comm)
{
    nicbarrier_module_t *m = (nicbarrier_module_t *)module;
    const mca_coll_base_comm_coll_t *c = comm->c_coll;

    m->below = (nicbarrier_below_t){c->coll_barrier, c->coll_barrier_module, c->coll_ibarrier,
                                    c->coll_ibarrier_module};
    keep(m->below.barrier_module);
    keep(m->below.ibarrier_module);
    /* A function with nothing below it is left alone, because a call could not be passed on. */
    m->super.coll_barrier = c->coll_barrier != NULL ? barrier : NULL;
    m->super.coll_ibarrier = c->coll_ibarrier != NULL ? ibarrier : NULL;
    if (m->super.coll_barrier != NULL)
        ONIC_COLL_INSTALL(comm, barrier, barrier, module);
    if (m->super.coll_ibarrier != NULL)
        ONIC_COLL_INSTALL(comm, ibarrier, ibarrier, module);
    return OMPI_SUCCESS;
}

#if ONIC_COLL_INSTALLS
/** Modules are disabled from the highest priority to the lowest. */
static int disable(mca_coll_base_module_t *module, struct ompi_communicator_t *comm)
{
    const nicbarrier_below_t *b = &((nicbarrier_module_t *)module)->below;
    const mca_coll_base_comm_coll_t *c = comm->c_coll;

    if (c->coll_barrier_module == module)
        ONIC_COLL_INSTALL(comm, barrier, b->barrier, b->barrier_module);
    if (c->coll_ibarrier_module == module)
        ONIC_COLL_INSTALL(comm, ibarrier, b->ibarrier, b->ibarrier_module);
    return OMPI_SUCCESS;
}
#endif

mca_coll_base_module_t *nicbarrier_comm_query(struct ompi_communicator_t *comm, int *priority)
{
    nicbarrier_module_t *m;

    /* This check comes first, since the answer for MPI_COMM_WORLD holds for all other
     * communicators. */
    if (!nicbarrier_settings_agree(comm) || OMPI_COMM_IS_INTER(comm) || ompi_comm_size(comm) < 2)
        return NULL;
    m = OBJ_NEW(nicbarrier_module_t);
    if (m == NULL)
        return NULL;
    *priority = nicbarrier_state.params.priority;
    m->super.coll_module_enable = enable;
#if ONIC_COLL_INSTALLS
    m->super.coll_module_disable = disable;
#endif
    return &m->super;
}
