/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* thorough */
/* windows: create allocate dynamic */
/* methods: all */
/**
 * @file
 * Random operations (random_operations.c) between processes that are nodes of their own, on one
 * host, too.
 */
#include <stdlib.h>
#include <string.h>

#include "test/mpi/random_operations.h"
#include "test/mpi/testlib.h"

int main(int argc, char **argv)
{
    const char *all = getenv("OMPI_COMM_WORLD_SIZE"), *here = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");

    if (all != NULL && here != NULL && strcmp(all, here) == 0)
        setenv("OMPI_MCA_osc_nicstride_node", "0", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    random_operations();
    return tl_finish();
}
