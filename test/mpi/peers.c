/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/mpi/peers.h"

#include "common/pipeline/pipeline.h"

#include <stdint.h>
#include <stdlib.h>

#include "common/transport/shm/node.h"
#include "test/mpi/testlib.h"

int peers_get(MPI_Comm comm, onic_peer_t **peers)
{
    int rank, n, rc = 0, facts[] = {onic_transport_knows(comm), -(int)onic_address_record_size()};
    TL_MPI(MPI_Comm_rank(comm, &rank));
    TL_MPI(MPI_Comm_size(comm, &n));
    onic_node_t alone = {.n = 1, .ranks = &rank};
    TL_MPI(MPI_Allreduce(MPI_IN_PLACE, facts, 2, MPI_INT, MPI_MIN, comm));
    if (!facts[0])
        rc = onic_transport_exchange(comm, &alone, (size_t)-facts[1]);
    onic_transport_lock();
    for (int i = 0; i < n && rc == 0; i++) {
        peers[i] = onic_peer_named(onic_rank_name(comm, i));
        rc = peers[i] != NULL ? 0 : -1;
    }
    onic_transport_unlock();
    TL_MPI(MPI_Allreduce(MPI_IN_PLACE, &rc, 1, MPI_INT, MPI_MIN, comm));
    return rc;
}

bool peers_await(bool (*holds)(void))
{
    const double end = MPI_Wtime() + TL_PATIENCE;

    while (!holds() && MPI_Wtime() < end)
        onic_transport_progress();
    return holds();
}

static onic_peer_t **reached;

/** The first question makes a peer known. */
static bool all_reached(void)
{
    bool all = true;

    onic_transport_lock();
    for (int i = 0; i < tl_size(); i++)
        all = (i == tl_rank() || onic_pipeline_reaches_locked(reached[i])) && all;
    onic_transport_unlock();
    return all;
}

void peers_open_pipeline(size_t pool, size_t buffer)
{
    const onic_transport_config_t config = {.server_thread = true, .server_idle_usec = 1000};
    const onic_links_t links = onic_links_default("other");
    const onic_pipeline_config_t pipeline = {
        .rx_pool = pool, .rx_buffer = buffer, .puts_to_all = true, .links = &links};

    if (onic_transport_open(&config) != 0)
        tl_die("the transport cannot be opened");
    reached = tl_alloc((size_t)tl_size() * sizeof(onic_peer_t *));
    TL_CHECK(peers_get(MPI_COMM_WORLD, reached) == 0, "no peers");
    onic_pipeline_open(&pipeline);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!peers_await(all_reached))
        tl_die("not all are reached");
    free(reached);
    MPI_Barrier(MPI_COMM_WORLD);
}
