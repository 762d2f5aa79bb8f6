/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/ompi_compat.h"
#include "common/support/collective.h"

#include <stdlib.h>

#include "ompi/communicator/communicator.h"
#include "ompi/constants.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/base/coll_tags.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/op/op.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/util/output.h"

/** Of the tags between those of Open MPI's collectives and MPI_ANY_TAG, which it does not use
 *  itself; coll_nicbarrier has the ones below. */
#define TAG (MCA_COLL_BASE_TAG_ALLGATHER + 5)

_Static_assert(TAG < MPI_ANY_TAG, "a tag of its own");

unsigned long long onic_collectives;

static void count(void)
{
    __atomic_fetch_add(&onic_collectives, 1, __ATOMIC_RELAXED);
}

int onic_agree_all(struct ompi_communicator_t *comm, int *values, int n)
{
    count();
    return comm->c_coll->coll_allreduce(MPI_IN_PLACE, values, n, &ompi_mpi_int.dt,
                                        &ompi_mpi_op_min.op, comm,
                                        comm->c_coll->coll_allreduce_module);
}

int onic_share(struct ompi_communicator_t *comm, const void *mine, int len, void *all)
{
    count();
    return comm->c_coll->coll_allgather(mine, len, &ompi_mpi_byte.dt, all, len, &ompi_mpi_byte.dt,
                                        comm, comm->c_coll->coll_allgather_module);
}

int onic_send_bytes(struct ompi_communicator_t *comm, int to, const void *bytes, size_t len)
{
    return MCA_PML_CALL(send((void *)(uintptr_t)bytes, len, &ompi_mpi_byte.dt, to, TAG,
                             MCA_PML_BASE_SEND_STANDARD, comm));
}

int onic_receive_bytes(struct ompi_communicator_t *comm, int from, void *bytes, size_t len)
{
    return MCA_PML_CALL(recv(bytes, len, &ompi_mpi_byte.dt, from, TAG, comm, MPI_STATUS_IGNORE));
}

/* No rank waits for one that does not take part, and that leaves a gap in the tree: the ranks at
 * the gap vote no. The rest learns that on the way to the root and back. */
bool onic_agree_among(struct ompi_communicator_t *comm,
                      bool (*joins)(struct ompi_communicator_t *comm, int rank))
{
    const int me = ompi_comm_rank(comm), size = ompi_comm_size(comm);
    bool all = true, below[ONIC_BRANCHES] = {false};

    count();
    for (int i = 0; i < ONIC_BRANCHES && onic_tree_below(me, i) < size; i++) {
        const int rank = onic_tree_below(me, i);
        bool heard = false;

        below[i] = joins(comm, rank);
        all = below[i] && onic_receive_bytes(comm, rank, &heard, 1) == OMPI_SUCCESS && heard && all;
    }
    if (me > 0) {
        const int above = onic_tree_above(me);

        if (!joins(comm, above) || onic_send_bytes(comm, above, &all, 1) != OMPI_SUCCESS ||
            onic_receive_bytes(comm, above, &all, 1) != OMPI_SUCCESS)
            all = false;
    }
    for (int i = 0; i < ONIC_BRANCHES; i++)
        if (below[i] && onic_send_bytes(comm, onic_tree_below(me, i), &all, 1) != OMPI_SUCCESS)
            all = false;
    return all;
}

void onic_abort_no_memory(struct ompi_communicator_t *comm, const char *what)
{
    opal_output(0, "ompi-nic: memory is exhausted while all processes make %s", what);
    (void)ompi_mpi_abort(comm, MPI_ERR_NO_MEM);
    abort();
}
