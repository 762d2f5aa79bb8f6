/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/**
 * @file
 * The pipeline between hosts: puts and gets of all shapes and sizes between all ranks at once, by
 * puts into granted buffers, through receive pools of all sizes; receivers that are away, and
 * senders that go away; ends that are cancelled and tickets that are withdrawn. All ranks are
 * reached that way here, those of one node, too, and without an adapter UCX puts by messages.
 */
#define _GNU_SOURCE
#include "test/mpi/testlib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ompi/constants.h"

#include "common/pipeline/shm/carrier_shm.h"
#include "common/pipeline/rma/carrier_rma.h"
#include "test/mpi/peers.h"
#include "test/mpi/pipeline_traffic.h"
#include "test/mpi/progress.h"

enum { KIB = 1 << 10, MIB = 1 << 20 };

/* ---- senders that go away -------------------------------------------------------------------- */

/** Rank 0 puts, or answers a get of rank 1. Once its end has been told of it makes no progress:
 *  rank 1 gets all nevertheless. */
static void test_leaves(move_kind_t kind, uint64_t len)
{
    static int number;
    const double end = MPI_Wtime() + MOVES_PATIENCE;
    const bool starts = tl_rank() == (kind == PUT ? 0 : 1);
    move_t m = {.kind = kind, .target = kind == PUT, .mine = NESTED, .len = len, .seed = len};

    number++;
    atomic_store(&moves.taken, 0);
    moves_open(64 * KIB, 8 * KIB);
    if (starts) {
        move_prepare(&m);
        TL_CHECK(move_start(&m), "no buffer");
    }
    if (tl_rank() == 0) {
        while ((starts ? atomic_load(&m.waits) > 1 : atomic_load(&moves.taken) < 1) &&
               MPI_Wtime() < end)
            onic_transport_progress();
        TL_CHECK(control_told(1, CONTROL_SEEN, number, MOVES_PATIENCE / 5),
                 "%s of %llu bytes: the sender is over, the receiver is not",
                 kind == PUT ? "a put" : "a get", (unsigned long long)len);
    } else if (tl_rank() == 1) {
        while ((starts ? !move_is_done(&m) : atomic_load(&moves.taken) < 1) &&
               MPI_Wtime() < end + MOVES_PATIENCE)
            onic_transport_progress();
        control_tell(0, CONTROL_SEEN, number);
    }
    if (starts) {
        while (!move_is_done(&m))
            onic_transport_progress();
        move_finish(&m);
    }
    moves_close();
    TL_CHECK(atomic_load(&moves.wrong) == 0, "wrong data");
}

/* ---- ends that do not come to their end ------------------------------------------------------ */

/** Rank 0 gives up before or while the grant is under way: rank 1 is told, and has all back. */
static void test_cancel(int progresses)
{
    move_t m = {.kind = PUT, .target = 1, .mine = NESTED, .len = 300 * KIB, .seed = 3};

    /* Before others may begin. */
    atomic_store(&moves.taken, 0);
    atomic_store(&moves.failed_targets, 0);
    moves_open(16 * KIB, 8 * KIB);
    if (tl_rank() == 0) {
        move_prepare(&m);
        TL_CHECK(move_start(&m), "no buffer");
        for (int i = 0; i < progresses; i++)
            onic_transport_progress();
        moves_cancel(&m);
        memory_free(&m.memory);
        while (!move_is_done(&m))
            onic_transport_progress();
    } else if (tl_rank() == 1) {
        const double end = MPI_Wtime() + MOVES_PATIENCE;

        while (atomic_load(&moves.taken) < 1 && MPI_Wtime() < end)
            onic_transport_progress();
        TL_CHECK(atomic_load(&moves.taken) == 1, "the receiver has come to no end");
    }
    moves_meet(MPI_COMM_WORLD);
    atomic_store(&moves.wrong, 0);
    moves_close();
}

static void never(void *arg, int status)
{
    (void)arg;
    TL_CHECK(false, "a transfer that was refused has ended: %d", status);
}

