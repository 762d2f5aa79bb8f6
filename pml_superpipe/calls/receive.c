/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Receives. */
#include "pml_superpipe/calls/calls.h"

int superpipe_irecv_init(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                         ompi_communicator_t *comm, ompi_request_t **request)
{
    superpipe_request_t *r = superpipe_request_new(comm, datatype, buf, count, src, tag, false);

    if (r == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    OMPI_REQUEST_INIT(&r->super, true);
    *request = &r->super;
    return OMPI_SUCCESS;
}

/** Makes a receive request; NULL and an error code if that fails. */
static superpipe_request_t *begin(void *buf, size_t count, ompi_datatype_t *datatype, int src,
                                  int tag, ompi_communicator_t *comm, int *rc_p)
{
    superpipe_request_t *r;

    superpipe_watch(comm, src);
    r = superpipe_request_receive(comm, datatype, buf, count, src, tag, rc_p);
    if (r != NULL)
        superpipe_receive_start(r);
    return r;
}

int superpipe_irecv(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                    ompi_communicator_t *comm, ompi_request_t **request)
{
    int rc = OMPI_SUCCESS;
    superpipe_request_t *r = begin(buf, count, datatype, src, tag, comm, &rc);

    if (r != NULL)
        *request = &r->super;
    return rc;
}

/** One receive in this many makes progress even if its message may be there already, since other
 *  requests wait for progress. */
#define OTHERS_TURN 256

static bool is_others_turn(void)
{
    /* Concurrent threads may lose counts. */
    static unsigned receives;
    const unsigned n = __atomic_load_n(&receives, __ATOMIC_RELAXED) + 1;

    __atomic_store_n(&receives, n, __ATOMIC_RELAXED);
    return n % OTHERS_TURN == 0;
}

int superpipe_recv(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                   ompi_communicator_t *comm, ompi_status_public_t *status)
{
    int rc = OMPI_SUCCESS;
    superpipe_request_t *r = begin(buf, count, datatype, src, tag, comm, &rc);

    if (is_others_turn())
        opal_progress();
    return r != NULL ? superpipe_wait(r, status) : rc;
}
