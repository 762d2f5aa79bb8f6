/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-2 */
/* p2p: auto */
/**
 * @file
 * MPI_ERROR of a status is written by calls that complete several requests, and only where one of
 * these has failed (MPI-3.1, 3.2.5): every other call leaves it as it was.
 */
#include "test/mpi/p2p.h"

#include <stdlib.h>
#include <time.h>

enum { KEPT = 7654, BYTES = 300000, RECEIVES = 10 };

static struct {
    int to, from;
    char *out, *in;
} side;

static void check_kept(const MPI_Status *status, const char *call)
{
    TL_CHECK(status->MPI_ERROR == KEPT, "%s writes %d into MPI_ERROR", call, status->MPI_ERROR);
}

/** A status with every field set. */
static MPI_Status prepared(void)
{
    MPI_Status status;

    status.MPI_SOURCE = status.MPI_TAG = -99;
    status.MPI_ERROR = KEPT;
    return status;
}

/** Sends a message of `bytes` to be found, and does with it what `receive` does. */
static void with_message(int bytes, void (*receive)(int bytes))
{
    MPI_Request send;

    TL_MPI(MPI_Isend(side.out, bytes, MPI_BYTE, side.to, 1, MPI_COMM_WORLD, &send));
    receive(bytes);
    TL_MPI(MPI_Wait(&send, MPI_STATUS_IGNORE));
}

/* ---- probes ---- */

static void test_probe(int bytes)
{
    MPI_Status status = prepared();
    int found = 0;

    TL_MPI(MPI_Probe(side.from, 1, MPI_COMM_WORLD, &status));
    check_kept(&status, "MPI_Probe");
    p2p_check_status(&status, side.from, 1, (size_t)bytes, "MPI_Probe");
    status = prepared();
    TL_MPI(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, &status));
    TL_CHECK(found, "a message that was there is not");
    check_kept(&status, "MPI_Iprobe");
    status = prepared();
    TL_MPI(MPI_Recv(side.in, bytes, MPI_BYTE, side.from, 1, MPI_COMM_WORLD, &status));
    check_kept(&status, "MPI_Recv");
    p2p_check_status(&status, side.from, 1, (size_t)bytes, "MPI_Recv");
}

/** It arrives while this process is not in MPI, and so may be taken straight from where it is. */
static void test_receive(int bytes)
{
    MPI_Status status = prepared();

    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    TL_MPI(MPI_Recv(side.in, bytes, MPI_BYTE, side.from, 1, MPI_COMM_WORLD, &status));
    check_kept(&status, "MPI_Recv of what is new");
    p2p_check_status(&status, side.from, 1, (size_t)bytes, "MPI_Recv of what is new");
}

static void test_mprobe(int bytes)
{
    MPI_Status status = prepared();
    MPI_Message message;

    TL_MPI(MPI_Mprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &message, &status));
    check_kept(&status, "MPI_Mprobe");
    p2p_check_status(&status, side.from, 1, (size_t)bytes, "MPI_Mprobe");
    status = prepared();
    TL_MPI(MPI_Mrecv(side.in, bytes, MPI_BYTE, &message, &status));
    check_kept(&status, "MPI_Mrecv");
}

static void test_improbe(int bytes)
{
    MPI_Status status = prepared();
    MPI_Message message;
    MPI_Request receive;
    int found = 0;

    while (!found) {
        status = prepared();
        TL_MPI(MPI_Improbe(side.from, MPI_ANY_TAG, MPI_COMM_WORLD, &found, &message, &status));
        check_kept(&status, "MPI_Improbe");
    }
    TL_MPI(MPI_Imrecv(side.in, bytes, MPI_BYTE, &message, &receive));
    status = prepared();
    TL_MPI(MPI_Wait(&receive, &status));
    check_kept(&status, "MPI_Wait for MPI_Imrecv");
}

/* ---- what completes ---- */

/** A receive is completed by the call of this number; its status is given back. */
static const char *complete(MPI_Request *receive, int call, MPI_Status *status)
{
    int index, done = 0;

    switch (call) {
    case 0:
        TL_MPI(MPI_Wait(receive, status));
        return "MPI_Wait";
    case 1:
        while (!done)
            TL_MPI(MPI_Test(receive, &done, status));
        return "MPI_Test";
    case 2:
        TL_MPI(MPI_Waitany(1, receive, &index, status));
        return "MPI_Waitany";
    case 3:
        while (!done)
            TL_MPI(MPI_Testany(1, receive, &index, &done, status));
        return "MPI_Testany";
    default:
        while (!done)
            TL_MPI(MPI_Request_get_status(*receive, &done, status));
        TL_MPI(MPI_Wait(receive, MPI_STATUS_IGNORE));
        return "MPI_Request_get_status";
    }
}

