/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Resources of a process, and the time of an all-to-all, by the number of ranks: a line for each
 * step of a program that begins, sends to all, makes a private window, and puts to all. Columns:
 * means over the ranks of kibibytes of shared memory (its share of it), of private memory, and of
 * descriptors; microseconds of the slowest rank. Run it alone, with any number of ranks.
 */
#include <dirent.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 10, LONG = 1024, LINE = 256 };

static int me, n;
static char *out, *in;
static MPI_Win win;

/** Sums the lines of smaps_rollup that begin with `name`. */
static double kibibytes(const char *name)
{
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    char line[LINE];
    double sum = 0;

    while (f != NULL && fgets(line, sizeof(line), f) != NULL)
        if (strncmp(line, name, strlen(name)) == 0)
            sum += atof(strchr(line, ':') + 1);
    if (f != NULL)
        fclose(f);
    return sum;
}

/** Open descriptors, except the one used for counting. */
static double descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    int entries = 0;

    while (d != NULL && readdir(d) != NULL)
        entries++;
    if (d != NULL)
        closedir(d);
    return entries - 3;
}

static void send_all(size_t bytes)
{
    MPI_Request *request = malloc(2 * (size_t)n * sizeof(MPI_Request));

    for (int i = 0; i < n; i++)
        MPI_Irecv(in + (size_t)i * LONG, (int)bytes, MPI_BYTE, i, 0, MPI_COMM_WORLD, &request[i]);
    for (int i = 0; i < n; i++) {
        MPI_Isend(out + (size_t)i * LONG, (int)bytes, MPI_BYTE, (me + i) % n, 0, MPI_COMM_WORLD,
                  &request[n + i]);
    }
    MPI_Waitall(2 * n, request, MPI_STATUSES_IGNORE);
    free(request);
}

static void nothing(void)
{
}

static void alltoall_short(void)
{
    send_all(8);
}

static void alltoall_long(void)
{
    send_all(LONG);
}

static void make_window(void)
{
    if (win == MPI_WIN_NULL) {
        MPI_Win_create(in, (MPI_Aint)n * LONG, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        MPI_Win_fence(0, win);
    }
}

static void fence(void)
{
    MPI_Win_fence(0, win);
}

static void put_all(void)
{
    for (int i = 0; i < n; i++)
        MPI_Put(out, 8, MPI_BYTE, (me + i) % n, (MPI_Aint)me * LONG, 8, MPI_BYTE, win);
    MPI_Win_fence(0, win);
}

static void one_to_all(void)
{
    for (int i = 0; i < n && me == 0; i++)
        MPI_Put(out, 8, MPI_BYTE, i, 0, 8, MPI_BYTE, win);
    MPI_Win_fence(0, win);
}

static void all_to_one(void)
{
    MPI_Put(out, LONG, MPI_BYTE, 0, (MPI_Aint)me * LONG, LONG, MPI_BYTE, win);
    MPI_Win_fence(0, win);
}

static void step(const char *name, void (*function)(void))
{
    double mine[3], sum[3], usec;

    MPI_Barrier(MPI_COMM_WORLD);
    const double begun = MPI_Wtime();
    for (int i = 0; i < ROUNDS; i++)
        function();
    usec = 1e6 * (MPI_Wtime() - begun) / ROUNDS;
    mine[0] = kibibytes("Pss_Shmem");
    mine[1] = kibibytes("Private_Clean") + kibibytes("Private_Dirty");
    mine[2] = descriptors();
    MPI_Allreduce(mine, sum, 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &usec, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (me == 0) {
        printf("%-16s shared %6.0f, own %6.0f KiB, descriptors %4.0f, %10.1f us\n", name,
               sum[0] / n, sum[1] / n, sum[2] / n, usec);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    out = calloc((size_t)n, LONG);
    in = calloc((size_t)n, LONG);
    win = MPI_WIN_NULL;
    if (out == NULL || in == NULL)
        MPI_Abort(MPI_COMM_WORLD, 1);
    step("init", nothing);
    step("alltoall 8", alltoall_short);
    step("alltoall 1K", alltoall_long);
    step("window", make_window);
    step("fence", fence);
    step("put 8 to all", put_all);
    step("one puts to all", one_to_all);
    step("all put to one", all_to_one);
    MPI_Win_free(&win);
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
