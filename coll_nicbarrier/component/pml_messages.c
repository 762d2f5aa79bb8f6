/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The messages of messages.h as point-to-point messages of Open MPI. */
#include "coll_nicbarrier/component/module.h"

#include "ompi/constants.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/base/coll_tags.h"
#include "ompi/mca/pml/pml.h"

/** Of the tags between those of Open MPI's collectives and MPI_ANY_TAG, which it does not use
 *  itself; the agreement has the ones below. */
#define TAG (MCA_COLL_BASE_TAG_ALLGATHER + 4)

_Static_assert(TAG < MPI_ANY_TAG, "a tag of its own");

static int code_of(int rc)
{
    return rc > 1 ? rc : MPI_ERR_OTHER;
}

static int send_word(void *comm, int member, const void *bytes, void **request_p)
{
    ompi_request_t *request = NULL;
    int rc = MCA_PML_CALL(isend(bytes, NICBARRIER_MESSAGE_BYTES, &ompi_mpi_byte.dt, member, TAG,
                                MCA_PML_BASE_SEND_STANDARD, (struct ompi_communicator_t *)comm,
                                &request));
    *request_p = request;
    return rc == OMPI_SUCCESS ? 0 : code_of(rc);
}

static int receive_word(void *comm, int member, void *bytes, void **request_p)
{
    ompi_request_t *request = NULL;
    int rc = MCA_PML_CALL(irecv(bytes, NICBARRIER_MESSAGE_BYTES, &ompi_mpi_byte.dt, member, TAG,
                                (struct ompi_communicator_t *)comm, &request));
    *request_p = request;
    return rc == OMPI_SUCCESS ? 0 : code_of(rc);
}

static int test_word(void *comm, void **request_p)
{
    ompi_request_t *request = *request_p;
    (void)comm;
    if (!REQUEST_COMPLETE(request)) {
        return 0;
    }
    int rc = request->req_status.MPI_ERROR;
    (void)ompi_request_free(&request);
    *request_p = NULL;
    return rc == OMPI_SUCCESS ? 1 : code_of(rc);
}

static const nicbarrier_messages_ops_t ops = {send_word, receive_word, test_word};

nicbarrier_messages_t *nicbarrier_pml_messages(struct ompi_communicator_t *comm)
{
    return nicbarrier_messages_new(ompi_comm_size(comm), ompi_comm_rank(comm), MPI_ERR_OTHER, &ops,
                                   comm);
}
