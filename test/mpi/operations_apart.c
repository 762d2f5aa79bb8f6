/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* thorough */
/* windows: create allocate dynamic */
/* methods: all */
/* arguments: plain */
/* arguments: tcp */
/* arguments: headers */
/**
 * @file
 * Random operations (random_operations.c) between processes that are nodes of their own, on one
 * host, too. With tcp the user has made TCP's receive segments smaller than what the component
 * would send at once; with headers transports take short ones only: what does not fit must go
 * another way.
 */
#include <stdlib.h>

#include "test/mpi/random_operations.h"
#include "test/mpi/testlib.h"

int main(int argc, char **argv)
{
    if (tl_launched_here())
        setenv("OMPI_MCA_osc_nicstride_node", "0", 1);
    if (argc > 1 && tl_asked_for("tcp", argc, argv)) {
        setenv("UCX_TLS", "tcp,self", 1);
        setenv("UCX_TCP_RX_SEG_SIZE", "64k", 1);
    } else if (argc > 1 && tl_asked_for("headers", argc, argv)) {
        /* The shortest segments of shared memory with which all else works. */
        setenv("OMPI_MCA_osc_nicstride_queues", "0", 1);
        setenv("OMPI_MCA_pml_superpipe_queues", "0", 1);
        setenv("UCX_POSIX_SEG_SIZE", "224", 1);
        setenv("UCX_SYSV_SEG_SIZE", "224", 1);
    }
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    random_operations();
    return tl_finish();
}
