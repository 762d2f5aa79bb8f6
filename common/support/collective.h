/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Agreement over a communicator, with the communicator's own collectives. Internal to the library.
 */
#ifndef ONIC_COLLECTIVE_H
#define ONIC_COLLECTIVE_H

#include "common/ompi_compat.h"

#include "ompi/communicator/communicator.h"
#include "ompi/constants.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/op/op.h"

/**
 * The smallest value of all ranks: with error codes, which are negative, the worst of them. Returns
 * the collective's own error where that fails, so the value must have a meaning as a code, too.
 */
static inline int onic_agree(struct ompi_communicator_t *comm, int value)
{
    int least = value;
    int rc = comm->c_coll->coll_allreduce(&value, &least, 1, &ompi_mpi_int.dt, &ompi_mpi_op_min.op,
                                          comm, comm->c_coll->coll_allreduce_module);
    return rc != OMPI_SUCCESS ? rc : least;
}

/** Every rank's `len` bytes to every rank, in rank order. */
static inline int onic_share(struct ompi_communicator_t *comm, const void *mine, int len, void *all)
{
    return comm->c_coll->coll_allgather(mine, len, &ompi_mpi_byte.dt, all, len, &ompi_mpi_byte.dt,
                                        comm, comm->c_coll->coll_allgather_module);
}

#endif
