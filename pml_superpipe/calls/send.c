/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Sends of all modes. */
#include "pml_superpipe/calls/calls.h"

/** Starts a described send that was begun. In buffered mode its data is copied to the buffer that
 *  the user has attached, and sent from there by another request. */
static int start(superpipe_request_t *r, superpipe_peer_t *p)
{
    superpipe_request_t *goes = r;

    if (r->mode == MCA_PML_BASE_SEND_BUFFERED) {
        goes = superpipe_request_copy(r, true);
        /* The call has made progress if there was no room, which may have freed some. */
        if (goes == NULL)
            goes = superpipe_request_copy(r, true);
        onic_transport_lock();
        superpipe_transfer_sent_whole(&r->state);
        r->error = goes != NULL ? OMPI_SUCCESS : MPI_ERR_BUFFER;
        superpipe_unlock(r);
    }
    if (goes == NULL)
        return MPI_ERR_BUFFER;
    superpipe_send_start(goes, p);
    return OMPI_SUCCESS;
}

int superpipe_isend_init(const void *buf, size_t count, ompi_datatype_t *datatype, int dst, int tag,
                         mca_pml_base_send_mode_t mode, ompi_communicator_t *comm,
                         ompi_request_t **request)
{
    superpipe_request_t *r =
        superpipe_request_new(comm, datatype, (void *)(uintptr_t)buf, count, dst, tag, true);

    if (r == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    r->mode = mode;
    OMPI_REQUEST_INIT(&r->super, true);
    *request = &r->super;
    return OMPI_SUCCESS;
}

/** Makes and starts a send; *request_p is NULL if the message has left already. `waits`: the call
 *  waits for it. */
static int begin(const void *buf, size_t count, ompi_datatype_t *datatype, int dst, int tag,
                 mca_pml_base_send_mode_t mode, ompi_communicator_t *comm, bool waits,
                 superpipe_request_t **request_p)
{
    int rc = OMPI_SUCCESS;
    superpipe_peer_t *p = superpipe_peer_of(comm, dst, &rc);
    superpipe_request_t *r;
    onic_layout_t layout;
    bool sent = false;

    *request_p = NULL;
    if (p == NULL)
        return rc;
    rc = superpipe_describe_buffer(buf, count, datatype, &layout);
    if (rc != OMPI_SUCCESS)
        return rc;
    if (mode == MCA_PML_BASE_SEND_STANDARD || mode == MCA_PML_BASE_SEND_READY) {
        onic_transport_lock();
        sent = superpipe_send_now_locked(comm, p, tag, buf, &layout);
        onic_transport_unlock();
    }
    if (sent) {
        onic_layout_fini(&layout);
        return OMPI_SUCCESS;
    }
    r = superpipe_request_new(comm, datatype, (void *)(uintptr_t)buf, count, dst, tag, true);
    if (r == NULL) {
        onic_layout_fini(&layout);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    /* The receiver checks whether this process is there to answer, and it will be. */
    if (waits)
        onic_transport_mark();
    r->mode = mode;
    onic_layout_move(&r->layout, &layout);
    superpipe_request_begin(r);
    rc = start(r, p);
    if (rc != OMPI_SUCCESS)
        superpipe_request_drop(r);
    else
        *request_p = r;
    return rc;
}

int superpipe_isend(const void *buf, size_t count, ompi_datatype_t *datatype, int dst, int tag,
                    mca_pml_base_send_mode_t mode, ompi_communicator_t *comm,
                    ompi_request_t **request)
{
    superpipe_request_t *r;
    const int rc = begin(buf, count, datatype, dst, tag, mode, comm, false, &r);

    if (rc == OMPI_SUCCESS)
        *request = r != NULL ? &r->super : &ompi_request_empty;
    return rc;
}

int superpipe_send(const void *buf, size_t count, ompi_datatype_t *datatype, int dst, int tag,
                   mca_pml_base_send_mode_t mode, ompi_communicator_t *comm)
{
    superpipe_request_t *r;
    const int rc = begin(buf, count, datatype, dst, tag, mode, comm, true, &r);

    return rc == OMPI_SUCCESS && r != NULL ? superpipe_wait(r, MPI_STATUS_IGNORE) : rc;
}

static int start_again(superpipe_request_t *r)
{
    superpipe_peer_t *to = NULL;
    int rc = OMPI_SUCCESS;

    if (r->sends)
        to = superpipe_peer_of(r->comm, r->rank, &rc);
    else
        superpipe_watch(r->comm, r->rank);
    if (rc == OMPI_SUCCESS)
        rc = superpipe_describe_buffer(r->base, r->count, r->datatype, &r->layout);
    if (rc != OMPI_SUCCESS)
        return rc;
    superpipe_request_begin(r);
    if (r->sends)
        return start(r, to);
    superpipe_receive_start(r);
    return OMPI_SUCCESS;
}

int superpipe_start(size_t count, ompi_request_t **requests)
{
    int rc = OMPI_SUCCESS;

    for (size_t i = 0; i < count && rc == OMPI_SUCCESS; i++)
        if (requests[i] != NULL && requests[i]->req_type == OMPI_REQUEST_PML)
            rc = start_again((superpipe_request_t *)requests[i]);
    return rc;
}
