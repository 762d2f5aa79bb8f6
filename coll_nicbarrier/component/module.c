/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * The module of one communicator: which barrier goes where.
 */
#include "coll_nicbarrier/component/module.h"

#include "ompi/constants.h"

static const nicbarrier_params_t *params(void)
{
    return &mca_coll_nicbarrier_component.params;
}

/* ---- life ----------------------------------------------------------------------------------- */

static void construct(nicbarrier_module_t *m)
{
    m->queue = NULL;
    m->below_for_good = false;
    m->calls = 0;
    m->below = (nicbarrier_below_t){NULL, NULL, NULL, NULL, NULL, NULL};
}

static void release(mca_coll_base_module_t *module)
{
    if (module != NULL) {
        OBJ_RELEASE(module);
    }
}

static void destruct(nicbarrier_module_t *m)
{
    nicbarrier_queue_free(m->queue);
    release(m->below.barrier_module);
    release(m->below.ibarrier_module);
    release(m->below.barrier_init_module);
}

OBJ_CLASS_INSTANCE(nicbarrier_module_t, mca_coll_base_module_t, construct, destruct);

/* ---- barriers ------------------------------------------------------------------------------- */

/** The queue of the communicator, begun if this is the call to do that; NULL: the module below. */
static nicbarrier_queue_t *queue_for_call(nicbarrier_module_t *m, struct ompi_communicator_t *comm,
                                          int *rc_p)
{
    *rc_p = OMPI_SUCCESS;
    if (m->queue == NULL && !m->below_for_good && ++m->calls >= params()->setup_call) {
        m->queue = nicbarrier_queue_new(comm, rc_p);
        m->below_for_good = m->queue == NULL;
    }
    return m->queue;
}

static int below_barrier(nicbarrier_module_t *m, struct ompi_communicator_t *comm)
{
    nicbarrier_counters.below++;
    return m->below.barrier(comm, m->below.barrier_module);
}

/** The first call, or one after nonblocking ones. */
static int first_barrier(nicbarrier_module_t *m, struct ompi_communicator_t *comm)
{
    int rc;
    nicbarrier_queue_t *queue = queue_for_call(m, comm, &rc);

    if (rc != OMPI_SUCCESS) {
        return rc;
    }
    if (queue == NULL) {
        return below_barrier(m, comm);
    }
    if (!nicbarrier_queue_settle(queue)) {
        nicbarrier_queue_free(queue);
        m->queue = NULL;
        m->below_for_good = true;
        return below_barrier(m, comm);
    }
    return nicbarrier_queue_barrier(queue);
}

static int barrier(struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    nicbarrier_module_t *m = (nicbarrier_module_t *)module;

    if (m->queue == NULL || __atomic_load_n(&m->queue->team, __ATOMIC_ACQUIRE) == NULL) {
        return first_barrier(m, comm);
    }
    return nicbarrier_queue_barrier(m->queue);
}

static int ibarrier(struct ompi_communicator_t *comm, ompi_request_t **request,
                    mca_coll_base_module_t *module)
{
    nicbarrier_module_t *m = (nicbarrier_module_t *)module;
    int rc;
    nicbarrier_queue_t *queue = queue_for_call(m, comm, &rc);

    if (rc != OMPI_SUCCESS) {
        return rc;
    }
    if (queue == NULL) {
        nicbarrier_counters.below++;
        return m->below.ibarrier(comm, request, m->below.ibarrier_module);
    }
    nicbarrier_request_t *r = nicbarrier_request_new(comm, false);
    if (r == NULL) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    *request = &r->super;
    OBJ_RETAIN(comm);
    nicbarrier_queue_begin(queue, r);
    return OMPI_SUCCESS;
}

/**
 * A persistent barrier has a queue of its own, because those of a communicator may be started in a
 * different order on each rank. The standard lets this call wait for the others. Persistent
 * requests are made to be used again and again, so there is no waiting for the K-th.
 */
static int barrier_init(struct ompi_communicator_t *comm, ompi_info_t *info,
                        ompi_request_t **request, mca_coll_base_module_t *module)
{
    nicbarrier_module_t *m = (nicbarrier_module_t *)module;
    int rc = OMPI_SUCCESS;
    nicbarrier_queue_t *queue = NULL;

    /* One agreement at a time: messages of two would be taken for each other's. */
    if (m->queue != NULL) {
        (void)nicbarrier_queue_settle(m->queue);
    }
    if (!m->below_for_good) {
        queue = nicbarrier_queue_new(comm, &rc);
    }
    if (rc != OMPI_SUCCESS) {
        return rc;
    }
    if (queue == NULL || !nicbarrier_queue_settle(queue)) {
        nicbarrier_queue_free(queue);
        return m->below.barrier_init(comm, info, request, m->below.barrier_init_module);
    }
    nicbarrier_request_t *r = nicbarrier_request_new(comm, true);
    if (r == NULL) {
        nicbarrier_queue_free(queue);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    /* It may be started after its communicator has been freed by the user. */
    OBJ_RETAIN(comm);
    r->own = queue;
    *request = &r->super;
    return OMPI_SUCCESS;
}

/* ---- selection ------------------------------------------------------------------------------ */

static void keep(mca_coll_base_module_t *module)
{
    if (module != NULL) {
        OBJ_RETAIN(module);
    }
}

/** Modules are enabled from the lowest priority to the highest: what is there now is below. */
static int enable(mca_coll_base_module_t *module, struct ompi_communicator_t *comm)
{
    nicbarrier_module_t *m = (nicbarrier_module_t *)module;
    const mca_coll_base_comm_coll_t *c = comm->c_coll;

    m->below = (nicbarrier_below_t){c->coll_barrier,      c->coll_barrier_module,
                                    c->coll_ibarrier,     c->coll_ibarrier_module,
                                    c->coll_barrier_init, c->coll_barrier_init_module};
    keep(m->below.barrier_module);
    keep(m->below.ibarrier_module);
    keep(m->below.barrier_init_module);
    /* What has nothing below it cannot be taken over, because it could not be given back. */
    m->super.coll_barrier = c->coll_barrier != NULL ? barrier : NULL;
    m->super.coll_ibarrier = c->coll_ibarrier != NULL ? ibarrier : NULL;
    m->super.coll_barrier_init = c->coll_barrier_init != NULL ? barrier_init : NULL;
    return OMPI_SUCCESS;
}

mca_coll_base_module_t *nicbarrier_comm_query(struct ompi_communicator_t *comm, int *priority)
{
    nicbarrier_module_t *m;

    if (OMPI_COMM_IS_INTER(comm) || ompi_comm_size(comm) < 2) {
        return NULL;
    }
    /* What nobody has asked for is below other components on those ranks where it is in use. */
    if (nicbarrier_params_wanted() && !nicbarrier_settings_agree(comm)) {
        return NULL;
    }
    m = OBJ_NEW(nicbarrier_module_t);
    if (m == NULL) {
        return NULL;
    }
    *priority = params()->priority;
    m->super.coll_module_enable = enable;
    return &m->super;
}
