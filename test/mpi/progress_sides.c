/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file The two sides of a cell of the matrix of progress: who tells what, and who waits. */
#include "test/mpi/progress_sides.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/** Seconds: of a holder, where nothing must come of it; of one that has failed once, since others
 *  will; and by how much longer a cell may take than any patience. */
#define MAY_PATIENCE  0.02
#define LESS_PATIENCE 3.0
#define MARGIN        1.5

/** Microseconds that are most often enough for another process to enter MPI. */
enum { MOMENT = 300 };

progress_sides_t progress_sides = {.base = MPI_COMM_NULL, .patience = 60};

static MPI_Comm *pairs; /**< by the lower, then the higher rank */

/* For the handler of signals. */
static char current[200];
static const char *volatile step = "";

void progress_step(const char *what)
{
    step = what;
}

/* ---- hangs ---- */

static void say(const char *text)
{
    if (write(STDOUT_FILENO, text, strlen(text)) < 0)
        _exit(TL_EXIT_FAILED);
}

static void stuck(int number)
{
    char line[400] = "progress: stuck in ";

    (void)number;
    strncat(line, current, 200);
    strcat(line, ", in ");
    strncat(line, step, 100);
    strcat(line, "\n");
    say(line);
    /* The other one says where it is, too. */
    sleep(3);
    _exit(TL_EXIT_FAILED);
}

static void watch(bool on)
{
    signal(SIGALRM, stuck);
    alarm(on ? (unsigned)(progress_sides.patience * MARGIN) + 5 : 0);
}

/* ---- the two sides ---- */

static bool is_first(const progress_cell_t *cell)
{
    return cell->first == progress_sides.me;
}

/** Is this process one of the cell's, and `rank` another one that it waits for? */
static bool opposite(const progress_cell_t *cell, int rank)
{
    if (!is_first(cell))
        return rank == cell->first;
    return cell->other < 0 ? rank != progress_sides.me : rank == cell->other;
}

static void tell(const progress_cell_t *cell, int word)
{
    for (int i = 0; i < progress_sides.size; i++)
        if (opposite(cell, i))
            control_tell(i, word, cell->number);
}

static bool told(const progress_cell_t *cell, int word, double seconds)
{
    for (int i = 0; i < progress_sides.size; i++)
        if (opposite(cell, i) && !control_told(i, word, cell->number, seconds))
            return false;
    return true;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/** In MPI, where nothing is for this process alone. */
static void poll_mpi(void)
{
    int flag;

    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
}

/** Waits for a word outside of MPI or not. */
static bool await(const progress_cell_t *cell, int word, double seconds, bool polls)
{
    const double end = now() + seconds;

    if (!polls)
        return told(cell, word, seconds);
    while (!told(cell, word, 0)) {
        if (seconds >= 0 && now() > end)
            return false;
        poll_mpi();
    }
    return true;
}

void progress_meet_ready(const progress_cell_t *cell)
{
    progress_step("wait for the other one");
    told(cell, CONTROL_READY, -1);
    watch(true);
    usleep(MOMENT);
}

void progress_tell_ready(const progress_cell_t *cell)
{
    tell(cell, CONTROL_READY);
}

void progress_tell_in(const progress_cell_t *cell)
{
    tell(cell, CONTROL_IN);
}

void progress_await_in(const progress_cell_t *cell, bool polls)
{
    progress_step("wait for the begin");
    await(cell, CONTROL_IN, -1, polls);
    for (double end = now() + 1e-6 * MOMENT; polls && now() < end;)
        poll_mpi();
    usleep(MOMENT);
}

void progress_tell_seen(const progress_cell_t *cell)
{
    tell(cell, CONTROL_SEEN);
}

static void judge(const progress_cell_t *cell, bool seen)
{
    if (progress_sides.show) {
        printf("show %s %s\n", cell->name, seen ? "itself" : "call");
        fflush(stdout);
    }
    if (cell->rule == PROGRESS_MUST) {
        if (!seen) {
            printf("progress: %s: waits for the next call of rank %d\n", cell->name,
                   progress_sides.me);
            fflush(stdout);
            progress_sides.patience =
                progress_sides.patience < LESS_PATIENCE ? progress_sides.patience : LESS_PATIENCE;
        }
        TL_CHECK(seen, "%s: what was begun waits for the next call of MPI", cell->name);
    }
}

void progress_hold(const progress_cell_t *cell, bool polls)
{
    double patience = cell->rule == PROGRESS_MUST ? progress_sides.patience : MAY_PATIENCE;

    progress_step(polls ? "polling" : "wait outside of MPI");
    judge(cell, await(cell, CONTROL_SEEN, patience, polls));
}

void progress_held(const progress_cell_t *cell)
{
    judge(cell, true);
}

void progress_meet_end(const progress_cell_t *cell)
{
    progress_step("wait for the end of the other one");
    tell(cell, CONTROL_END);
    await(cell, CONTROL_END, -1, true);
    watch(false);
}

/* ---- communicators ---- */

static MPI_Comm make_pair(int a, int b, int tag)
{
    int ranks[2] = {a < b ? a : b, a < b ? b : a};
    MPI_Group all, two;
    MPI_Comm comm;

    progress_step("MPI_Comm_create_group");
    MPI_Comm_group(progress_sides.base, &all);
    MPI_Group_incl(all, 2, ranks, &two);
    TL_MPI(MPI_Comm_create_group(progress_sides.base, two, tag, &comm));
    MPI_Group_free(&two);
    MPI_Group_free(&all);
    return comm;
}

MPI_Comm progress_pair(const progress_cell_t *cell)
{
    int a = cell->first, b = cell->other;
    MPI_Comm *place = &pairs[(a < b ? a : b) * progress_sides.size + (a < b ? b : a)];

    if (*place == MPI_COMM_NULL)
        *place = make_pair(a, b, 1);
    return *place;
}

MPI_Comm progress_new_pair(const progress_cell_t *cell)
{
    return make_pair(cell->first, cell->other, 2);
}

int progress_peer(const progress_cell_t *cell)
{
    return is_first(cell) == (cell->first < cell->other) ? 1 : 0;
}

bool progress_one_host(MPI_Comm comm)
{
    MPI_Comm node;
    int here, all, same, least;

    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &here);
    MPI_Comm_size(comm, &all);
    MPI_Comm_free(&node);
    same = here == all;
    MPI_Allreduce(&same, &least, 1, MPI_INT, MPI_MIN, comm);
    return least != 0;
}

MPI_Comm progress_base(void)
{
    return progress_sides.base;
}

void progress_sides_open(MPI_Comm base)
{
    progress_sides.base = base;
    MPI_Comm_rank(base, &progress_sides.me);
    MPI_Comm_size(base, &progress_sides.size);
    const int n = progress_sides.size * progress_sides.size;

    pairs = tl_alloc((size_t)n * sizeof(MPI_Comm));
    for (int i = 0; i < n; i++)
        pairs[i] = MPI_COMM_NULL;
}

void progress_sides_close(void)
{
    for (int i = 0; i < progress_sides.size * progress_sides.size; i++)
        if (pairs[i] != MPI_COMM_NULL)
            MPI_Comm_free(&pairs[i]);
    free(pairs);
}

void progress_sides_begin(const progress_cell_t *cell)
{
    memcpy(current, cell->name, sizeof(cell->name));
    if (is_first(cell)) {
        tell(cell, CONTROL_HERE);
    } else {
        told(cell, CONTROL_HERE, -1);
        watch(true);
    }
}
