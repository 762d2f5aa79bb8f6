/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 3 */
/* mpirun: --enable-recovery --mca orte_allowed_exit_without_sync 1 */
/* leaks: expected */
/**
 * @file
 * The pipeline between hosts: a rank is killed in the middle of its puts and gets. Whoever it had
 * to do with keeps the buffers that it had for it, since it might still write there, has all others
 * back and goes on with those who live.
 *
 * Over TCP, on one host too, so that UCX knows of the death; each rank is the child of the process
 * that the launcher knows.
 */
#define _GNU_SOURCE
#include "test/mpi/meet.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ompi/constants.h"

#include "common/pipeline/shm/carrier_shm.h"
#include "common/pipeline/rma/carrier_rma.h"
#include "test/mpi/peers.h"
#include "test/mpi/pipeline_traffic.h"

enum { KIB = 1 << 10, MIB = 1 << 20, VICTIM = 1, MOVES = 6 };

static void progress(double seconds)
{
    const double end = MPI_Wtime() + seconds;

    while (MPI_Wtime() < end)
        onic_transport_progress();
}

/** Its puts have come, as far as they had left it. */
static atomic_bool has_stopped;

static void on_stop(onic_peer_t *from, const void *header, size_t header_len, const void *data,
                    size_t len, onic_rndv_t *rndv)
{
    (void)from;
    (void)header;
    (void)header_len;
    (void)data;
    (void)len;
    (void)rndv;
    atomic_store(&has_stopped, true);
}

/** Nothing more leaves, since the transport is kept locked, and what has left arrives: UCX's own
 * puts by messages end the process that is to answer one of a connection that is lost. Buffers are
 * held, and more is to come. */
static void stop(void)
{
    const double end = MPI_Wtime() + MOVES_PATIENCE;
    MPI_Request heard[2];
    int all = 0;

    onic_transport_lock();
    for (int i = 0; i < 2; i++) {
        (void)onic_peer_send(moves.peers[2 * i], ONIC_AM_OSC, "", 1, NULL, 0, NULL, NULL);
        TL_MPI(MPI_Irecv(NULL, 0, MPI_BYTE, 2 * i, 0, MPI_COMM_WORLD, &heard[i]));
    }
    while (!all && MPI_Wtime() < end)
        TL_MPI(MPI_Testall(2, heard, &all, MPI_STATUSES_IGNORE));
}

/** Puts to and gets from both of the others, until it dies in the middle. */
static void die(void)
{
    static move_t m[MOVES];

    for (int i = 0; i < MOVES; i++) {
        m[i] = (move_t){.kind = i % 3 == 2 ? GET : PUT,
                        .target = i % 2 * 2,
                        .mine = BLOCKS_64,
                        .theirs = NESTED,
                        .len = 16 * MIB,
                        .seed = (uint64_t)i};
        move_prepare(&m[i]);
        (void)move_start(&m[i]);
    }
    progress(0.01);
    for (int i = 0; i < MOVES; i++)
        if (m[i].transfer != NULL && move_is_done(&m[i]))
            _exit(3); /* too fast for this test */
    stop();
    raise(SIGKILL);
}

/** Buffers of mine that it had. */
static uint64_t lost_buffers(void)
{
    uint64_t lost = 0;

    onic_transport_lock();
    for (const onic_rma_peer_t *p = onic_rma_state.peers; p != NULL; p = p->next)
        lost |= p->asker.lost ? p->asker.held : 0;
    onic_transport_unlock();
    return lost;
}

/** With the other one who lives. */
static void go_on(int rounds)
{
    for (int i = 0; i < rounds; i++) {
        move_t m = {.kind = i % 2 ? PUT : GET,
                    .target = 2 - tl_rank(),
                    .mine = BLOCKS_8,
                    .theirs = BLOCKS_1024,
                    .len = 200 * KIB + (uint64_t)i,
                    .seed = (uint64_t)i};
        const double end = MPI_Wtime() + MOVES_PATIENCE;
        bool done = false;

        move_prepare(&m);
        while (!done && MPI_Wtime() < end) {
            if (move_start(&m)) {
                while (!move_is_done(&m) && MPI_Wtime() < end)
                    onic_transport_progress();
                done = move_is_done(&m) && !m.refused;
            }
            onic_transport_progress();
        }
        if (!TL_CHECK(done && m.status == OMPI_SUCCESS, "operation %d of those who live", i))
            tl_die("operations hang");
        move_finish(&m);
    }
}

static void live(MPI_Comm living)
{
    double begun = MPI_Wtime();
    bool heard = false;

    moves.may_fail = true;
    /* While it dies and after. */
    while (MPI_Wtime() < begun + 1.0 || !heard) {
        go_on(2);
        if (!heard && atomic_load(&has_stopped)) {
            heard = true;
            TL_MPI(MPI_Send(NULL, 0, MPI_BYTE, VICTIM, 0, MPI_COMM_WORLD));
            begun = MPI_Wtime();
        }
        if (!TL_CHECK(MPI_Wtime() < begun + MOVES_PATIENCE, "who is to die does not stop"))
            break;
    }
    moves_meet(living);
    moves_settle(lost_buffers);
    TL_CHECK(lost_buffers() != 0, "the dead one had no buffer");
    TL_CHECK(atomic_load(&moves.failed_targets) > 0, "nothing of the dead one's was under way");
    TL_CHECK(!moves_reached(VICTIM), "the dead one is still reached");
    moves_meet(living);
    go_on(10);
    moves_meet(living);
}

int main(int argc, char **argv)
{
    onic_transport_config_t config = {.tls = "tcp,self", .server_idle_usec = 1000};
    MPI_Comm living;

    meet_begin_as_child();
    onic_pipeline_announce(ONIC_PIPELINE_RMA_ALWAYS);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    const bool one_host = tl_one_host();
    TL_MPI(MPI_Comm_split(MPI_COMM_WORLD, tl_rank() == VICTIM ? MPI_UNDEFINED : 0, 0, &living));
    config.server_thread = tl_rank() != VICTIM;
    if (onic_transport_open(&config) != OMPI_SUCCESS)
        tl_die("the transport cannot be opened");
    moves.peers = tl_alloc((size_t)tl_size() * sizeof(onic_peer_t *));
    moves.mpi_thread = pthread_self();
    moves.puts = true;
    TL_CHECK(peers_get(MPI_COMM_WORLD, moves.peers) == 0, "no peers");
    onic_transport_set_fns(ONIC_AM_COLL, &(onic_transport_fns_t){.am = move_handle});
    onic_transport_set_fns(ONIC_AM_OSC, &(onic_transport_fns_t){.am = on_stop});
    moves_open(64 * KIB, 8 * KIB);
    progress(0.2);
    if (tl_rank() == VICTIM)
        die();
    live(living);
    long failed = tl_failed();
    TL_MPI(MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_LONG, MPI_SUM, living));
    onic_pipeline_close();
    onic_transport_flush();
    TL_MPI(MPI_Barrier(living));
    onic_transport_close();
    TL_MPI(MPI_Comm_free(&living));
    free(moves.peers);
    if (one_host) {
        MPI_Finalize();
        return failed == 0 ? TL_EXIT_OK : TL_EXIT_FAILED;
    }
    /* Its fence among the launcher's daemons waits for the dead one, too. */
    fflush(NULL);
    _exit(failed == 0 ? TL_EXIT_OK : TL_EXIT_FAILED);
}
