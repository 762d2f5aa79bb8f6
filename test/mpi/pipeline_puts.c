/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/mpi/pipeline_puts.h"

#include <stdlib.h>

#include "common/pipeline/pipeline.h"
#include "common/pipeline/rma/carrier_rma.h"
#include "common/pipeline/shm/carrier_shm.h"
#include "test/mpi/peers.h"
#include "test/mpi/testlib.h"

static onic_peer_t **peers;

/** Makes progress until `holds`, or it lasts too long. */
static bool await(bool (*holds)(void))
{
    const double end = MPI_Wtime() + TL_PATIENCE;

    while (!holds() && MPI_Wtime() < end)
        onic_transport_progress();
    return holds();
}

/** The first question makes a peer known. */
static bool all_reached(void)
{
    bool all = true;

    onic_transport_lock();
    for (int i = 0; i < tl_size(); i++)
        all = (i == tl_rank() || onic_pipeline_reaches_locked(peers[i])) && all;
    onic_transport_unlock();
    return all;
}

/** Is nothing under way, and nobody's buffer with another process? */
static bool all_back(void)
{
    const uint64_t all = onic_pool_all(&onic_node_state.rx_pool.pool);

    onic_transport_lock();
    const bool back = onic_pipeline_idle() && onic_rma_records.used == 0 &&
                      atomic_load(&onic_node_state.rx_pool.pool.words->free) == all &&
                      atomic_load(&onic_rma_state.bounce_free) == all &&
                      onic_rma_state.grant_queue.first == NULL;
    onic_transport_unlock();
    return back;
}

void pipeline_puts_announce(void)
{
    onic_pipeline_announce(ONIC_PIPELINE_RMA_ALWAYS);
}

void pipeline_puts_open(size_t pool, size_t buffer, const char *tls)
{
    const onic_transport_config_t config = {
        .server_thread = true, .server_idle_usec = 1000, .tls = tls};
    const onic_links_t links = onic_links_default("other");
    const onic_pipeline_config_t pipeline = {
        .rx_pool = pool, .rx_buffer = buffer, .rma = ONIC_PIPELINE_RMA_ALWAYS, .links = &links};

    if (onic_transport_open(&config) != 0)
        tl_die("the transport cannot be opened");
    peers = tl_alloc((size_t)tl_size() * sizeof(*peers));
    TL_CHECK(peers_get(MPI_COMM_WORLD, peers) == 0, "no peers");
    onic_pipeline_open(&pipeline);
    TL_CHECK(pool == 0 || onic_pipeline_rx_bytes() <= pool, "a receive pool of %zu bytes",
             onic_pipeline_rx_bytes());
    MPI_Barrier(MPI_COMM_WORLD);
    if (!await(all_reached))
        tl_die("not all are reached");
    MPI_Barrier(MPI_COMM_WORLD);
}

void pipeline_puts_close(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    TL_CHECK(await(all_back), "buffers %llx are free, %llx to pack into",
             (unsigned long long)onic_node_state.rx_pool.pool.words->free,
             (unsigned long long)onic_rma_state.bounce_free);
    MPI_Barrier(MPI_COMM_WORLD);
    onic_pipeline_close();
    onic_transport_flush();
    MPI_Barrier(MPI_COMM_WORLD);
    onic_transport_close();
    free(peers);
}
