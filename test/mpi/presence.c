/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* timeout: 120 */
/* ranks: 2-4 */
/**
 * @file
 * Signs of life between the processes of a node: rank 0 watches the page of each rank near it while
 * that waits in MPI, sleeps, takes the wire's lock again and again without progress, and is back.
 */
#include "test/mpi/testlib.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/wire/presence.h"
#include "common/wire/wire.h"
#include "test/mpi/meet.h"

/** No wait of this program takes longer where all is well, be the machine ever so busy. */
#define PATIENCE 30.0
/** After so long without progress the server thread takes over: long enough that a thread which
 *  is kept from its processor for a moment is not taken for one that is away. */
#define IDLE_USEC 5000
/** So many looks in a row, a millisecond apart, must agree: who has only lost its processor is back
 *  before. */
#define LOOKS 100

typedef enum task { WAIT, SLEEP, LOCK, QUIT } task_t;

static onic_peer_t **peers;
static meet_t board;

/* ---- the watched ---------------------------------------------------------------------------- */

/** Out of MPI until rank 0 has seen it. */
static void stay_away(task_t task, long until)
{
    const double end = MPI_Wtime() + PATIENCE;
    while (atomic_load(&board.entered[0]) < until && MPI_Wtime() < end) {
        if (task == LOCK) {
            onic_wire_lock();
            onic_wire_unlock();
        }
        usleep(task == LOCK ? 100 : 1000);
    }
}

static void obey(void)
{
    for (;;) {
        long word[2]; /* task, and the number on the board that ends it */
        TL_MPI(MPI_Recv(word, 2, MPI_LONG, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        switch ((task_t)word[0]) {
        case WAIT:
            break;
        case SLEEP:
        case LOCK:
            stay_away((task_t)word[0], word[1]);
            break;
        case QUIT:
            return;
        }
    }
}

/* ---- the watcher ---------------------------------------------------------------------------- */

static void order(int to, task_t task)
{
    long word[2] = {task, board.mine + 1};
    TL_MPI(MPI_Send(word, 2, MPI_LONG, to, 0, MPI_COMM_WORLD));
}

static void watch(int rank, const onic_presence_t *presence, bool away, const char *what)
{
    const uint64_t fresh = (uint64_t)(onic_ticks_per_usec() * IDLE_USEC);
    const double end = MPI_Wtime() + PATIENCE;
    int seen = 0;
    while (seen < (away ? LOOKS : 1) && MPI_Wtime() < end) {
        const bool so = onic_presence_is_away(presence) == away &&
                        onic_presence_is_fresh(presence, fresh) == !away;
        seen = so ? seen + 1 : 0;
        usleep(1000);
    }
    TL_CHECK(seen >= (away ? LOOKS : 1), "rank %d was not seen %s: away %d, fresh %d", rank, what,
             onic_presence_is_away(presence), onic_presence_is_fresh(presence, fresh));
}

static const onic_presence_t *presence_of(int rank)
{
    onic_wire_lock();
    const onic_presence_t *presence = onic_peer_presence(peers[rank]);
    const bool near = onic_peer_can_cma(peers[rank]);
    onic_wire_unlock();
    TL_CHECK((presence != NULL) == near, "rank %d: single copy %d, but its page %p", rank, near,
             (const void *)presence);
    return presence;
}

static void watch_rank(int rank)
{
    static const struct {
        task_t task;
        const char *name;
    } leave[] = {{SLEEP, "asleep"}, {LOCK, "away, though it takes locks"}};
    const onic_presence_t *presence = presence_of(rank);
    for (size_t i = 0; presence != NULL && i < sizeof(leave) / sizeof(leave[0]); i++) {
        order(rank, WAIT);
        watch(rank, presence, false, "waiting in MPI");
        order(rank, leave[i].task);
        watch(rank, presence, true, leave[i].name);
        meet_enter(&board);
        watch(rank, presence, false, "back in MPI");
    }
    order(rank, QUIT);
}

int main(int argc, char **argv)
{
    const onic_wire_config_t config = {.server_thread = true,
                                       .server_idle_usec = IDLE_USEC,
                                       .single_copy = true,
                                       .tcp_seg_size = 65536};

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    board = meet_new(MPI_COMM_WORLD);
    peers = tl_alloc((size_t)tl_size() * sizeof(onic_peer_t *));
    TL_CHECK(onic_wire_open(&config) == 0, "the wire does not open");
    TL_CHECK(onic_wire_get_peers(MPI_COMM_WORLD, peers) == 0, "no peers");
    onic_wire_want_server(true);
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (tl_rank() == 0) {
        for (int rank = 1; rank < tl_size(); rank++) {
            watch_rank(rank);
        }
    } else {
        obey();
    }
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    onic_wire_want_server(false);
    onic_wire_put_peers(peers, tl_size());
    free(peers);
    onic_wire_flush();
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    onic_wire_close();
    meet_free(&board);
    return tl_finish();
}
