/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 5 */
/* methods: auto pack */
/* mpirun: --enable-recovery --mca orte_allowed_exit_without_sync 1 */
/* leaks: expected */
/**
 * @file
 * Two processes of a node die while the others wait for them: one in the line for a lock, one in
 * the middle of an accumulate and with the lock of a window. Errors are returned, so the others go
 * on: what they wait for in locks, start, wait, fence and flush ends with an error, and so does
 * what comes later; who was in the line behind the dead gets the lock.
 *
 * Before that the second is only stopped in the middle of an accumulate: then the others wait.
 *
 * The launcher would end the job where it sees a rank die: see meet_begin_as_child.
 */
#include "test/mpi/meet.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { HOME, IN_LINE, IN_UPDATE, LIVING_A, LIVING_B };

/** Microseconds for which the second is stopped, or still lives with what it has. */
enum { STOPPED = 300000 };

static MPI_Win make_window(bool private)
{
    static long memory[64];
    MPI_Info info;
    long *base;
    MPI_Win win;

    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_accumulate_granularity", "64");
    if (private)
        TL_MPI(MPI_Win_create(memory, sizeof(memory), 1, info, MPI_COMM_WORLD, &win));
    else
        TL_MPI(MPI_Win_allocate(sizeof(memory), 1, info, MPI_COMM_WORLD, &base, &win));
    TL_MPI(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    MPI_Info_free(&info);
    return win;
}

static long value_at(MPI_Win win)
{
    void *base;
    int flag;

    TL_MPI(MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &flag));
    return *(volatile long *)base;
}

static bool is_shared(MPI_Win win)
{
    const char *method = getenv("OMPI_MCA_osc_nicstride_method");

    (void)win;
    return method == NULL || strcmp(method, "pack") != 0;
}

/* ---- an accumulate that is cut off ----------------------------------------------------------- */

static long *page;
static long page_bytes;
static bool dies;

/** In the middle of an accumulate, which has begun to read its origin buffer. */
static void caught(int sig)
{
    (void)sig;
    mprotect(page, (size_t)page_bytes, PROT_READ | PROT_WRITE);
    if (dies) {
        /* The others are in their first waits by now, most likely. */
        usleep(STOPPED);
    }
    raise(dies ? SIGKILL : SIGSTOP);
}

static void add_from_trap(MPI_Win win)
{
    mprotect(page, (size_t)page_bytes, PROT_NONE);
    TL_MPI(MPI_Accumulate(page, 1, MPI_LONG, HOME, 0, 1, MPI_LONG, MPI_SUM, win));
}

static void make_trap(void)
{
    page_bytes = sysconf(_SC_PAGESIZE);
    page =
        mmap(NULL, (size_t)page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    page[0] = 1;
    signal(SIGSEGV, caught);
}

/** Seconds, the same for all processes of the machine. */
static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/** Who is stopped in an update is waited for. The others have seen that it is before it goes on. */
static void stopped(MPI_Win win, pid_t pid)
{
    meet_t seen = meet_new(MPI_COMM_WORLD);
    const long one = 1;
    double ended = 0, went_on = 0;

    TL_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    MPI_Barrier(MPI_COMM_WORLD);
    if (tl_rank() == IN_UPDATE) {
        add_from_trap(win);
    } else {
        tl_await_stopped(pid);
        (void)meet_enter(&seen);
        if (tl_rank() == HOME) {
            for (int rank = 0; rank < tl_size(); rank++)
                while (rank != IN_UPDATE && meet_entered(&seen, rank) == 0)
                    usleep(1000);
            usleep(STOPPED);
            went_on = now();
            kill(pid, SIGCONT);
        } else {
            TL_MPI(MPI_Accumulate(&one, 1, MPI_LONG, HOME, 0, 1, MPI_LONG, MPI_SUM, win));
            ended = now();
        }
    }
    TL_MPI(MPI_Win_unlock_all(win));
    TL_MPI(MPI_Bcast(&went_on, 1, MPI_DOUBLE, HOME, MPI_COMM_WORLD));
    TL_CHECK(!is_shared(win) || ended == 0 || ended > went_on,
             "the lock was taken from a process that is only stopped");
    MPI_Barrier(MPI_COMM_WORLD);
    TL_CHECK(tl_rank() != HOME || value_at(win) == tl_size() - 1, "%ld of %d updates",
             value_at(win), tl_size() - 1);
    meet_free(&seen);
}

/* ---- waits for the dead ---------------------------------------------------------------------- */

static void lock_held_by_dead(MPI_Win win)
{
    TL_MPI_ERROR(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, HOME, 0, win), GONE);
    TL_MPI_ERROR(MPI_Win_lock(MPI_LOCK_SHARED, HOME, 0, win), GONE);
    TL_MPI_ERROR(MPI_Win_lock_all(0, win), GONE);
}

static void start_to_dead(MPI_Win win)
{
    MPI_Group dead = tl_group_of(MPI_COMM_WORLD, IN_LINE);

    TL_MPI_ERROR(MPI_Win_start(dead, 0, win), GONE);
    MPI_Group_free(&dead);
}

static void wait_for_dead(MPI_Win win)
{
    MPI_Group dead = tl_group_of(MPI_COMM_WORLD, IN_UPDATE);

    TL_MPI(MPI_Win_post(dead, 0, win));
    TL_MPI_ERROR(MPI_Win_wait(win), GONE);
    MPI_Group_free(&dead);
}

