/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/**
 * @file
 * Nodes with little shared memory. Usage: room MEBIBYTES. Messages and one-sided transfers of a
 * mebibyte between all processes of a node; then so many mebibytes are asked for by
 * MPI_Win_allocate_shared, of all of these together.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 1 << 20, ROUNDS = 3 };

static int rank, size, wrong;
static char *out, *in;
static MPI_Comm node;

static void check(const char *bytes, int from, const char *what)
{
    for (int i = 0; i < BYTES; i++) {
        if (bytes[i] != (char)(from + 1)) {
            printf("room: rank %d: byte %d of what rank %d %s is wrong\n", rank, i, from, what);
            wrong++;
            return;
        }
    }
}

static void exchange_messages(void)
{
    for (int i = 1; i < size; i++) {
        const int to = (rank + i) % size, from = (rank + size - i) % size;
        MPI_Sendrecv(out, BYTES, MPI_BYTE, to, 1, in, BYTES, MPI_BYTE, from, 1, node,
                     MPI_STATUS_IGNORE);
        check(in, from, "has sent");
    }
}

static void put_and_get(char *base, MPI_Win win)
{
    for (int i = 1; i < size; i++) {
        const int to = (rank + i) % size, from = (rank + size - i) % size;
        MPI_Win_fence(0, win);
        MPI_Put(out, BYTES, MPI_BYTE, to, 0, BYTES, MPI_BYTE, win);
        MPI_Win_fence(0, win);
        check(base, from, "has put");
        MPI_Win_fence(0, win);
        MPI_Get(in, BYTES, MPI_BYTE, to, 0, BYTES, MPI_BYTE, win);
        MPI_Win_fence(0, win);
        check(in, (to + size - i) % size, "has put elsewhere");
    }
}

static void use_windows(void)
{
    char *mine = malloc(BYTES);
    MPI_Win win;
    MPI_Win_create(mine, BYTES, 1, MPI_INFO_NULL, node, &win);
    put_and_get(mine, win);
    MPI_Win_free(&win);
    free(mine);
    MPI_Win_create_dynamic(MPI_INFO_NULL, node, &win);
    MPI_Win_free(&win);
}

static bool share(MPI_Aint bytes)
{
    char *base;
    MPI_Win win;
    int good, all;
    MPI_Comm_set_errhandler(node, MPI_ERRORS_RETURN);
    good = MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, node, &base, &win) == MPI_SUCCESS;
    MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, node);
    if (all) {
        memset(base, rank + 1, (size_t)bytes);
        MPI_Win_free(&win);
    }
    return all;
}

int main(int argc, char **argv)
{
    int all;
    MPI_Init(&argc, &argv);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &rank);
    MPI_Comm_size(node, &size);
    out = malloc(BYTES);
    in = malloc(BYTES);
    memset(out, rank + 1, BYTES);
    for (int i = 0; i < ROUNDS; i++) {
        use_windows();
        exchange_messages();
    }
    const MPI_Aint mebibytes = argc > 1 ? atoi(argv[1]) : 1;
    const bool room = share((mebibytes << 20) / size);
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, node);
    if (rank == 0) {
        printf("room: %d wrong, %d MiB can%s be shared\n", all, (int)mebibytes, room ? "" : "not");
        fflush(stdout);
    }
    MPI_Comm_free(&node);
    MPI_Finalize();
    free(out);
    free(in);
    return 0;
}
