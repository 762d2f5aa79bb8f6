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
 *
 * With the argument `speed` it prints how fast two processes are instead, and asserts nothing.
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

static bool reached(int rank)
{
    onic_transport_lock();
    const bool yes = onic_pipeline_reaches_locked(moves.peers[rank]);
    onic_transport_unlock();
    return yes;
}

/** The first question makes a peer known. */
static void open_pipeline(size_t rx_pool, size_t buffer)
{
    const onic_links_t links = onic_links_default("other");
    const onic_pipeline_config_t config = {
        .rx_pool = rx_pool, .rx_buffer = buffer, .rma = ONIC_PIPELINE_RMA_ALWAYS, .links = &links};
    const double end = MPI_Wtime() + MOVES_PATIENCE;
    bool all = false;
    int done = 0;
    MPI_Request request;

    TL_CHECK(onic_pipeline_open(&config) == OMPI_SUCCESS, "the pipeline cannot be opened");
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    while (!all && MPI_Wtime() < end) {
        all = true;
        for (int i = 0; i < tl_size(); i++)
            all = (i == tl_rank() || reached(i)) && all;
        onic_transport_progress();
    }
    if (!TL_CHECK(all, "not all are reached") || !TL_CHECK(!reached(tl_rank()), "reached itself"))
        tl_die("peers");
    TL_MPI(MPI_Ibarrier(MPI_COMM_WORLD, &request));
    while (!done) {
        TL_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        onic_transport_progress();
    }
}

static uint64_t free_buffers(void)
{
    return atomic_load(&onic_node_state.rx_pool.pool.words->free);
}

static bool is_clean(void)
{
    const uint64_t all = onic_pool_all(&onic_node_state.rx_pool.pool);

    onic_transport_lock();
    const bool clean = onic_rma_records.used == 0 && onic_pipeline_idle() &&
                       free_buffers() == all && atomic_load(&onic_rma_state.bounce_free) == all &&
                       onic_rma_state.grant_queue.first == NULL;
    onic_transport_unlock();
    return clean;
}

/** Progresses until all ranks are here. */
static void meet(void)
{
    MPI_Request request;
    int all = 0;

    TL_MPI(MPI_Ibarrier(MPI_COMM_WORLD, &request));
    while (!all) {
        TL_MPI(MPI_Test(&request, &all, MPI_STATUS_IGNORE));
        onic_transport_progress();
    }
}

/** Nothing is left when nothing is under way any more. */
static void close_pipeline(void)
{
    const double end = MPI_Wtime() + MOVES_PATIENCE;

    meet();
    while (!is_clean() && MPI_Wtime() < end)
        onic_transport_progress();
    TL_CHECK(is_clean(), "left: buffers %llx of mine, %llx to pack into%s",
             (unsigned long long)free_buffers(),
             (unsigned long long)atomic_load(&onic_rma_state.bounce_free),
             onic_rma_state.grant_queue.first != NULL ? ", and requests" : "");
    meet();
    onic_pipeline_close();
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

/* ---- everybody to everybody ------------------------------------------------------------------ */

static void test_all_pairs(size_t rx_pool, size_t buffer, int n, uint64_t most)
{
    tl_rng_t rng = tl_rng(tl_seed() + rx_pool, (uint64_t)tl_rank());

    open_pipeline(rx_pool, buffer);
    moves_run(&rng, n * tl_factor(), most);
    meet();
    TL_CHECK(atomic_load(&moves.wrong) == 0, "%ld transfers were wrong at their target",
             atomic_load(&moves.wrong));
    close_pipeline();
}

/* ---- receivers that are away ----------------------------------------------------------------- */

/** Everybody but rank 0 is away from MPI; their helper threads receive and answer. */
static void test_away(void)
{
    open_pipeline(64 * KIB, 8 * KIB);
    onic_transport_want_server(true);
    atomic_store(&moves.taken, 0);
    atomic_store(&moves.foreign, 0);
    meet();
    if (tl_rank() == 0) {
        usleep(10000);
        for (int i = 0; i < 4 * (tl_size() - 1); i++) {
            move_t m = {.kind = i % 2 ? PUT : GET,
                        .target = 1 + i / 4,
                        .mine = BLOCKS_8,
                        .theirs = NESTED,
                        .len = 100 * KIB + (uint64_t)i,
                        .seed = (uint64_t)i};
            const double end = MPI_Wtime() + MOVES_PATIENCE;

            move_prepare(&m);
            TL_CHECK(move_start(&m), "no buffer");
            while (!move_is_done(&m) && MPI_Wtime() < end)
                onic_transport_progress();
            TL_CHECK(move_is_done(&m) && m.status == OMPI_SUCCESS, "one who is away: %d", i);
            move_finish(&m);
        }
    } else {
        for (int i = 0; i < 6000 && atomic_load(&moves.taken) < 4; i++)
            usleep(10000);
        TL_CHECK(atomic_load(&moves.taken) == 4 && atomic_load(&moves.foreign) == 4,
                 "%ld of 4 are done, %ld by the helper thread", atomic_load(&moves.taken),
                 atomic_load(&moves.foreign));
        TL_CHECK(atomic_load(&moves.wrong) == 0, "wrong data");
    }
    meet();
    onic_transport_want_server(false);
    close_pipeline();
}

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
    open_pipeline(64 * KIB, 8 * KIB);
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
    close_pipeline();
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
    open_pipeline(16 * KIB, 8 * KIB);
    if (tl_rank() == 0) {
        bool all = false;

        move_prepare(&m);
        TL_CHECK(move_start(&m), "no buffer");
        for (int i = 0; i < progresses; i++)
            onic_transport_progress();
        while (!all) {
            onic_transport_lock();
            all = onic_pipeline_cancel_locked(&m);
            onic_transport_unlock();
        }
        memory_free(&m.memory);
        while (!move_is_done(&m))
            onic_transport_progress();
    } else if (tl_rank() == 1) {
        const double end = MPI_Wtime() + MOVES_PATIENCE;

        while (atomic_load(&moves.taken) < 1 && MPI_Wtime() < end)
            onic_transport_progress();
        TL_CHECK(atomic_load(&moves.taken) == 1, "the receiver has come to no end");
    }
    meet();
    atomic_store(&moves.wrong, 0);
    close_pipeline();
}

