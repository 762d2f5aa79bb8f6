/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Probes, and receives of messages that probes have found. */
#include "pml_superpipe/calls/calls.h"

static void fill(ompi_status_public_t *status, const superpipe_unexpected_t *m)
{
    if (status == MPI_STATUS_IGNORE)
        return;
    /* MPI_ERROR is set only by calls that complete several requests, and is left alone. */
    status->MPI_SOURCE = m->message.source;
    status->MPI_TAG = m->message.tag;
    status->_ucount = m->offer.length;
    status->_cancelled = 0;
}

/** Looks once for a message. `taken_p`: takes the message out and returns it there; NULL: it stays.
 */
static bool look(int src, int tag, ompi_communicator_t *comm, superpipe_unexpected_t **taken_p,
                 ompi_status_public_t *status)
{
    superpipe_message_t *m;

    onic_transport_lock();
    m = superpipe_match_probe(&superpipe.match, ONIC_COMM_INDEX(comm), src, tag);
    if (m != NULL)
        fill(status, (superpipe_unexpected_t *)m);
    if (m != NULL && taken_p != NULL) {
        superpipe_match_take(&superpipe.match, m);
        *taken_p = (superpipe_unexpected_t *)m;
    }
    onic_transport_unlock();
    return m != NULL;
}

static bool look_twice(int src, int tag, ompi_communicator_t *comm,
                       superpipe_unexpected_t **taken_p, ompi_status_public_t *status)
{
    if (look(src, tag, comm, taken_p, status))
        return true;
    opal_progress();
    return look(src, tag, comm, taken_p, status);
}

/** True if the only process that could send the message has died, and everything received from it
 *  is handled. */
static bool is_hopeless(int src, ompi_communicator_t *comm)
{
    int rc = OMPI_SUCCESS;
    superpipe_peer_t *p;
    bool lost;

    if (src == OMPI_ANY_SOURCE || onic_transport_losses() == 0)
        return false;
    p = superpipe_peer_of(comm, src, &rc);
    if (p == NULL)
        return true;
    onic_transport_lock();
    lost = p->lost;
    onic_transport_unlock();
    return lost;
}

int superpipe_iprobe(int src, int tag, ompi_communicator_t *comm, int *matched,
                     ompi_status_public_t *status)
{
    *matched = look_twice(src, tag, comm, NULL, status);
    return *matched || !is_hopeless(src, comm) ? OMPI_SUCCESS : ONIC_ERR_PROC_FAILED;
}

static unsigned losses_of(const ompi_communicator_t *comm)
{
    return __atomic_load_n(&((superpipe_channel_t *)comm->c_pml_comm)->losses, __ATOMIC_RELAXED);
}

/* A waiting probe counts like a posted receive. */
static int wait_for(int src, int tag, ompi_communicator_t *comm, superpipe_unexpected_t **taken_p,
                    ompi_status_public_t *status)
{
    const unsigned losses = losses_of(comm);
    int rc = OMPI_SUCCESS;

    superpipe_watch(comm, src);
    while (rc == OMPI_SUCCESS && !look_twice(src, tag, comm, taken_p, status))
        if (is_hopeless(src, comm) ||
            (src == OMPI_ANY_SOURCE && onic_transport_losses() > 0 && losses_of(comm) != losses))
            rc = ONIC_ERR_PROC_FAILED;
    return rc;
}

int superpipe_probe(int src, int tag, ompi_communicator_t *comm, ompi_status_public_t *status)
{
    return wait_for(src, tag, comm, NULL, status);
}

/* ---- messages taken out by probes -------------------------------------------------------------
 */

/** Makes a message handle for the user. It retains the communicator until it is received. */
static int hand_out(superpipe_unexpected_t *m, ompi_communicator_t *comm, ompi_message_t **message)
{
    ompi_message_t *handle = ompi_message_alloc();

    if (handle == NULL) {
        onic_transport_lock();
        superpipe_discard_locked(m);
        onic_transport_unlock();
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    OBJ_RETAIN(comm);
    handle->comm = comm;
    handle->req_ptr = m;
    handle->peer = m->message.source;
    handle->count = m->offer.length;
    *message = handle;
    return OMPI_SUCCESS;
}

int superpipe_improbe(int src, int tag, ompi_communicator_t *comm, int *matched,
                      ompi_message_t **message, ompi_status_public_t *status)
{
    superpipe_unexpected_t *m;

    *matched = look_twice(src, tag, comm, &m, status);
    if (*matched)
        return hand_out(m, comm, message);
    return is_hopeless(src, comm) ? ONIC_ERR_PROC_FAILED : OMPI_SUCCESS;
}

int superpipe_mprobe(int src, int tag, ompi_communicator_t *comm, ompi_message_t **message,
                     ompi_status_public_t *status)
{
    superpipe_unexpected_t *m;
    const int rc = wait_for(src, tag, comm, &m, status);

    return rc == OMPI_SUCCESS ? hand_out(m, comm, message) : rc;
}

/** Begins the receive of a message that was taken out. NULL and an error code if that fails. */
static superpipe_request_t *begin(void *buf, size_t count, ompi_datatype_t *datatype,
                                  ompi_message_t **message, int *rc_p)
{
    superpipe_unexpected_t *m = (*message)->req_ptr;
    superpipe_request_t *r = superpipe_request_receive((*message)->comm, datatype, buf, count,
                                                       m->message.source, m->message.tag, rc_p);

    if (r == NULL)
        return NULL;
    OBJ_RELEASE((*message)->comm); /* the request retains it, too */
    ompi_message_return(*message);
    *message = MPI_MESSAGE_NULL;
    superpipe_receive_message(r, m);
    return r;
}

int superpipe_imrecv(void *buf, size_t count, ompi_datatype_t *datatype, ompi_message_t **message,
                     ompi_request_t **request)
{
    int rc = OMPI_SUCCESS;
    superpipe_request_t *r = begin(buf, count, datatype, message, &rc);

    if (r != NULL)
        *request = &r->super;
    return rc;
}

int superpipe_mrecv(void *buf, size_t count, ompi_datatype_t *datatype, ompi_message_t **message,
                    ompi_status_public_t *status)
{
    int rc = OMPI_SUCCESS;
    superpipe_request_t *r = begin(buf, count, datatype, message, &rc);

    return r != NULL ? superpipe_wait(r, status) : rc;
}
