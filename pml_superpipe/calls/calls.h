/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The functions of Open MPI's pml interface. Called by MPI threads, without the lock. */
#pragma once

#include "pml_superpipe/protocols/process.h"

#include "ompi/message/message.h"
#include "opal/runtime/opal_progress.h"

/** Meaning, arguments and results are those of ompi/mca/pml/pml.h. Beyond that: without memory a
 *  call returns OMPI_ERR_OUT_OF_RESOURCE; for device memory MPI_ERR_BUFFER; if its only partner is
 *  lost ONIC_ERR_PROC_FAILED. A later error is in the status of the request. isend of a message
 *  that has left at once returns ompi_request_empty. Sends are not cancelled. del_procs waits for
 *  the other processes of the job. */
#define SUPERPIPE_CALL(name) __typeof__(*(mca_pml_base_module_##name##_fn_t)NULL) superpipe_##name

/* send.c */
SUPERPIPE_CALL(isend_init);
SUPERPIPE_CALL(isend);
SUPERPIPE_CALL(send);
SUPERPIPE_CALL(start);

/* receive.c */
SUPERPIPE_CALL(irecv_init);
SUPERPIPE_CALL(irecv);
SUPERPIPE_CALL(recv);

/* probe.c */
SUPERPIPE_CALL(iprobe);
SUPERPIPE_CALL(probe);
SUPERPIPE_CALL(improbe);
SUPERPIPE_CALL(mprobe);
SUPERPIPE_CALL(imrecv);
SUPERPIPE_CALL(mrecv);

/* comm.c */
SUPERPIPE_CALL(add_procs);
SUPERPIPE_CALL(del_procs);
SUPERPIPE_CALL(enable);
SUPERPIPE_CALL(add_comm);
SUPERPIPE_CALL(del_comm);
SUPERPIPE_CALL(dump);

/** A message of that rank will be waited for: looks up the rank's process if its death can be
 *  noticed that way. */
void superpipe_watch_stranger(ompi_communicator_t *comm, int rank);

/** The same for any source; does nothing for most. */
static inline void superpipe_watch(ompi_communicator_t *comm, int source)
{
    const superpipe_channel_t *c = (superpipe_channel_t *)comm->c_pml_comm;

    if (source != OMPI_ANY_SOURCE && __atomic_load_n(&c->peer[source], __ATOMIC_RELAXED) == NULL)
        superpipe_watch_stranger(comm, source);
}

/** Polls for messages per progress of the transport, and per progress of Open MPI: each of these is
 *  far dearer than a poll. Powers of two. */
#define SUPERPIPE_POLLS 32
#define SUPERPIPE_SPINS 256

/** Waits for a request of this component, copies its status, and drops it. If there are other
 *  threads it sleeps after a while, as in MPI_Wait. That is a call and not inlined: with
 *  -fsanitize=bool GCC 12 reads a volatile flag of it only once. */
static inline int superpipe_wait(superpipe_request_t *r, ompi_status_public_t *status)
{
    /* Open MPI's progress yields the processor if the sender may need it. */
    const unsigned mask = opal_progress_yield_when_idle ? 0 : SUPERPIPE_SPINS - 1;
    int rc;

    /* Measured here, where it costs nothing: polls that find the message do not read the clock. */
    if (__atomic_load_n(&r->super.req_complete, __ATOMIC_RELAXED) != REQUEST_COMPLETED)
        onic_transport_mark();
    for (unsigned n = 1;
         __atomic_load_n(&r->super.req_complete, __ATOMIC_RELAXED) != REQUEST_COMPLETED; n++) {
        if ((n & mask) == 0 && opal_using_threads()) {
            ompi_request_t *request = &r->super;

            rc = ompi_request_wait(&request, status);
            /* A failed wait does not free the request. */
            if (rc != OMPI_SUCCESS)
                superpipe_request_drop(r);
            return rc;
        }
        if ((n & mask) == 0)
            opal_progress();
        else if (n % SUPERPIPE_POLLS == 0)
            (void)onic_transport_progress();
        else
            superpipe_poll();
    }
    opal_atomic_rmb();
    SUPERPIPE_TAKES_UP(r);
    rc = r->super.req_status.MPI_ERROR;
    if (status != MPI_STATUS_IGNORE)
        OMPI_COPY_STATUS(status, r->super.req_status, false);
    superpipe_request_drop(r);
    return rc;
}
