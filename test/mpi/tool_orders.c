/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* p2p: auto */
/* engines: auto */
/* arguments: IUF */
/* arguments: TIUtF */
/* arguments: TIUF */
/* arguments: TtIUF */
/* arguments: TtTtIUF */
/* arguments: TtTIUtF */
/* arguments: TTItUtF */
/* arguments: ITUtTtF */
/* arguments: TSUst */
/* arguments: TtSUsTtIUF */
/* arguments: SUsTSUstIUF */
/* arguments: SUsSUsSUsSUsIUFSUsSUsSUs */
/**
 * @file
 * A tool's interface and MPI are initialised and finalised in the order of the argument: all
 * components of Open MPI are loaded by the tool's interface first, ours and those that bring UCX
 * along, and unloaded again where it is finalised before MPI is initialised. Messages, windows and
 * barriers work all the same. (A tool that stays while MPI is initialised anew makes Open MPI 5.0
 * itself fail.)
 *
 *     T, t    MPI_T_init_thread, MPI_T_finalize; never last, where Open MPI 4.1 itself crashes
 *     I, F    MPI_Init, MPI_Finalize
 *     S, s    a session is made, and finalised: since Open MPI 5.0
 *     U       MPI is used
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONG = 300000, BARRIERS = 20 };

static long failed;

static void check(bool ok, const char *order, const char *at, const char *what)
{
    if (!ok) {
        failed++;
        printf("tool_orders: %s, step %d: %s\n", order, (int)(at - order), what);
    }
}

/** A long message to the next process, and what all add to a window of the first one. */
static bool is_right(MPI_Comm comm)
{
    int rank, size, class = MPI_SUCCESS;
    const long one = 1;
    long *out = malloc(LONG * sizeof(long)), *in = calloc(LONG, sizeof(long)), sum = 0;
    MPI_Win win;

    if (out == NULL || in == NULL)
        return false;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (long i = 0; i < LONG; i++)
        out[i] = rank + i;
    MPI_Sendrecv(out, LONG, MPI_LONG, (rank + 1) % size, 0, in, LONG, MPI_LONG,
                 (rank + size - 1) % size, 0, comm, MPI_STATUS_IGNORE);
    bool right = in[LONG - 1] == (rank + size - 1) % size + LONG - 1;
    free(in);
    free(out);
    for (int i = 0; i < BARRIERS; i++)
        MPI_Barrier(comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Win_create(&sum, sizeof(sum), sizeof(sum), MPI_INFO_NULL, comm, &win),
                    &class);
    if (class != MPI_SUCCESS)
        return false;
    MPI_Win_fence(0, win);
    MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win);
    MPI_Win_fence(0, win);
    right = right && (rank != 0 || sum == size);
    MPI_Win_free(&win);
    return right;
}

#ifdef MPI_SESSION_NULL

static MPI_Session session = MPI_SESSION_NULL;

/** In the session, where there is one and the point-to-point layer can have its communicators. */
static bool use(void)
{
    MPI_Group world;
    MPI_Comm comm;
    bool right = true;

    if (session == MPI_SESSION_NULL)
        return is_right(MPI_COMM_WORLD);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &world);
    if (MPI_Comm_create_from_group(world, "tool_orders", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm) ==
        MPI_SUCCESS) {
        right = is_right(comm);
        MPI_Comm_free(&comm);
    }
    MPI_Group_free(&world);
    return right;
}

static bool change_session(bool begin)
{
    if (begin)
        return MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS;
    return MPI_Session_finalize(&session) == MPI_SUCCESS;
}

#else

static bool use(void)
{
    return is_right(MPI_COMM_WORLD);
}

static bool change_session(bool begin)
{
    (void)begin;
    puts("tool_orders: skipped: this MPI has no sessions");
    exit(77);
}

#endif

static bool step(char what)
{
    int provided;

    switch (what) {
    case 'T':
        return MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS;
    case 't':
        return MPI_T_finalize() == MPI_SUCCESS;
    case 'I':
        return MPI_Init(NULL, NULL) == MPI_SUCCESS;
    case 'F':
        return MPI_Finalize() == MPI_SUCCESS;
    case 'S':
    case 's':
        return change_session(what == 'S');
    case 'U':
        return use();
    default:
        return false;
    }
}

int main(int argc, char **argv)
{
    const char *order = argc == 2 ? argv[1] : "";

    check(*order != '\0', order, order, "no order is given");
#ifndef MPI_SESSION_NULL
    if (strchr(order, 'S') != NULL)
        (void)change_session(true);
#endif
    for (const char *at = order; *at != '\0'; at++)
        check(step(*at), order, at, "it failed");
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
