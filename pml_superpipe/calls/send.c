/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Sends of all modes. */
#include "pml_superpipe/calls/calls.h"

#include "ompi/mca/pml/base/pml_base_bsend.h"

#include "common/layout/flatten.h"
#include "common/layout/pack.h"

/** Most bytes of data that go with the header. */
#define FEW (ONIC_SEND_NOW_MAX - sizeof(superpipe_few_t))

/** A few bytes, in the user's memory or packed. */
typedef struct few {
    const void *at;
    size_t bytes;
    unsigned char packed[FEW];
} few_t;

/** The bytes of a call. False where they are not few. */
static bool few_bytes(few_t *few, const void *buf, size_t count, const ompi_datatype_t *dt)
{
    const uint16_t solid =
        OPAL_DATATYPE_FLAG_PREDEFINED | OPAL_DATATYPE_FLAG_CONTIGUOUS | OPAL_DATATYPE_FLAG_NO_GAPS;
    onic_cursor_t cursor;
    onic_layout_t layout;

    if (count > FEW || dt->super.size > FEW || dt->super.size * count > FEW)
        return false;
    few->bytes = dt->super.size * count;
    few->at = buf;
    if ((dt->super.flags & solid) == solid && dt->super.true_lb == 0)
        return true;
    if (onic_flatten(dt, count, &layout) != OMPI_SUCCESS)
        return false;
    onic_cursor_init(&cursor, &layout, 0);
    (void)onic_pack(&cursor, buf, few->packed, few->bytes);
    onic_layout_fini(&layout);
    few->at = few->packed;
    return true;
}

/** Sends a few bytes at once, if that can be done. */
static bool sent_now(const void *buf, size_t count, ompi_datatype_t *datatype, int dst, int tag,
                     mca_pml_base_send_mode_t mode, ompi_communicator_t *comm, superpipe_peer_t *p)
{
    few_t few;
    bool sent;

    if ((mode != MCA_PML_BASE_SEND_STANDARD && mode != MCA_PML_BASE_SEND_READY) ||
        !few_bytes(&few, buf, count, datatype))
        return false;
    onic_wire_lock();
    sent = superpipe_send_now_locked((superpipe_channel_t *)comm->c_pml_comm, p, dst, tag, few.at,
                                     few.bytes);
    onic_wire_unlock();
    return sent;
}

/** The data goes into the buffer that the user has attached, and from there by a request of its
 *  own. */
static int send_buffered(superpipe_request_t *r, superpipe_peer_t *p)
{
    const uint64_t length = r->state.length;
    void *bounce = mca_pml_base_bsend_request_alloc_buf(length > 0 ? length : 1);
    superpipe_request_t *copy;

    if (bounce == NULL)
        return MPI_ERR_BUFFER;
    copy = superpipe_request_copy(r, bounce, true);
    if (copy == NULL) {
        (void)mca_pml_base_bsend_request_free(bounce);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    superpipe_request_begin(copy);
    superpipe_send_start(copy, p);
    return OMPI_SUCCESS;
}

/** Starts a request that was begun and described. */
static int start(superpipe_request_t *r, superpipe_peer_t *p)
{
    int rc;

    if (r->mode != MCA_PML_BASE_SEND_BUFFERED) {
        superpipe_send_start(r, p);
        return OMPI_SUCCESS;
    }
    rc = send_buffered(r, p);
    onic_wire_lock();
    superpipe_transfer_sent_whole(&r->state, false);
    if (rc == OMPI_SUCCESS)
        superpipe_settle_locked(r);
    else
        superpipe_fail_locked(r, rc < 0 ? MPI_ERR_NO_MEM : rc);
    onic_wire_unlock();
    return rc;
}

int superpipe_send_again(superpipe_request_t *r)
{
    int rc = OMPI_SUCCESS;
    superpipe_peer_t *p = superpipe_peer_of(r->comm, r->rank, &rc);

    if (p == NULL)
        return rc;
    rc = superpipe_describe(r);
    if (rc != OMPI_SUCCESS)
        return rc;
    superpipe_request_begin(r);
    return start(r, p);
}

static superpipe_request_t *make(const void *buf, size_t count, ompi_datatype_t *datatype, int dst,
                                 int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t *comm)
{
    superpipe_request_t *r =
        superpipe_request_new(comm, datatype, (void *)(uintptr_t)buf, count, dst, tag, true);

    if (r != NULL)
        r->mode = mode;
    return r;
}

int superpipe_isend_init(const void *buf, size_t count, ompi_datatype_t *datatype, int dst, int tag,
                         mca_pml_base_send_mode_t mode, ompi_communicator_t *comm,
                         ompi_request_t **request)
{
    superpipe_request_t *r = make(buf, count, datatype, dst, tag, mode, comm);

    if (r == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    OMPI_REQUEST_INIT(&r->super, true);
    *request = &r->super;
    return OMPI_SUCCESS;
}

/** Makes and starts a send; *request_p is the request, or NULL where the message is gone already.
 */
static int begin(const void *buf, size_t count, ompi_datatype_t *datatype, int dst, int tag,
                 mca_pml_base_send_mode_t mode, ompi_communicator_t *comm,
                 superpipe_request_t **request_p)
{
    int rc = OMPI_SUCCESS;
    superpipe_peer_t *p = superpipe_peer_of(comm, dst, &rc);
    superpipe_request_t *r;

    *request_p = NULL;
    if (p == NULL)
        return rc;
    if (sent_now(buf, count, datatype, dst, tag, mode, comm, p))
        return OMPI_SUCCESS;
    r = make(buf, count, datatype, dst, tag, mode, comm);
    if (r == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    rc = superpipe_describe(r);
    if (rc == OMPI_SUCCESS) {
        superpipe_request_begin(r);
        rc = start(r, p);
    }
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
    const int rc = begin(buf, count, datatype, dst, tag, mode, comm, &r);

    if (rc == OMPI_SUCCESS)
        *request = r != NULL ? &r->super : &ompi_request_empty;
    return rc;
}

int superpipe_send(const void *buf, size_t count, ompi_datatype_t *datatype, int dst, int tag,
                   mca_pml_base_send_mode_t mode, ompi_communicator_t *comm)
{
    superpipe_request_t *r;
    const int rc = begin(buf, count, datatype, dst, tag, mode, comm, &r);

    return rc == OMPI_SUCCESS && r != NULL ? superpipe_wait(r, MPI_STATUS_IGNORE) : rc;
}

int superpipe_start(size_t count, ompi_request_t **requests)
{
    for (size_t i = 0; i < count; i++) {
        superpipe_request_t *r = (superpipe_request_t *)requests[i];
        int rc;

        if (requests[i] == NULL || requests[i]->req_type != OMPI_REQUEST_PML)
            continue;
        rc = r->sends ? superpipe_send_again(r) : superpipe_receive_again(r);
        if (rc != OMPI_SUCCESS)
            return rc;
    }
    return OMPI_SUCCESS;
}
