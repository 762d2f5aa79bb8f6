/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* threads: multiple */
/**
 * @file
 * The pipeline without a component, among the processes of one node: puts and gets between all of
 * them at once, of all shapes and sizes, through receive pools of all sizes; receivers that are
 * away; threads; ends that are cancelled; tickets that are no tickets.
 */
#define _GNU_SOURCE
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ompi/constants.h"

#include "common/pipeline/shm/carrier_shm.h"
#include "common/transport/shm/presence.h"
#include "test/mpi/peers.h"
#include "test/mpi/pipeline_traffic.h"

enum { KIB = 1 << 10, MIB = 1 << 20, THREADS = 3 };

/** Progresses until that many transfers have come to their end here. */
static void serve_until(long taken)
{
    const double end = MPI_Wtime() + MOVES_PATIENCE;

    while (atomic_load(&moves.taken) < taken && MPI_Wtime() < end)
        onic_transport_progress();
    TL_CHECK(atomic_load(&moves.taken) == taken, "%ld of %ld transfers came to their end",
             atomic_load(&moves.taken), taken);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *thread_main(void *arg)
{
    tl_rng_t rng = tl_rng(tl_seed(), 100 + (uint64_t)(uintptr_t)arg + 10 * (uint64_t)tl_rank());

    moves_run(&rng, 30 * tl_factor(), 300 * KIB);
    return NULL;
}

static void test_threads(void)
{
    pthread_t thread[THREADS];

    moves_open(64 * KIB, 4 * KIB);
    for (uintptr_t i = 0; i < THREADS; i++)
        TL_CHECK(pthread_create(&thread[i], NULL, thread_main, (void *)i) == 0, "no thread");
    for (int i = 0; i < THREADS; i++)
        TL_CHECK(pthread_join(thread[i], NULL) == 0, "no end of a thread");
    moves_meet(MPI_COMM_WORLD);
    TL_CHECK(atomic_load(&moves.wrong) == 0, "%ld transfers were wrong at their target",
             atomic_load(&moves.wrong));
    moves_close();
}

/* ---- ends that do not come to their end ------------------------------------------------------ */

/** Rank 0 gives up: rank 1 is told. The other way round: rank 0 does not notice. */
static void test_cancel(bool sender)
{
    move_t m = {.kind = sender ? PUT : GET, .target = 1, .mine = NESTED, .len = MIB, .seed = 3};
    int status = -1;

    /* Before others can send to me. */
    atomic_store(&moves.taken, 0);
    atomic_store(&moves.failed_targets, 0);
    moves_open(8 * KIB, 4 * KIB);
    if (tl_rank() == 0) {
        move_prepare(&m);
        TL_CHECK(move_start(&m), "no buffer");
        TL_CHECK(!move_is_done(&m), "it is done although there was no room");
        moves_cancel(&m);
        status = m.status;
        TL_CHECK(status != OMPI_SUCCESS, "an end that was cancelled has succeeded");
        memory_free(&m.memory);
        TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
        /* The target's answer comes still. */
        const double end = MPI_Wtime() + MOVES_PATIENCE;
        while (!move_is_done(&m) && MPI_Wtime() < end)
            onic_transport_progress();
        TL_CHECK(move_is_done(&m), "the other side says nothing");
    } else {
        /* Handles nothing before it is cancelled; the library of messages may be progressed. */
        onic_transport_lock();
        usleep(20000);
        onic_transport_unlock();
        if (tl_rank() == 1) {
            serve_until(1);
            TL_CHECK(atomic_load(&moves.failed_targets) == (sender ? 1 : 0),
                     "%ld errors at the target", atomic_load(&moves.failed_targets));
        }
        TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    }
    atomic_store(&moves.wrong, 0);
    moves_close();
}

static int refused(onic_peer_t *from, uint64_t buffers, uint64_t len)
{
    const onic_ticket_t ticket = {.buffers = buffers, .len = len};

    onic_transport_lock();
    const int rc = onic_pipeline_receive_locked(from, &ticket, NULL);
    onic_transport_unlock();
    return rc;
}

/** Tickets out of bounds, or of buffers that nobody has. */
static void test_tickets(void)
{
    onic_peer_t *peer = moves.peers[(tl_rank() + 1) % tl_size()];

    moves_open(16 * KIB, 4 * KIB);
    const onic_pool_t *pool = &onic_node_state.rx_pool.pool;
    const uint64_t leased = onic_pool_take(pool, 2), theirs = leased & -leased;
    TL_CHECK(refused(peer, 0, 1) != OMPI_SUCCESS, "no buffers");
    TL_CHECK(refused(peer, onic_pool_all(pool), 1) != OMPI_SUCCESS, "buffers of nobody");
    TL_CHECK(refused(peer, UINT64_MAX, 1) != OMPI_SUCCESS, "buffers that there are not");
    TL_CHECK(refused(peer, theirs, 100) != OMPI_SUCCESS, "a buffer without memory");
    onic_transport_lock();
    TL_CHECK(onic_rx_pool_prepare(&onic_node_state.rx_pool, theirs, true) == theirs,
             "no memory for a buffer");
    onic_transport_unlock();
    TL_CHECK(refused(peer, theirs, 0) != OMPI_SUCCESS, "no bytes");
    TL_CHECK(refused(peer, theirs, 100) == OMPI_SUCCESS, "a good one");
    /* Bytes beyond the buffer end it, and the buffer stays where its sender may still write to
     * it. */
    atomic_store(&pool->buffer[__builtin_ctzll(theirs)].word, UINT64_C(1) << 32 | (4 * KIB + 1));
    while (!onic_pipeline_idle())
        onic_transport_progress();
    TL_CHECK(onic_pool_has_leased(pool, theirs), "a buffer that may be written to was given back");
    onic_pool_release(pool, leased);
    moves_close();
}

/* ---- main ------------------------------------------------------------------------------------ */

static void run_tests(void)
{
    const uint64_t most = tl_slow() ? MIB : 8 * MIB;

    moves_count();
    moves_pairs(0, 0, 40, most);
    moves_pairs(1, 0, 20, MIB);
    moves_pairs(24 * KIB, 8 * KIB, 30, 2 * MIB);
    moves_pairs(MIB, 16 * KIB, 30, most);
    test_threads();
    moves_away(false, true);
    moves_away(true, true);
    test_cancel(true);
    test_cancel(false);
    moves_withdraw();
    test_tickets();
}

int main(int argc, char **argv)
{
    const onic_transport_config_t config = {.server_thread = true, .server_idle_usec = 200};
    onic_peer_t *peers[64];

    tl_init(&argc, &argv, MPI_THREAD_MULTIPLE);
    tl_need_ranks(2, 64);
    if (!tl_one_host())
        tl_skip("all ranks must be on one node");
    moves.peers = peers;
    moves.mpi_thread = pthread_self();
    TL_CHECK(onic_transport_open(&config) == 0, "the transport cannot be opened");
    onic_transport_set_fns(ONIC_AM_COLL, &(onic_transport_fns_t){.am = move_handle});
    TL_CHECK(peers_get(MPI_COMM_WORLD, peers) == 0, "no peers");
    run_tests();
    onic_transport_flush();
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    onic_transport_close();
    return tl_finish();
}
