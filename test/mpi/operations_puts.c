/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-3 */
/* windows: create dynamic */
/* methods: pipeline */
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

#include "common/pipeline/pipeline.h"
#include "common/pipeline/rma/carrier_rma.h"
#include "common/pipeline/shm/carrier_shm.h"
#include "test/mpi/counter.h"
#include "test/mpi/peers.h"
#include "test/mpi/random_operations.h"
#include "test/mpi/testlib.h"

/** Is nothing under way, and nobody's buffer with another process? */
static bool all_back(void)
{
    const uint64_t all = onic_pool_all(&onic_node_state.rx_pool.pool);

    uint32_t used = 0;

    onic_transport_lock();
    for (uint32_t i = 0; i < onic_rma_records.n; i++)
        used += onic_rma_records.slot[i].object != NULL;
    const bool back = onic_pipeline_idle() && used == 0 &&
                      atomic_load(&onic_node_state.rx_pool.pool.words->free) == all &&
                      atomic_load(&onic_rma_state.bounce_free) == all &&
                      onic_rma_state.grant_queue.first == NULL;
    onic_transport_unlock();
    return back;
}

static void close_pipeline(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    TL_CHECK(peers_await(all_back), "buffers %llx are free, %llx to pack into",
             (unsigned long long)onic_node_state.rx_pool.pool.words->free,
             (unsigned long long)onic_rma_state.bounce_free);
    MPI_Barrier(MPI_COMM_WORLD);
    onic_pipeline_close();
    onic_transport_flush();
    MPI_Barrier(MPI_COMM_WORLD);
    onic_transport_close();
}

int main(int argc, char **argv)
{
    setenv("OMPI_MCA_osc_nicstride_node", "0", 1);
    onic_transport_require(&(onic_transport_config_t){.puts = true});
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    counter_t *moved = counter_begin("osc_nicstride_ops_pipeline");

    if (argc < 3)
        tl_die("what are the sizes?");
    const size_t pool = (size_t)atoi(argv[1]) << 10;
    peers_open_pipeline(pool, (size_t)atoi(argv[2]) << 10);
    TL_CHECK(pool == 0 || onic_pipeline_rx_bytes() <= pool, "a receive pool of %zu bytes",
             onic_pipeline_rx_bytes());
    random_operations();
    TL_CHECK(moved == NULL || counter_read(moved) > 0, "nothing went by the pipeline");
    counter_end(moved);
    close_pipeline();
    return tl_finish();
}
