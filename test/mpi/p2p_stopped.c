/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 3-4 */
/* p2p: auto stream pipeline rendezvous */
/**
 * @file
 * A process is stopped as by a debugger, in the middle of long messages from and to all others. It
 * stays so until these have exchanged messages of all sizes among themselves: whatever it has of
 * theirs, they do not need it. Then it goes on, and all is complete and right.
 */
#include "test/mpi/p2p.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STOPPED = 0, MANY = 4, LONG = 4 << 20 };
/** Seconds after which a process that is stopped is let go on, and the test has failed. */
enum { PATIENCE = TL_PATIENCE };
/** Tags. */
enum { FROM_STOPPED = 100, TO_STOPPED = 200, AMONG = 300 };

/** Words that processes and their children share. */
typedef struct board {
    atomic_int stopped; /**< it is about to be */
    atomic_int through; /**< how many of the others need nothing more */
    atomic_int late;    /**< it was let go on before */
} board_t;

static board_t *make_board(void)
{
    char name[] = "/dev/shm/p2p_stopped.XXXXXX";
    int file = tl_rank() == STOPPED ? mkstemp(name) : -1;
    board_t *board;

    MPI_Bcast(name, sizeof(name), MPI_CHAR, STOPPED, MPI_COMM_WORLD);
    file = tl_rank() == STOPPED ? file : open(name, O_RDWR);
    if (file < 0 || ftruncate(file, sizeof(*board)) != 0)
        tl_die("no file in /dev/shm");
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    MPI_Barrier(MPI_COMM_WORLD);
    if (tl_rank() == STOPPED)
        unlink(name);
    if (board == MAP_FAILED)
        tl_die("mmap");
    return board;
}

/* ---- long messages from and to the one that is stopped --------------------------------------- */

typedef struct longs {
    MPI_Request requests[8 * MANY];
    unsigned char *in, *out;
    int n;
} longs_t;

static unsigned char *at(unsigned char *memory, int peer, int i)
{
    return memory + ((size_t)peer * MANY + (size_t)i) * LONG;
}

/** Between this rank and another, in both directions. */
static void begin_with(longs_t *l, int peer)
{
    const int out = tl_rank() == STOPPED ? FROM_STOPPED : TO_STOPPED;
    const int in = tl_rank() == STOPPED ? TO_STOPPED : FROM_STOPPED;

    for (int i = 0; i < MANY; i++) {
        p2p_fill(at(l->out, peer, i), LONG, p2p_seed(tl_rank(), peer, i));
        TL_MPI(MPI_Irecv(at(l->in, peer, i), LONG, MPI_BYTE, peer, in + i, MPI_COMM_WORLD,
                         &l->requests[l->n++]));
        TL_MPI(MPI_Isend(at(l->out, peer, i), LONG, MPI_BYTE, peer, out + i, MPI_COMM_WORLD,
                         &l->requests[l->n++]));
    }
}

static void begin_all(longs_t *l)
{
    const size_t bytes = (size_t)tl_size() * MANY * LONG;

    *l = (longs_t){.in = tl_alloc(bytes), .out = tl_alloc(bytes)};
    for (int r = 0; r < tl_size(); r++)
        if (r != tl_rank() && (r == STOPPED || tl_rank() == STOPPED))
            begin_with(l, r);
}

static void end_all(longs_t *l)
{
    TL_MPI(MPI_Waitall(l->n, l->requests, MPI_STATUSES_IGNORE));
    for (int r = 0; r < tl_size(); r++) {
        for (int i = 0; i < MANY && r != tl_rank() && (r == STOPPED || tl_rank() == STOPPED); i++) {
            TL_CHECK(p2p_holds(at(l->in, r, i), LONG, p2p_seed(r, tl_rank(), i)),
                     "message %d from %d", i, r);
        }
    }
    free(l->in);
    free(l->out);
}

/* ---- the one that is stopped ----------------------------------------------------------------- */

/** A child lets it go on when the others are through. */
static void stop(board_t *board)
{
    const int others = tl_size() - 1;
    const pid_t pid = fork();

    if (pid == 0) {
        for (int ms = 0; atomic_load(&board->through) < others && ms < PATIENCE * 1000; ms++)
            usleep(1000);
        atomic_store(&board->late, atomic_load(&board->through) < others);
        tl_await_stopped(getppid());
        kill(getppid(), SIGCONT);
        _exit(0);
    }
    if (pid < 0)
        tl_die("no child");
    atomic_store(&board->stopped, 1);
    raise(SIGSTOP);
    waitpid(pid, NULL, 0);
    TL_CHECK(!atomic_load(&board->late), "the others need a process that is stopped");
}

/** Takes part until some, but not all, of its messages are complete. */
static void take_part(longs_t *l)
{
    int indices[8 * MANY], n = 0;

    TL_MPI(MPI_Waitsome(l->n, l->requests, &n, indices, MPI_STATUSES_IGNORE));
}

/* ---- the others ------------------------------------------------------------------------------ */

static void exchange(MPI_Comm others)
{
    int me, size;

    MPI_Comm_rank(others, &me);
    MPI_Comm_size(others, &size);
    for (int i = 0; i < (tl_slow() ? 1 : 2) * p2p_nsizes; i++) {
        const int bytes = p2p_sizes[i % p2p_nsizes], to = (me + 1) % size;
        const int from = (me + size - 1) % size;
        p2p_buffer_t out = p2p_buffer(p2p_side((p2p_shape_t)(i % P2P_SHAPES), bytes));
        p2p_buffer_t in = p2p_buffer(p2p_side(i % 2 ? P2P_PLAIN : P2P_VECTOR_64, bytes));

        p2p_write(&out, p2p_seed(me, AMONG, i));
        TL_MPI(MPI_Sendrecv(out.at, out.side.count, out.side.type, to, AMONG, in.at, in.side.count,
                            in.side.type, from, AMONG, others, MPI_STATUS_IGNORE));
        p2p_check(&in, in.bytes, p2p_seed(from, AMONG, i), "while one is stopped");
        p2p_free(&out);
        p2p_free(&in);
    }
}

int main(int argc, char **argv)
{
    MPI_Comm others;
    board_t *board;
    longs_t longs;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    if (!tl_one_host())
        tl_skip("the ranks share no memory in which they could say that they are through");
    board = make_board();
    MPI_Comm_split(MPI_COMM_WORLD, tl_rank() == STOPPED, 0, &others);
    begin_all(&longs);
    if (tl_rank() == STOPPED) {
        take_part(&longs);
        stop(board);
    } else {
        int flag;

        while (!atomic_load(&board->stopped))
            MPI_Testall(longs.n, longs.requests, &flag, MPI_STATUSES_IGNORE);
        exchange(others);
        MPI_Barrier(others);
        atomic_fetch_add(&board->through, 1);
    }
    end_all(&longs);
    munmap(board, sizeof(*board));
    MPI_Comm_free(&others);
    return tl_finish();
}
