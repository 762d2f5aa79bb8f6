/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The functions of Open MPI's pml interface; see ompi/mca/pml/pml.h. */
#ifndef SUPERPIPE_CALLS_H
#define SUPERPIPE_CALLS_H

#include "pml_superpipe/protocols/process.h"

#include "ompi/message/message.h"
#include "opal/runtime/opal_progress.h"

struct ompi_proc_t;

/* ---- send.c ---------------------------------------------------------------------------------- */

int superpipe_isend_init(const void *buf, size_t count, ompi_datatype_t *datatype, int dst, int tag,
                         mca_pml_base_send_mode_t mode, ompi_communicator_t *comm,
                         ompi_request_t **request);
int superpipe_isend(const void *buf, size_t count, ompi_datatype_t *datatype, int dst, int tag,
                    mca_pml_base_send_mode_t mode, ompi_communicator_t *comm,
                    ompi_request_t **request);
int superpipe_send(const void *buf, size_t count, ompi_datatype_t *datatype, int dst, int tag,
                   mca_pml_base_send_mode_t mode, ompi_communicator_t *comm);
int superpipe_start(size_t count, ompi_request_t **requests);

/** Starts a persistent send. Not of the interface. */
int superpipe_send_again(superpipe_request_t *r);

/* ---- receive.c ------------------------------------------------------------------------------- */

int superpipe_irecv_init(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                         ompi_communicator_t *comm, ompi_request_t **request);
int superpipe_irecv(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                    ompi_communicator_t *comm, ompi_request_t **request);
int superpipe_recv(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                   ompi_communicator_t *comm, ompi_status_public_t *status);

/** Starts a persistent receive. Not of the interface. */
int superpipe_receive_again(superpipe_request_t *r);

/* ---- probe.c --------------------------------------------------------------------------------- */

int superpipe_iprobe(int src, int tag, ompi_communicator_t *comm, int *matched,
                     ompi_status_public_t *status);
int superpipe_probe(int src, int tag, ompi_communicator_t *comm, ompi_status_public_t *status);
int superpipe_improbe(int src, int tag, ompi_communicator_t *comm, int *matched,
                      ompi_message_t **message, ompi_status_public_t *status);
int superpipe_mprobe(int src, int tag, ompi_communicator_t *comm, ompi_message_t **message,
                     ompi_status_public_t *status);
int superpipe_imrecv(void *buf, size_t count, ompi_datatype_t *datatype, ompi_message_t **message,
                     ompi_request_t **request);
int superpipe_mrecv(void *buf, size_t count, ompi_datatype_t *datatype, ompi_message_t **message,
                    ompi_status_public_t *status);

/* ---- comm.c ---------------------------------------------------------------------------------- */

int superpipe_add_procs(struct ompi_proc_t **procs, size_t nprocs);
int superpipe_del_procs(struct ompi_proc_t **procs, size_t nprocs);
int superpipe_enable(bool enable);
int superpipe_add_comm(ompi_communicator_t *comm);
int superpipe_del_comm(ompi_communicator_t *comm);
int superpipe_dump(ompi_communicator_t *comm, int verbose);

/** A message of that rank will be waited for, and it was not looked up yet: does so where its death
 *  can be seen without having met it. Not of the interface. */
void superpipe_watch_stranger(ompi_communicator_t *comm, int rank);

/** The same of any source: most are known. */
static inline void superpipe_watch(ompi_communicator_t *comm, int source)
{
    const superpipe_channel_t *c = (superpipe_channel_t *)comm->c_pml_comm;

    if (source != OMPI_ANY_SOURCE && __atomic_load_n(&c->peer[source], __ATOMIC_RELAXED) == NULL)
        superpipe_watch_stranger(comm, source);
}

/** Looks for messages for one progress of the wire, which does more, and for one of Open MPI's,
 * which knows more than the wire: each costs several times what the one before it does. */
#define SUPERPIPE_POLLS 32
#define SUPERPIPE_SPINS 256

/** Waits for a request of this component, copies its status, and lets go of it. Where there may be
 *  other threads that wait it sleeps after a while, as in MPI_Wait: one of them polls for all. That
 *  is called and not inline: with -fsanitize=bool GCC 12 reads a volatile flag of it only once. */
static inline int superpipe_wait(superpipe_request_t *r, ompi_status_public_t *status)
{
    /* Open MPI's progress gives the processor away where the sender may need it. */
    const unsigned spins = opal_progress_yield_when_idle ? 1 : SUPERPIPE_SPINS;
    int rc;

    for (unsigned n = 1;
         __atomic_load_n(&r->super.req_complete, __ATOMIC_RELAXED) != REQUEST_COMPLETED; n++) {
        if (n % spins == 0 && opal_using_threads()) {
            ompi_request_t *request = &r->super;

            rc = ompi_request_wait(&request, status);
            /* One that has failed is not freed by that. */
            if (rc != OMPI_SUCCESS)
                superpipe_request_drop(r);
            return rc;
        }
        if (n % spins == 0)
            opal_progress();
        else if (n % SUPERPIPE_POLLS == 0)
            (void)onic_wire_progress();
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

#endif
