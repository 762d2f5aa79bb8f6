/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* engines: auto datagram */
/**
 * @file
 * Something that is no message of the agreement comes in place of one, on its tag: nobody reads it
 * as one, nobody waits for ever, all ranks are of one mind (the module below does the barriers of
 * that communicator), and the next communicator has its engine.
 */
#include "common/ompi_compat.h"
#include "test/mpi/meet.h"

#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/base/coll_tags.h"
#include "ompi/mca/pml/pml.h"

enum { MANY = 40 };

/** As in agree.c. */
#define TAG (MCA_COLL_BASE_TAG_ALLGATHER + 1)

/** Rank 1's first message of an agreement goes to rank 0. */
static void send_junk(MPI_Comm comm, size_t bytes)
{
    static const unsigned char junk[300] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    struct ompi_communicator_t *c = comm;
    int rc =
        MCA_PML_CALL(send(junk, bytes, &ompi_mpi_byte.dt, 0, TAG, MCA_PML_BASE_SEND_STANDARD, c));
    TL_CHECK(rc == OMPI_SUCCESS, "junk was not sent: %d", rc);
}

static void many(meet_t *m)
{
    for (int i = 0; i < MANY; i++) {
        MPI_Request request;
        long number = meet_ibarrier(m, &request);
        TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
        meet_leave(m, number, "nonblocking");
        meet_barrier(m, "blocking");
    }
}

/** The message that junk has displaced stays behind, and some point-to-point layers would find it
 * in the next communicator of the same number: this one lives to the end. */
static MPI_Comm disturbed(size_t bytes)
{
    MPI_Comm comm;
    const long long declined = meet_counter("declined");
    TL_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    meet_t m = meet_new(comm);
    if (tl_rank() == 1) {
        send_junk(comm, bytes);
    }
    many(&m);
    TL_CHECK(meet_counter("declined") == declined + 1, "junk of %zu bytes was taken for a message",
             bytes);
    meet_free(&m);
    return comm;
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    meet_begin();
    if (meet_engine() == NULL) {
        tl_skip("another component does the barriers");
    }
    /* The last is longer than any message. */
    MPI_Comm comms[] = {disturbed(3), disturbed(72), disturbed(300)};
    meet_t m = meet_new(MPI_COMM_WORLD);
    many(&m);
    meet_free(&m);
    TL_CHECK(meet_counter("declined") == 3 && meet_counter("agreements") == 4,
             "%lld of %lld agreements were declined", meet_counter("declined"),
             meet_counter("agreements"));
    for (size_t i = 0; i < sizeof(comms) / sizeof(comms[0]); i++) {
        TL_MPI(MPI_Comm_free(&comms[i]));
    }
    return meet_finish();
}
