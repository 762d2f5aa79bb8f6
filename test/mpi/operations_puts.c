/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-3 */
/* windows: create dynamic */
/* methods: pipeline */
/* internal */
/* arguments: 4 4 */
/* arguments: 12 4 */
/* arguments: 256 32 */
/* arguments: 0 0 */
/**
 * @file
 * Random operations (random_operations.c) by the pipeline as between hosts: by puts into granted
 * buffers, which UCX makes of messages where there is no adapter, and through receive pools of all
 * sizes. At the end all buffers are back. The arguments are KiB of a process's pool and of a
 * buffer; 0: as the component has it.
 */
#include <stdlib.h>

#include "test/mpi/counter.h"
#include "test/mpi/pipeline_puts.h"
#include "test/mpi/random_operations.h"
#include "test/mpi/testlib.h"

int main(int argc, char **argv)
{
    setenv("OMPI_MCA_osc_nicstride_node", "0", 1);
    pipeline_puts_announce();
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    counter_t *moved = counter_begin("osc_nicstride_ops_pipeline");

    if (argc < 3)
        tl_die("what are the sizes?");
    pipeline_puts_open((size_t)atoi(argv[1]) << 10, (size_t)atoi(argv[2]) << 10, NULL);
    random_operations();
    TL_CHECK(moved == NULL || counter_read(moved) > 0, "nothing went by the pipeline");
    counter_end(moved);
    pipeline_puts_close();
    return tl_finish();
}
