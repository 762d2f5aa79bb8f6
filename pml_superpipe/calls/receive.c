/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Receives. */
#include "pml_superpipe/calls/calls.h"

int superpipe_receive_again(superpipe_request_t *r)
{
    int rc;

    superpipe_watch(r->comm, r->rank);
    rc = superpipe_describe(r);
    if (rc != OMPI_SUCCESS)
        return rc;
    superpipe_request_begin(r);
    superpipe_receive_start(r);
    return OMPI_SUCCESS;
}

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

static int begin(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                 ompi_communicator_t *comm, superpipe_request_t **request_p)
{
    superpipe_request_t *r = superpipe_request_new(comm, datatype, buf, count, src, tag, false);
    int rc;

    if (r == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    rc = superpipe_receive_again(r);
    if (rc != OMPI_SUCCESS)
        superpipe_request_drop(r);
    else
        *request_p = r;
    return rc;
}

int superpipe_irecv(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                    ompi_communicator_t *comm, ompi_request_t **request)
{
    superpipe_request_t *r;
    const int rc = begin(buf, count, datatype, src, tag, comm, &r);

    if (rc == OMPI_SUCCESS)
        *request = &r->super;
    return rc;
}

int superpipe_recv(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                   ompi_communicator_t *comm, ompi_status_public_t *status)
{
    superpipe_request_t *r;
    const int rc = begin(buf, count, datatype, src, tag, comm, &r);

    return rc == OMPI_SUCCESS ? superpipe_wait(r, status) : rc;
}
