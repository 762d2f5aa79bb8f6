/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Chunks that fill buffers, and what is counted, between rank 0 and a rank 1 that is held
 *  back so that each of them waits once at least. See pipeline_traffic.h. */
#include "test/mpi/pipeline_traffic.h"

#include <unistd.h>

#include "ompi/constants.h"

#include "common/pipeline/shm/carrier_shm.h"
#include "test/mpi/meet.h"

enum { BUFFER = 32 << 10, RX_POOL = 16 * BUFFER, LEASE = ONIC_POOL_ROUND / 2, LEN = 1 << 20 };

static meet_t board;

/** Waits without any progress until a rank is as far as this one has to be. */
static void wait_for(int rank, long entered)
{
    while (meet_entered(&board, rank) < entered)
        usleep(100);
}

/** Fills its lease, and goes on when rank 1 has emptied it. Elements are whole, so that chunks are
 *  as long as they should be. */
static void send_one(unsigned long long chunks)
{
    move_t m = {.kind = PUT, .target = 1, .mine = CONTIG, .theirs = CALLED, .len = LEN, .seed = 7};
    const onic_pipeline_counters_t before = onic_pipeline_counters;
    const double end = MPI_Wtime() + MOVES_PATIENCE;

    move_prepare(&m);
    TL_CHECK(move_start(&m), "no buffer");
    wait_for(1, meet_enter(&board));
    while (!move_is_done(&m) && MPI_Wtime() < end)
        onic_transport_progress();
    TL_CHECK(move_is_done(&m) && m.status == OMPI_SUCCESS, "a put did not come to its end");
    move_finish(&m);
    TL_CHECK(onic_pipeline_counters.chunks - before.chunks == chunks,
             "%llu chunks in place of %llu", onic_pipeline_counters.chunks - before.chunks, chunks);
    TL_CHECK(onic_pipeline_counters.gaps > before.gaps, "no gap");
    TL_CHECK(onic_pipeline_counters.stalls == before.stalls, "a sender has stalled");
}

/** Buffers of mine that have been emptied once at least, of those that somebody has. */
static int emptied(void)
{
    const onic_pool_t *pool = &onic_node_state.rx_pool.pool;
    int n = 0;

    for (unsigned i = 0; i < pool->nbuffers; i++)
        n += onic_pool_has_leased(pool, UINT64_C(1) << i) &&
             atomic_load(&pool->buffer[i].acknowledged) != 0;
    return n;
}

/** Is not there before the lease is full, empties it, and looks for more. */
static void receive_one(void)
{
    const onic_pipeline_counters_t before = onic_pipeline_counters;
    const long taken = atomic_load(&moves.taken);
    const double end = MPI_Wtime() + MOVES_PATIENCE;

    onic_transport_lock();
    wait_for(0, meet_entered(&board, 1) + 1);
    onic_transport_unlock();
    while (emptied() < LEASE && MPI_Wtime() < end)
        onic_transport_progress();
    onic_transport_progress();
    (void)meet_enter(&board);
    while (atomic_load(&moves.taken) == taken && MPI_Wtime() < end)
        onic_transport_progress();
    TL_CHECK(atomic_load(&moves.taken) == taken + 1, "a put did not come");
    TL_CHECK(onic_pipeline_counters.stalls > before.stalls, "no stall");
    TL_CHECK(onic_pipeline_counters.gaps == before.gaps, "a receiver has had a gap");
    TL_CHECK(onic_pipeline_counters.buffers == LEASE, "%llu buffers in use",
             onic_pipeline_counters.buffers);
}

/** Every chunk fills a buffer. */
static void transfer_in_buffers(void)
{
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (tl_rank() == 0)
        send_one(LEN / BUFFER);
    else if (tl_rank() == 1)
        receive_one();
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

/** Leases all there is, and one more. */
static void refuse_one(void)
{
    memory_t memory = memory_make(CONTIG, LEN, 1);
    const unsigned long long before = onic_pipeline_counters.refused;
    onic_transfer_t *t[ONIC_RX_BUFFERS_MAX];
    onic_ticket_t ticket;
    int n = 0;

    onic_transport_lock();
    for (;;) {
        onic_pipeline_end_t end = memory_end(&memory, CONTIG, true, move_ended, NULL);
        t[n] = onic_pipeline_expect_locked(moves.peers[1], &end, &ticket);
        if (t[n] == NULL) {
            onic_layout_fini(&end.layout);
            break;
        }
        n++;
    }
    TL_CHECK(n > 0 && onic_pipeline_counters.refused == before + 1, "%d leases, %llu refused", n,
             onic_pipeline_counters.refused - before);
    while (n > 0)
        onic_pipeline_withdraw_locked(t[--n]);
    onic_transport_unlock();
    memory_free(&memory);
}

void moves_count(void)
{
    board = meet_new(MPI_COMM_WORLD);
    moves_open(RX_POOL, BUFFER);
    transfer_in_buffers();
    if (tl_rank() == 0)
        refuse_one();
    moves_close();
    meet_free(&board);
    atomic_store(&moves.taken, 0);
}
