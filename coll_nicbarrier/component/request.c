/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Requests: of nonblocking barriers, and persistent ones.
 */
#include "coll_nicbarrier/component/module.h"

#include "ompi/constants.h"

static void construct(nicbarrier_request_t *r)
{
    r->item = (nicbarrier_item_t){NULL, 0, 0};
    r->own = NULL;
    r->comm = NULL;
    r->holders = 0;
    nicbarrier_add_live(&nicbarrier_counters.live_requests, 1);
}

static void destruct(nicbarrier_request_t *r)
{
    (void)r;
    nicbarrier_add_live(&nicbarrier_counters.live_requests, -1);
}

OBJ_CLASS_INSTANCE(nicbarrier_request_t, ompi_request_t, construct, destruct);

static void give_back(nicbarrier_request_t *r)
{
    struct ompi_communicator_t *comm = r->super.req_persistent ? r->comm : NULL;

    nicbarrier_barriers_free(r->own);
    OMPI_REQUEST_FINI(&r->super);
    OBJ_RELEASE(r);
    if (comm != NULL) {
        OBJ_RELEASE(comm);
    }
}

/** Who completes a request still reads it when its waiter may go on and free it, so the last of
 *  both gives it back. */
static void let_go(nicbarrier_request_t *r)
{
    if (atomic_fetch_sub(&r->holders, 1) == 1) {
        give_back(r);
    }
}

static int free_request(ompi_request_t **request_p)
{
    nicbarrier_request_t *r = (nicbarrier_request_t *)*request_p;

    *request_p = MPI_REQUEST_NULL;
    let_go(r);
    return OMPI_SUCCESS;
}

static int cancel(ompi_request_t *request, int flag)
{
    (void)request;
    (void)flag;
    return MPI_ERR_REQUEST;
}

static int start(size_t count, ompi_request_t **requests)
{
    for (size_t i = 0; i < count; i++) {
        nicbarrier_request_t *r = (nicbarrier_request_t *)requests[i];

        if (r->super.req_state == OMPI_REQUEST_ACTIVE) {
            return MPI_ERR_REQUEST;
        }
        r->super.req_state = OMPI_REQUEST_ACTIVE;
        r->super.req_complete = REQUEST_PENDING;
        r->super.req_status.MPI_ERROR = OMPI_SUCCESS;
        OBJ_RETAIN(r->comm);
        atomic_fetch_add(&r->holders, 1);
        nicbarrier_barriers_begin(r->own, r);
    }
    return OMPI_SUCCESS;
}

nicbarrier_request_t *nicbarrier_request_new(struct ompi_communicator_t *comm, bool persistent)
{
    nicbarrier_request_t *r = OBJ_NEW(nicbarrier_request_t);

    if (r == NULL) {
        return NULL;
    }
    OMPI_REQUEST_INIT(&r->super, persistent);
    r->super.req_state = persistent ? OMPI_REQUEST_INACTIVE : OMPI_REQUEST_ACTIVE;
    r->super.req_type = OMPI_REQUEST_COLL;
    r->super.req_status._cancelled = 0;
    r->super.req_status._ucount = 0;
    r->super.req_status.MPI_ERROR = OMPI_SUCCESS;
    r->super.req_mpi_object.comm = comm;
    r->super.req_start = start;
    r->super.req_free = free_request;
    r->super.req_cancel = cancel;
    r->comm = comm;
    r->holders = persistent ? 1 : 2;
    return r;
}

void nicbarrier_request_done(nicbarrier_request_t *r)
{
    struct ompi_communicator_t *comm = r->comm;

    ompi_request_complete(&r->super, true);
    let_go(r);
    /* Maybe the last that kept it. */
    OBJ_RELEASE(comm);
}
