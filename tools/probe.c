/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * What `ompi-nic-info` starts under mpirun, to see which component serves what: a window that MPI
 * allocates and one of the program's memory, some puts, messages and barriers. It prints nothing
 * but "ok", or what was wrong: the components print what they do.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

/** More than the barriers after which coll_nicbarrier sets up its engine. */
#define BARRIERS 20
#define WORDS    4096

static int rank, size;

/** Puts a row of words to the next process; are those of the one before there? */
static int put(MPI_Win win, int *memory)
{
    int mine[WORDS], right = 1;

    for (int i = 0; i < WORDS; i++)
        mine[i] = rank + i;
    memset(memory, 0, sizeof(mine));
    MPI_Win_fence(0, win);
    MPI_Put(mine, WORDS, MPI_INT, (rank + 1) % size, 0, WORDS, MPI_INT, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < WORDS; i++)
        right = right && memory[i] == (rank + size - 1) % size + i;
    MPI_Win_free(&win);
    return right;
}

static int windows(void)
{
    static int own[WORDS];
    int *memory;
    MPI_Win win;

    MPI_Win_allocate(sizeof(own), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    const int right = put(win, memory);

    MPI_Win_create(own, sizeof(own), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    return put(win, own) && right;
}

static int messages(void)
{
    int mine = rank, other = -1;

    MPI_Sendrecv(&mine, 1, MPI_INT, (rank + 1) % size, 0, &other, 1, MPI_INT,
                 (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return other == (rank + size - 1) % size;
}

int main(int argc, char **argv)
{
    int right, all = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    right = messages();
    for (int i = 0; i < BARRIERS; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    right = windows() && right;
    MPI_Reduce(&right, &all, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
    if (rank == 0)
        puts(all ? "ok" : "wrong data");
    MPI_Finalize();
    return rank == 0 && !all;
}