/* ---- tickets out of bounds, and messages for nobody ------------------------------------------ */

static void test_tickets(void)
{
    const int other = (tl_rank() + 1) % tl_size();
    memory_t memory = memory_make(CONTIG, 1000, 1);
    static const onic_ticket_t wrong[] = {{.buffers = 0, .len = 0, .name = 1},
                                          {.buffers = 0, .len = 999, .name = 1}};
    static const onic_ticket_t wrong_get[] = {{.buffers = 0, .len = 1000, .name = 1},
                                              {.buffers = 16, .len = 1000, .name = 1},
                                              {.buffers = 1, .len = 1001, .name = 1}};

    moves_open(16 * KIB, 4 * KIB);
    onic_transport_lock();
    for (int i = 0; i < 2; i++) {
        onic_pipeline_end_t end = memory_end(&memory, CONTIG, true, never, NULL);
        TL_CHECK(onic_pipeline_receive_locked(moves.peers[other], &wrong[i], &end) != OMPI_SUCCESS,
                 "ticket %d of a put was taken", i);
    }
    for (int i = 0; i < 3; i++) {
        onic_pipeline_end_t end = memory_end(&memory, CONTIG, false, never, NULL);
        TL_CHECK(onic_pipeline_answer_locked(moves.peers[other], &wrong_get[i], &end) !=
                     OMPI_SUCCESS,
                 "ticket %d of a get was taken", i);
    }
    /* Messages about what there is not any more. */
    for (uint32_t i = 0; i < 2000; i++) {
        const onic_rma_message_t m = {.type = (uint8_t)(ONIC_RMA_GRANT + i % 4),
                                      .flags = (uint8_t)(i * 7),
                                      .buffer = (uint16_t)(i * 31),
                                      .size = i * 1001,
                                      .to = (uint64_t)(1 + i % 3) << 32 | i % 50,
                                      .value = (uint64_t)i * 0x9e3779b97f4a7c15U};
        TL_CHECK(onic_peer_send(moves.peers[other], ONIC_AM_PIPELINE, &m,
                                i % 3 ? sizeof(m) : sizeof(m) - 1, NULL, 0, NULL, NULL) >= 0,
                 "garbage cannot be sent");
    }
    onic_transport_unlock();
    memory_free(&memory);
    moves_close();
}

static void open_wire(bool server)
{
    const onic_transport_config_t config = {.server_thread = server, .server_idle_usec = 1000};

    if (onic_transport_open(&config) != OMPI_SUCCESS)
        tl_die("the transport cannot be opened");
}

static void test_all(void)
{
    /* Before there is a server thread, which would help those that have gone away. */
    control_open(tl_rank(), tl_size());
    for (uint64_t len = KIB; len <= MIB; len *= 32) {
        test_leaves(GET, len);
        test_leaves(PUT, len);
    }
    control_close();
    open_wire(true);
    moves_pairs(4 * KIB, 4 * KIB, 40, 100 * KIB);
    moves_pairs(12 * KIB, 4 * KIB, 60, 200 * KIB);
    moves_pairs(256 * KIB, 32 * KIB, 60, MIB);
    moves_pairs(0, 0, 40, 2 * MIB);
    moves_away(true, false);
    test_cancel(0);
    test_cancel(3);
    test_cancel(1000);
    moves_withdraw();
    test_tickets();
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    onic_transport_close();
}

int main(int argc, char **argv)
{
    onic_pipeline_announce(ONIC_PIPELINE_RMA_ALWAYS);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    open_wire(false);
    moves.peers = tl_alloc((size_t)tl_size() * sizeof(onic_peer_t *));
    moves.mpi_thread = pthread_self();
    moves.puts = true;
    TL_CHECK(peers_get(MPI_COMM_WORLD, moves.peers) == 0, "no peers");
    onic_transport_set_fns(ONIC_AM_COLL, &(onic_transport_fns_t){.am = move_handle});
    test_all();
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    onic_transport_flush();
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    onic_transport_close();
    free(moves.peers);
    return tl_finish();
}
