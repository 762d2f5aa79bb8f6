/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* windows: create allocate dynamic */
/* methods: nic */
/**
 * @file
 * Method nic (nic_cases.h), by an adapter of the test's own: its functions are in this program, and
 * so in the place of libibverbs's.
 */
#include "common/config.h"

#include "test/mpi/nic_cases.h"
#include "test/mpi/testlib.h"

int main(int argc, char **argv)
{
#if !OMPI_NIC_HAVE_VERBS
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_skip("this build is without libibverbs");
#endif
    return nic_cases(true, argc, argv);
}
