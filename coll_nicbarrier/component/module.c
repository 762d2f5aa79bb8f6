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
    m->barriers = NULL;
    m->below_for_good = false;
    m->calls = 0;
    m->agreements = 0;
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
    nicbarrier_barriers_free(m->barriers);
    release(m->below.barrier_module);
    release(m->below.ibarrier_module);
    release(m->below.barrier_init_module);
}

OBJ_CLASS_INSTANCE(nicbarrier_module_t, mca_coll_base_module_t, construct, destruct);

/* ---- barriers ------------------------------------------------------------------------------- */

/** Those of the communicator, begun if this is the call to do that; NULL: the module below,
 *  or an error in *rc_p. */
static nicbarrier_barriers_t *ours_for_call(nicbarrier_module_t *m,
                                            struct ompi_communicator_t *comm, int *rc_p)
{
    *rc_p = OMPI_SUCCESS;
    if (m->below_for_good) {
        return NULL;
    }
    if (m->barriers == NULL && ++m->calls >= params()->setup_call) {
        m->barriers = nicbarrier_barriers_new(comm, ++m->agreements, rc_p);
        m->below_for_good = m->barriers == NULL;
    }
    return m->barriers;
}

static int below_barrier(nicbarrier_module_t *m, struct ompi_communicator_t *comm)
{
    nicbarrier_add(&nicbarrier_counters.below, 1);
    return m->below.barrier(comm, m->below.barrier_module);
}

/** The first call, or one after nonblocking ones. What is under way by messages goes on. */
static int first_barrier(nicbarrier_module_t *m, struct ompi_communicator_t *comm)
{
    int rc;
    nicbarrier_barriers_t *b = ours_for_call(m, comm, &rc);

    if (rc != OMPI_SUCCESS) {
        return rc;
    }
    if (b != NULL && !nicbarrier_barriers_settle(b, &rc)) {
        if (rc != OMPI_SUCCESS) {
            return rc;
        }
        m->below_for_good = true;
        b = NULL;
    }
    return b != NULL ? nicbarrier_barriers_wait(b) : below_barrier(m, comm);
}

static int barrier(struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    nicbarrier_module_t *m = (nicbarrier_module_t *)module;

    if (m->barriers == NULL || !atomic_load_explicit(&m->barriers->ready, memory_order_acquire)) {
        return first_barrier(m, comm);
    }
    return nicbarrier_barriers_wait(m->barriers);
}

static int ibarrier(struct ompi_communicator_t *comm, ompi_request_t **request,
                    mca_coll_base_module_t *module)
{
    nicbarrier_module_t *m = (nicbarrier_module_t *)module;
    int rc;
    nicbarrier_barriers_t *b = ours_for_call(m, comm, &rc);

    if (rc != OMPI_SUCCESS) {
        return rc;
    }
    if (b == NULL) {
        nicbarrier_add(&nicbarrier_counters.below, 1);
        return m->below.ibarrier(comm, request, m->below.ibarrier_module);
    }
    nicbarrier_request_t *r = nicbarrier_request_new(comm, false);
    if (r == NULL) {
        /* The others count it. */
        nicbarrier_barriers_enter(b);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    *request = &r->super;
    OBJ_RETAIN(comm);
    nicbarrier_barriers_begin(b, r);
    return OMPI_SUCCESS;
}

/** Those of a persistent request, settled; NULL: the module below, for all, or an error in *rc_p.
 */
static nicbarrier_barriers_t *ours_for_persistent(nicbarrier_module_t *m,
                                                  struct ompi_communicator_t *comm, int *rc_p)
{
    *rc_p = OMPI_SUCCESS;
    /* One agreement at a time: messages of two would be taken for each other's. And what one has
     * found holds for the next, which would ask the same. */
    if (m->barriers != NULL && !nicbarrier_barriers_settle(m->barriers, rc_p)) {
        if (*rc_p != OMPI_SUCCESS) {
            return NULL;
        }
        m->below_for_good = true;
    }
    nicbarrier_barriers_t *b =
        m->below_for_good ? NULL : nicbarrier_barriers_new(comm, ++m->agreements, rc_p);
    if (b != NULL && !nicbarrier_barriers_settle(b, rc_p)) {
        nicbarrier_barriers_free(b);
        b = NULL;
    }
    return b;
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
    int rc;
    nicbarrier_barriers_t *b = ours_for_persistent(m, comm, &rc);

    if (rc != OMPI_SUCCESS) {
        return rc;
    }
    if (b == NULL) {
        return m->below.barrier_init(comm, info, request, m->below.barrier_init_module);
    }
    nicbarrier_request_t *r = nicbarrier_request_new(comm, true);
    if (r == NULL) {
        nicbarrier_barriers_free(b);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    /* It may be started after its communicator has been freed by the user. */
    OBJ_RETAIN(comm);
    r->own = b;
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

    /* First of all, since it also gets to know what later communicators depend on. */
    if (!nicbarrier_settings_agree(comm) || OMPI_COMM_IS_INTER(comm) || ompi_comm_size(comm) < 2) {
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