enum { CALLS = 5 };

static void test_completions(int bytes)
{
    for (int call = 0; call < CALLS; call++) {
        MPI_Status status = prepared();
        MPI_Request receive, send, cancelled;

        TL_MPI(MPI_Irecv(side.in, bytes, MPI_BYTE, side.from, 1, MPI_COMM_WORLD, &receive));
        TL_MPI(MPI_Isend(side.out, bytes, MPI_BYTE, side.to, 1, MPI_COMM_WORLD, &send));
        check_kept(&status, complete(&receive, call, &status));
        p2p_check_status(&status, side.from, 1, (size_t)bytes, "completed");
        status = prepared();
        check_kept(&status, complete(&send, call, &status));
        status = prepared();
        TL_MPI(MPI_Irecv(side.in, bytes, MPI_BYTE, side.from, 2, MPI_COMM_WORLD, &cancelled));
        TL_MPI(MPI_Cancel(&cancelled));
        check_kept(&status, complete(&cancelled, call, &status));
    }
}

static void test_nobody(void)
{
    MPI_Status status = prepared();
    MPI_Message message;
    int found;

    TL_MPI(MPI_Recv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status));
    check_kept(&status, "MPI_Recv from nobody");
    TL_MPI(MPI_Sendrecv(side.out, 9, MPI_BYTE, side.to, 1, side.in, 9, MPI_BYTE, side.from, 1,
                        MPI_COMM_WORLD, &status));
    check_kept(&status, "MPI_Sendrecv");
    TL_MPI(MPI_Probe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status));
    check_kept(&status, "MPI_Probe of nobody");
    TL_MPI(MPI_Iprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &found, &status));
    check_kept(&status, "MPI_Iprobe of nobody");
    TL_MPI(MPI_Mprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &message, &status));
    check_kept(&status, "MPI_Mprobe of nobody");
    TL_MPI(MPI_Mrecv(NULL, 0, MPI_BYTE, &message, &status));
    check_kept(&status, "MPI_Mrecv from nobody");
    TL_MPI(MPI_Improbe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &found, &message, &status));
    check_kept(&status, "MPI_Improbe of nobody");
    TL_MPI(MPI_Mrecv(NULL, 0, MPI_BYTE, &message, &status));
}

/** A message that is too long: the call says so, its one status does not. */
static void test_truncated(int bytes)
{
    MPI_Status status = prepared(), many[2];
    MPI_Request requests[2];

    TL_MPI_ERROR(MPI_Recv(side.in, bytes - 1, MPI_BYTE, side.from, 1, MPI_COMM_WORLD, &status),
                 MPI_ERR_TRUNCATE);
    check_kept(&status, "MPI_Recv of too much");
    TL_MPI(MPI_Irecv(side.in, bytes - 1, MPI_BYTE, side.from, 1, MPI_COMM_WORLD, &requests[0]));
    TL_MPI(MPI_Isend(side.out, bytes, MPI_BYTE, side.to, 1, MPI_COMM_WORLD, &requests[1]));
    many[0] = many[1] = prepared();
    TL_MPI_ERROR(MPI_Waitall(2, requests, many), MPI_ERR_IN_STATUS);
    TL_CHECK(many[0].MPI_ERROR == MPI_ERR_TRUNCATE &&
                 (many[1].MPI_ERROR == MPI_SUCCESS || many[1].MPI_ERROR == MPI_ERR_PENDING),
             "MPI_Waitall says %d and %d", many[0].MPI_ERROR, many[1].MPI_ERROR);
    TL_MPI(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
}

int main(int argc, char **argv)
{
    const int sizes[] = {1, 5000, BYTES};

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    side.to = (tl_rank() + 1) % tl_size();
    side.from = (tl_rank() + tl_size() - 1) % tl_size();
    side.out = tl_alloc(BYTES);
    side.in = tl_alloc(BYTES);
    for (int i = 0; i < 3; i++) {
        for (int n = 0; n < RECEIVES; n++)
            with_message(sizes[i], test_receive);
        with_message(sizes[i], test_probe);
        with_message(sizes[i], test_mprobe);
        with_message(sizes[i], test_improbe);
        test_completions(sizes[i]);
        with_message(sizes[i], test_truncated);
    }
    test_nobody();
    free(side.in);
    free(side.out);
    return tl_finish();
}
