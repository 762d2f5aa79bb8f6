/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic shared */
/**
 * @file
 * Child processes in the midst of an epoch: fork with _exit, exit and exec, system() and popen().
 * No child may hang, disturb the epoch of its parent, or take away what the parent still needs
 * when it runs the handlers of exit().
 */
#include "test/mpi/testlib.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/** Seconds a child has to end. */
#define PATIENCE TL_PATIENCE
#define LONGS    60000

static tl_window_t make_window(tl_kind_t kind)
{
    return tl_win_make(kind, LONGS * sizeof(long), sizeof(long), MPI_COMM_WORLD, MPI_INFO_NULL);
}

/* ---- children ---- */

/** Waits for a child, and ends it when it does not end by itself. */
static void expect_exit(pid_t child, int code, const char *what)
{
    const struct timespec pause = {0, 2000000};
    int status = 0, polls = 0;
    pid_t ended;

    while ((ended = waitpid(child, &status, WNOHANG)) == 0 && polls++ < PATIENCE * 500)
        nanosleep(&pause, NULL);
    if (ended == 0) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
    }
    TL_CHECK(ended == child && WIFEXITED(status) && WEXITSTATUS(status) == code,
             "%s: %s, status 0x%x", what, ended == 0 ? "hangs" : "ended otherwise", status);
}

/** Writes to all of a private buffer: the child's copy of a page must not become the parent's. */
static void spoil(long *data)
{
    for (int i = 0; i < LONGS; i++)
        data[i] = -1;
}

static void child_underscore_exit(long *data)
{
    pid_t child = fork();

    if (child == 0) {
        spoil(data);
        _exit(3);
    }
    expect_exit(child, 3, "_exit");
}

static void child_exit(long *data)
{
    fflush(NULL);
    pid_t child = fork();

    if (child == 0) {
        spoil(data);
        exit(4);
    }
    expect_exit(child, 4, "exit");
}

static void child_exec(long *data)
{
    pid_t child = fork();

    (void)data;
    if (child == 0) {
        execlp("sh", "sh", "-c", "exit 5", (char *)NULL);
        _exit(127);
    }
    expect_exit(child, 5, "exec");
}

static void child_system(long *data)
{
    int status = system("exit 6");

    (void)data;
    TL_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 6, "system: status 0x%x", status);
}

static void child_popen(long *data)
{
    char line[32] = "";
    FILE *pipe = popen("echo from the child", "r");

    (void)data;
    if (!TL_CHECK(pipe != NULL, "popen failed"))
        return;
    TL_CHECK(fgets(line, sizeof(line), pipe) != NULL && strcmp(line, "from the child\n") == 0,
             "popen: '%s'", line);
    pclose(pipe);
}

/** Two generations, and the parent stores to its pages while they live. */
static void child_of_child(long *data)
{
    long kept = data[0];
    pid_t child = fork();

    if (child == 0) {
        pid_t grandchild = fork();

        if (grandchild == 0) {
            spoil(data);
            _exit(0);
        }
        int status = -1;
        waitpid(grandchild, &status, 0);
        _exit(status == 0 ? 7 : 1);
    }
    *(volatile long *)data = -2;
    *(volatile long *)data = kept;
    expect_exit(child, 7, "fork in a child");
}

static const struct {
    const char *name;
    void (*run)(long *data);
} children[] = {
    {"_exit", child_underscore_exit}, {"exit", child_exit},   {"exec", child_exec},
    {"system", child_system},         {"popen", child_popen}, {"grandchild", child_of_child}};
enum { CHILDREN = sizeof(children) / sizeof(children[0]) };

/* ---- epochs ---- */

static void fill(long *data, int rank, int round)
{
    for (int i = 0; i < LONGS; i++)
        data[i] = rank * 100000000L + round * 1000000L + i;
}

static void check_data(const long *data, int rank, int round, const char *what)
{
    int wrong = 0;

    for (int i = 0; i < LONGS; i++)
        wrong += data[i] != rank * 100000000L + round * 1000000L + i;
    TL_CHECK(wrong == 0, "%s: %d of %d longs wrong after a child", what, wrong, LONGS);
}

/** Puts and gets before and after the child, all in one epoch. */
static void around_child(const tl_window_t *w, int c, long *data, long *back)
{
    int next = (w->rank + 1) % w->size, half = LONGS / 2;
    MPI_Aint middle = tl_disp(w, next, half * (MPI_Aint)sizeof(long));

    fill(data, w->rank, c);
    memset(back, 0, LONGS * sizeof(long));
    TL_MPI(MPI_Win_lock_all(0, w->win));
    TL_MPI(MPI_Put(data, half, MPI_LONG, next, tl_disp(w, next, 0), half, MPI_LONG, w->win));
    children[c].run(back);
    TL_MPI(MPI_Put(data + half, half, MPI_LONG, next, middle, half, MPI_LONG, w->win));
    TL_MPI(MPI_Win_flush(next, w->win));
    TL_MPI(MPI_Get(back, half, MPI_LONG, next, tl_disp(w, next, 0), half, MPI_LONG, w->win));
    children[c].run(data);
    TL_MPI(MPI_Get(back + half, half, MPI_LONG, next, middle, half, MPI_LONG, w->win));
    TL_MPI(MPI_Win_flush_local(next, w->win));
    TL_MPI(MPI_Win_unlock_all(w->win));
    check_data(data, w->rank, c, children[c].name);
    check_data(back, w->rank, c, children[c].name);
}

static void test_children(tl_kind_t kind)
{
    tl_window_t w = make_window(kind);
    long *data = tl_alloc(LONGS * sizeof(long)), *back = tl_alloc(LONGS * sizeof(long));
    int before = (w.rank + w.size - 1) % w.size;

    for (int c = 0; c < CHILDREN; c++) {
        around_child(&w, c, data, back);
        MPI_Barrier(w.comm);
        TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, w.rank, 0, w.win));
        check_data((long *)w.base, before, c, children[c].name);
        TL_MPI(MPI_Win_unlock(w.rank, w.win));
        MPI_Barrier(w.comm);
    }
    free(back);
    free(data);
    tl_win_free(&w);
}

/** A window made after children have come and gone is as good as one made before. */
static void test_window_after(tl_kind_t kind)
{
    long *data = tl_alloc(LONGS * sizeof(long)), value = 9;
    tl_window_t w;

    child_exit(data);
    w = make_window(kind);
    int next = (w.rank + 1) % w.size;
    TL_MPI(MPI_Win_fence(0, w.win));
    TL_MPI(MPI_Put(&value, 1, MPI_LONG, next, tl_disp(&w, next, 0), 1, MPI_LONG, w.win));
    child_underscore_exit(data);
    TL_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, w.win));
    TL_CHECK(*(long *)w.base == 9, "%ld", *(long *)w.base);
    tl_win_free(&w);
    free(data);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        test_children(kind);
        test_window_after(kind);
    }
    return tl_finish();
}
