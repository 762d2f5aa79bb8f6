/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/**
 * @file
 * Signs of life between the processes of a node. Rank 0 watches the page of each rank near it while
 * that is blocked in calls of MPI, of point-to-point, collective and one-sided communication, looks
 * into MPI now and then, sleeps, computes, and takes the transport's lock again and again without
 * progress.
 */
#include "test/mpi/testlib.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/transport/shm/presence.h"
#include "common/transport/transport.h"
#include "test/mpi/peers.h"
#include "test/mpi/meet.h"

/** No wait of this program takes longer where all is well, be the machine ever so busy. */
#define PATIENCE TL_PATIENCE
/** After so long without progress the server thread takes over: long enough that a thread which
 *  is kept from its processor for a moment is not taken for one that is away. */
#define IDLE_USEC 5000
/** So many looks in a row, a millisecond apart, must find it away: who has only lost its processor
 *  is back before. */
#define AWAY_LOOKS 100
/** And so many, in all, present, or with a new sign of life. */
#define PRESENT_LOOKS 10

typedef enum task {
    RECV,
    WAIT,
    BARRIER,
    WIN_LOCK,
    FLUSH,
    PROBE,
    SLEEP,
    COMPUTE,
    LOCK,
    QUIT
} task_t;

/** How a rank looks that does this, from a moment after it has begun. */
static const struct {
    const char *name;
    enum { PRESENT, NOW_AND_THEN, AWAY } looks;
} tasks[] = {
    [RECV] = {"in MPI_Recv", PRESENT},
    [WAIT] = {"in MPI_Wait", PRESENT},
    [BARRIER] = {"in MPI_Barrier", PRESENT},
    [WIN_LOCK] = {"in MPI_Win_lock", PRESENT},
    [FLUSH] = {"in MPI_Win_flush", PRESENT},
    [PROBE] = {"calling MPI_Iprobe now and then", NOW_AND_THEN},
    [SLEEP] = {"asleep", AWAY},
    [COMPUTE] = {"computing", AWAY},
    [LOCK] = {"away, though it takes locks", AWAY},
};

static onic_peer_t **peers;
static MPI_Comm *pairs; /* of rank 0 with each other one */
static MPI_Win win;
static meet_t board;

/* ---- the watched ---------------------------------------------------------------------------- */