static void fence_with_dead(MPI_Win win)
{
    TL_MPI_ERROR(MPI_Win_fence(0, win), GONE);
    TL_MPI_ERROR(MPI_Win_fence(0, win), GONE);
}

static void flush_to_dead(MPI_Win win)
{
    const long one = 1;
    long old;

    TL_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    TL_CHECK(MPI_Fetch_and_op(&one, &old, MPI_LONG, IN_LINE, 0, MPI_SUM, win) != MPI_SUCCESS ||
                 MPI_Win_flush(IN_LINE, win) != MPI_SUCCESS,
             "no error of a flush");
    TL_CHECK(MPI_Fetch_and_op(&one, &old, MPI_LONG, IN_LINE, 0, MPI_SUM, win) != MPI_SUCCESS ||
                 MPI_Win_flush_all(win) != MPI_SUCCESS,
             "no error of a later flush");
}

/** Nothing but MPI_Wait waits, which knows nothing of windows. */
static void request_to_dead(MPI_Win win)
{
    MPI_Request request;
    long got;

    TL_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    TL_CHECK(MPI_Rget_accumulate(NULL, 0, MPI_LONG, &got, 1, MPI_LONG, IN_UPDATE, 0, 1, MPI_LONG,
                                 MPI_NO_OP, win, &request) != MPI_SUCCESS ||
                 MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS,
             "no error of a request");
}

static void update_cut_off(MPI_Win win)
{
    const long one = 1;
    long old, other = 2;

    if (!is_shared(win))
        return;
    TL_MPI_ERROR(MPI_Accumulate(&one, 1, MPI_LONG, HOME, 0, 1, MPI_LONG, MPI_SUM, win), GONE);
    TL_MPI_ERROR(MPI_Compare_and_swap(&one, &other, &old, MPI_LONG, HOME, 0, win), GONE);
    TL_MPI_ERROR(MPI_Win_flush(LIVING_A, win), GONE);
    TL_MPI_ERROR(MPI_Win_flush_all(win), GONE);
    TL_MPI_ERROR(MPI_Win_unlock_all(win), GONE);
    TL_MPI_ERROR(MPI_Win_lock(MPI_LOCK_SHARED, LIVING_A, 0, win), GONE);
}

/** Behind a process that was killed in the line there is no error. */
static void line_with_dead(MPI_Win win)
{
    if (tl_rank() == HOME)
        TL_MPI(MPI_Win_unlock(HOME, win));
    for (int i = 0; i < 3; i++) {
        TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, HOME, 0, win));
        TL_MPI(MPI_Win_unlock(HOME, win));
    }
}

static const struct {
    void (*run)(MPI_Win);
    bool private;
} kinds[] = {{lock_held_by_dead, false}, {start_to_dead, false},  {wait_for_dead, false},
             {fence_with_dead, false},   {flush_to_dead, true},   {request_to_dead, true},
             {update_cut_off, false},    {line_with_dead, false}, {fence_with_dead, true}};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };
enum { HELD = 0, CUT_OFF = 6, LINE = 7 };

/* ---- how they die ---------------------------------------------------------------------------- */

static void prepare(MPI_Win *win, pid_t *pids)
{
    const pid_t pid = getpid();

    TL_MPI(MPI_Allgather(&pid, sizeof(pid), MPI_BYTE, pids, sizeof(pid), MPI_BYTE, MPI_COMM_WORLD));
    if (tl_rank() == HOME)
        TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, HOME, 0, win[LINE]));
    if (tl_rank() == IN_UPDATE)
        TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, HOME, 0, win[HELD]));
    TL_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, win[CUT_OFF]));
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

static void die(MPI_Win *win)
{
    if (tl_rank() == IN_LINE) {
        (void)MPI_Win_lock(MPI_LOCK_EXCLUSIVE, HOME, 0, win[LINE]);
    } else {
        dies = true;
        add_from_trap(win[CUT_OFF]);
    }
    raise(SIGKILL);
}

static int finish(MPI_Comm living)
{
    long failed = tl_failed();

    TL_MPI(MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_LONG, MPI_SUM, living));
    MPI_Finalize();
    return failed == 0 ? TL_EXIT_OK : TL_EXIT_FAILED;
}

int main(int argc, char **argv)
{
    MPI_Win win[KINDS], first;
    pid_t pids[5];
    MPI_Comm living;

    meet_begin_as_child();
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    if (!tl_one_host())
        tl_skip("the dead of other hosts are for connection_lost");
    const bool lives = tl_rank() != IN_LINE && tl_rank() != IN_UPDATE;
    TL_MPI(MPI_Comm_split(MPI_COMM_WORLD, lives ? 0 : MPI_UNDEFINED, 0, &living));
    make_trap();
    first = make_window(false);
    for (int k = 0; k < KINDS; k++)
        win[k] = make_window(kinds[k].private);
    prepare(win, pids);
    stopped(first, pids[IN_UPDATE]);
    if (!lives)
        die(win);
    usleep(STOPPED / 3);
    if (tl_rank() == HOME)
        kill(pids[IN_LINE], SIGKILL);
    for (int k = 0; k < KINDS; k++) {
        const int which = (k + 2 * tl_rank()) % KINDS;

        kinds[which].run(win[which]);
    }
    return finish(living);
}
