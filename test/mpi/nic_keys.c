/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* windows: create allocate dynamic */
/* methods: nic */
/* mpirun: --mca osc_nicstride_key_piece 1 --mca osc_nicstride_node 0 */
/** @file Keys of method nic (keys_cases.h), by the adapter of the test's own. */
#include "common/config.h"

#include "test/mpi/keys_cases.h"
#include "test/mpi/testlib.h"

int main(int argc, char **argv)
{
#if !OMPI_NIC_HAVE_VERBS
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_skip("this build is without libibverbs");
#endif
    return keys_cases("nic", true, argc, argv);
}