/** Not blocked in MPI until rank 0 has seen it. */
static void stay_away(task_t task, long until)
{
    const double end = MPI_Wtime() + PATIENCE;
    while (meet_entered(&board, 0) < until && MPI_Wtime() < end) {
        int flag;
        if (task == LOCK) {
            onic_transport_lock();
            onic_transport_unlock();
        } else if (task == PROBE) {
            TL_MPI(MPI_Iprobe(0, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        }
        if (task != COMPUTE)
            usleep(task == LOCK ? 100 : 1000);
    }
}

static void block(task_t task)
{
    static const char data[1000];
    MPI_Request request;
    int nothing;
    switch (task) {
    case RECV:
        TL_MPI(MPI_Recv(&nothing, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        break;
    case WAIT:
        TL_MPI(MPI_Irecv(&nothing, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &request));
        TL_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
        break;
    case BARRIER:
        TL_MPI(MPI_Barrier(pairs[tl_rank()]));
        break;
    case WIN_LOCK:
        TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        TL_MPI(MPI_Win_unlock(0, win));
        break;
    default:
        TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOCHECK, win));
        TL_MPI(MPI_Put(data, sizeof(data), MPI_BYTE, 0, 0, sizeof(data), MPI_BYTE, win));
        TL_MPI(MPI_Win_flush(0, win));
        TL_MPI(MPI_Win_unlock(0, win));
        break;
    }
}

/** Writes an odd number on the board while it does what it is told. */
static void obey(void)
{
    for (;;) {
        long word[2]; /* task, and the number on the board that ends it */
        TL_MPI(MPI_Recv(word, 2, MPI_LONG, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        const task_t task = (task_t)word[0];
        if (task == QUIT)
            return;
        (void)meet_enter(&board);
        if (tasks[task].looks == PRESENT)
            block(task);
        else
            stay_away(task, word[1]);
        (void)meet_enter(&board);
    }
}

/* ---- the watcher ---------------------------------------------------------------------------- */

static void order(int to, task_t task)
{
    long word[2] = {task, board.mine + 1};
    TL_MPI(MPI_Send(word, 2, MPI_LONG, to, 0, MPI_COMM_WORLD));
}

/** Makes sure that the rank cannot end a task that blocks. */
static void hold(task_t task)
{
    if (task == WIN_LOCK)
        TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    else if (task == FLUSH)
        onic_transport_lock();
}

static void let_go(int rank, task_t task)
{
    const int nothing = 0;
    switch (task) {
    case RECV:
    case WAIT:
        TL_MPI(MPI_Send(&nothing, 1, MPI_INT, rank, 1, MPI_COMM_WORLD));
        break;
    case BARRIER:
        TL_MPI(MPI_Barrier(pairs[rank]));
        break;
    case WIN_LOCK:
        TL_MPI(MPI_Win_unlock(0, win));
        break;
    case FLUSH:
        onic_transport_unlock();
        break;
    default:
        (void)meet_enter(&board);
    }
}

/** Until the rank is about its task, and what it did before is long ago. */
static void await_begin(int rank)
{
    const double end = MPI_Wtime() + PATIENCE;
    while (meet_entered(&board, rank) % 2 == 0 && MPI_Wtime() < end)
        usleep(1000);
    usleep(4 * IDLE_USEC);
}

/** One look; `*mark_p` is the last sign of life that was seen. */
static bool is_as_expected(const onic_presence_t *presence, task_t task, uint64_t *mark_p)
{
    const uint64_t fresh = (uint64_t)(onic_ticks_per_usec() * IDLE_USEC);
    const uint64_t mark = atomic_load(&presence->ticks), before = *mark_p;
    *mark_p = mark;
    if (tasks[task].looks == NOW_AND_THEN)
        return mark != before;
    const bool away = tasks[task].looks == AWAY;
    return onic_presence_is_away(presence) == away &&
           onic_presence_is_recent(mark, onic_ticks(), fresh) == !away;
}

static void watch(int rank, const onic_presence_t *presence, task_t task)
{
    const bool away = tasks[task].looks == AWAY;
    const int looks = away ? AWAY_LOOKS : PRESENT_LOOKS;
    const double end = MPI_Wtime() + PATIENCE;
    uint64_t mark = atomic_load(&presence->ticks);
    int seen = 0;
    while (seen < looks && MPI_Wtime() < end) {
        usleep(1000);
        seen = is_as_expected(presence, task, &mark) ? seen + 1 : away ? 0 : seen;
    }
    TL_CHECK(seen >= looks, "rank %d was not seen %s: away %d, %.0f us after its last sign of life",
             rank, tasks[task].name, onic_presence_is_away(presence),
             (double)(int64_t)(onic_ticks() - mark) / onic_ticks_per_usec());
    TL_CHECK(meet_entered(&board, rank) % 2 == 1, "rank %d is not %s any more", rank,
             tasks[task].name);
}

static const onic_presence_t *presence_of(int rank)
{
    onic_transport_lock();
    const onic_presence_t *presence = onic_peer_presence(peers[rank]);
    const bool near = onic_peer_can_cma(peers[rank]);
    onic_transport_unlock();
    TL_CHECK((presence != NULL) == near, "rank %d: single copy %d, but its page %p", rank, near,
             (const void *)presence);
    return presence;
}

static void watch_rank(int rank)
{
    const onic_presence_t *presence = presence_of(rank);
    for (task_t task = 0; presence != NULL && task < QUIT; task++) {
        hold(task);
        order(rank, task);
        await_begin(rank);
        watch(rank, presence, task);
        let_go(rank, task);
    }
    order(rank, QUIT);
}

static void make_pairs(void)
{
    pairs = tl_alloc((size_t)tl_size() * sizeof(*pairs));
    for (int rank = 1; rank < tl_size(); rank++) {
        const bool in = tl_rank() == 0 || tl_rank() == rank;
        TL_MPI(MPI_Comm_split(MPI_COMM_WORLD, in ? 0 : MPI_UNDEFINED, 0, &pairs[rank]));
    }
}

static void free_pairs(void)
{
    for (int rank = 1; rank < tl_size(); rank++)
        if (pairs[rank] != MPI_COMM_NULL)
            TL_MPI(MPI_Comm_free(&pairs[rank]));
    free(pairs);
}

int main(int argc, char **argv)
{
    const onic_transport_config_t config = {
        .server_thread = true, .server_idle_usec = IDLE_USEC, .single_copy = true};
    char memory[1000];

    /* By message, which waits for the target. */
    setenv("OMPI_MCA_osc_nicstride_method", "pack", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    board = meet_new(MPI_COMM_WORLD);
    make_pairs();
    peers = tl_alloc((size_t)tl_size() * sizeof(onic_peer_t *));
    TL_CHECK(onic_transport_open(&config) == 0, "the transport does not open");
    TL_CHECK(peers_get(MPI_COMM_WORLD, peers) == 0, "no peers");
    TL_MPI(MPI_Win_create(memory, sizeof(memory), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    onic_transport_want_server(true);
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (tl_rank() == 0)
        for (int rank = 1; rank < tl_size(); rank++)
            watch_rank(rank);
    else
        obey();
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    onic_transport_want_server(false);
    TL_MPI(MPI_Win_free(&win));
    free(peers);
    onic_transport_flush();
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    onic_transport_close();
    free_pairs();
    meet_free(&board);
    return tl_finish();
}