static void never(void *arg, int status)
{
    (void)arg;
    TL_CHECK(false, "a transfer that was withdrawn has ended: %d", status);
}

static void test_withdraw(void)
{
    memory_t memory = memory_make(IRREGULAR, 100 * KIB, 1);
    const int other = (tl_rank() + 1) % tl_size();
    onic_ticket_t ticket;
    int had = 0;

    open_pipeline(16 * KIB, 4 * KIB);
    for (int i = 0; i < 100; i++) {
        onic_pipeline_end_t end = memory_end(&memory, IRREGULAR, i % 2, never, NULL);
        onic_transport_lock();
        onic_transfer_t *t = i % 2 ? onic_pipeline_expect_locked(moves.peers[other], &end, &ticket)
                                   : onic_pipeline_send_locked(moves.peers[other], &end, &ticket);
        onic_transport_unlock();
        if (t != NULL && i % 4 == 0)
            onic_pipeline_run(t);
        onic_transport_lock();
        if (t != NULL) {
            onic_pipeline_withdraw_locked(t);
            had++;
        }
        onic_transport_unlock();
        onic_transport_progress();
        if (t == NULL)
            onic_layout_fini(&end.layout);
    }
    TL_CHECK(had >= 50, "only %d of 100 could be had", had);
    memory_free(&memory);
    close_pipeline();
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

    open_pipeline(16 * KIB, 4 * KIB);
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
    close_pipeline();
}

/* ---- speed ----------------------------------------------------------------------------------- */

static void print_speed(shape_t shape, const char *name, uint64_t len)
{
    double best = 1e9;

    for (int round = 0; round < 7 && tl_rank() == 0; round++) {
        move_t m = {.kind = PUT, .target = 1, .mine = shape, .theirs = shape, .len = len};
        move_prepare(&m);
        const double begun = MPI_Wtime();
        for (int i = 0; i < 8; i++) {
            while (!move_start(&m))
                onic_transport_progress();
            while (!move_is_done(&m))
                onic_transport_progress();
        }
        const double s = (MPI_Wtime() - begun) / 8;
        best = s < best ? s : best;
        move_finish(&m);
    }
    meet();
    if (tl_rank() == 0) {
        printf("%-8s %8llu bytes: %8.1f us, %8.1f MB/s\n", name, (unsigned long long)len,
               best * 1e6, (double)len / best / 1e6);
    }
}

static void speed(void)
{
    moves.checks = false;
    open_pipeline(0, 0);
    for (uint64_t len = 16 * KIB; len <= 4 * MIB; len *= 4) {
        print_speed(CONTIG, "contig", len);
        print_speed(BLOCKS_8, "8 B", len);
        print_speed(BLOCKS_1024, "1 KiB", len);
    }
    close_pipeline();
    moves_free_targets();
}

static void open_wire(bool server)
{
    const onic_transport_config_t config = {
        .server_thread = server, .server_idle_usec = 1000, .tcp_seg_size = 65536};

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
    test_all_pairs(4 * KIB, 4 * KIB, 40, 100 * KIB);
    test_all_pairs(12 * KIB, 4 * KIB, 60, 200 * KIB);
    test_all_pairs(256 * KIB, 32 * KIB, 60, MIB);
    test_all_pairs(0, 0, 40, 2 * MIB);
    test_away();
    test_cancel(0);
    test_cancel(3);
    test_cancel(1000);
    test_withdraw();
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
    moves.checks = true;
    TL_CHECK(peers_get(MPI_COMM_WORLD, moves.peers) == 0, "no peers");
    onic_transport_set_fns(ONIC_AM_COLL, &(onic_transport_fns_t){.am = move_handle});
    if (argc > 1 && strcmp(argv[1], "speed") == 0)
        speed();
    else
        test_all();
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    peers_put(moves.peers, tl_size());
    onic_transport_flush();
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    onic_transport_close();
    free(moves.peers);
    return tl_finish();
}
