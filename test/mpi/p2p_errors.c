/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-3 */
/* p2p: auto */
/**
 * @file
 * Arguments that are wrong: each call says so by the right class, starts nothing, and what comes
 * after works.
 */
#include "test/mpi/p2p.h"

#include <stdlib.h>

static long word;
static MPI_Request request;
static MPI_Message message;
static MPI_Status status;
static int flag;

/** All calls that send, but those of persistent requests of which Open MPI checks nothing. */
static void check_sends(int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, int class)
{
    TL_MPI_ERROR(MPI_Send(&word, count, type, to, tag, comm), class);
    TL_MPI_ERROR(MPI_Ssend(&word, count, type, to, tag, comm), class);
    TL_MPI_ERROR(MPI_Bsend(&word, count, type, to, tag, comm), class);
    TL_MPI_ERROR(MPI_Rsend(&word, count, type, to, tag, comm), class);
    TL_MPI_ERROR(MPI_Isend(&word, count, type, to, tag, comm, &request), class);
    TL_MPI_ERROR(MPI_Issend(&word, count, type, to, tag, comm, &request), class);
    TL_MPI_ERROR(MPI_Ibsend(&word, count, type, to, tag, comm, &request), class);
    TL_MPI_ERROR(MPI_Irsend(&word, count, type, to, tag, comm, &request), class);
    TL_MPI_ERROR(MPI_Send_init(&word, count, type, to, tag, comm, &request), class);
    TL_MPI_ERROR(MPI_Sendrecv(&word, count, type, to, tag, &word, 0, MPI_LONG, MPI_PROC_NULL, 1,
                              comm, &status),
                 class);
}

/** All calls that receive. */
static void check_receives(int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                           int class)
{
    TL_MPI_ERROR(MPI_Recv(&word, count, type, from, tag, comm, &status), class);
    TL_MPI_ERROR(MPI_Irecv(&word, count, type, from, tag, comm, &request), class);
    TL_MPI_ERROR(MPI_Recv_init(&word, count, type, from, tag, comm, &request), class);
    TL_MPI_ERROR(MPI_Sendrecv(&word, 0, MPI_LONG, MPI_PROC_NULL, 1, &word, count, type, from, tag,
                              comm, &status),
                 class);
}

static void check_probes(int from, int tag, MPI_Comm comm, int class)
{
    TL_MPI_ERROR(MPI_Probe(from, tag, comm, &status), class);
    TL_MPI_ERROR(MPI_Iprobe(from, tag, comm, &flag, &status), class);
    TL_MPI_ERROR(MPI_Mprobe(from, tag, comm, &message, &status), class);
    TL_MPI_ERROR(MPI_Improbe(from, tag, comm, &flag, &message, &status), class);
}

/** A message to oneself, so that all is as it was. */
static void check_works(MPI_Comm comm, const char *after)
{
    long out = 77, in = 0;
    int me;

    MPI_Comm_rank(comm, &me);
    TL_MPI(MPI_Sendrecv(&out, 1, MPI_LONG, me, 5, &in, 1, MPI_LONG, me, 5, comm, &status));
    p2p_check_status(&status, me, 5, sizeof(long), after);
    TL_CHECK(in == 77, "%s: %ld", after, in);
}

static void test_ranks(MPI_Comm comm)
{
    int size;
    /* No other negative rank but wildcard, PROC_NULL and ROOT has a meaning. */
    const int wrong[] = {-20, 0, 1000000};

    MPI_Comm_size(comm, &size);
    for (int i = 0; i < 3; i++) {
        int r = i == 1 ? size : wrong[i];

        check_sends(1, MPI_LONG, r, 1, comm, MPI_ERR_RANK);
        check_receives(1, MPI_LONG, r, 1, comm, MPI_ERR_RANK);
        check_probes(r, 1, comm, MPI_ERR_RANK);
    }
    check_sends(1, MPI_LONG, MPI_ANY_SOURCE, 1, comm, MPI_ERR_RANK);
    check_works(comm, "wrong ranks");
}

static void test_tags(MPI_Comm comm)
{
    int *bound = NULL, found = 0;

    MPI_Comm_get_attr(comm, MPI_TAG_UB, &bound, &found);
    TL_CHECK(found && *bound >= 32767, "the largest tag is %d", found ? *bound : -1);
    check_sends(1, MPI_LONG, 0, -20, comm, MPI_ERR_TAG);
    check_sends(1, MPI_LONG, 0, MPI_ANY_TAG, comm, MPI_ERR_TAG);
    check_receives(1, MPI_LONG, 0, -20, comm, MPI_ERR_TAG);
    check_probes(0, -20, comm, MPI_ERR_TAG);
    if (found && *bound < INT32_MAX) {
        check_sends(1, MPI_LONG, 0, *bound + 1, comm, MPI_ERR_TAG);
        check_receives(1, MPI_LONG, 0, *bound + 1, comm, MPI_ERR_TAG);
    }
    check_works(comm, "wrong tags");
    if (found) {
        int me;

        /* The largest one is right. */
        MPI_Comm_rank(comm, &me);
        TL_MPI(MPI_Sendrecv(&word, 1, MPI_LONG, me, *bound, &word, 0, MPI_LONG, MPI_PROC_NULL, 0,
                            comm, &status));
        TL_MPI(MPI_Recv(&word, 1, MPI_LONG, me, MPI_ANY_TAG, comm, &status));
        p2p_check_status(&status, me, *bound, sizeof(long), "the largest tag");
    }
}

static void test_counts_and_types(MPI_Comm comm)
{
    MPI_Datatype type;

    check_sends(-1, MPI_LONG, 0, 1, comm, MPI_ERR_COUNT);
    check_receives(-1, MPI_LONG, 0, 1, comm, MPI_ERR_COUNT);
    check_sends(1, MPI_DATATYPE_NULL, 0, 1, comm, MPI_ERR_TYPE);
    check_receives(1, MPI_DATATYPE_NULL, 0, 1, comm, MPI_ERR_TYPE);
    MPI_Type_vector(2, 1, 2, MPI_SHORT, &type);
    check_sends(1, type, 0, 1, comm, MPI_ERR_TYPE);
    check_receives(1, type, 0, 1, comm, MPI_ERR_TYPE);
    MPI_Type_free(&type);
    check_works(comm, "wrong counts and types");
}

static void test_requests(MPI_Comm comm)
{
    request = MPI_REQUEST_NULL;
    TL_MPI_ERROR(MPI_Start(&request), MPI_ERR_REQUEST);
    TL_MPI_ERROR(MPI_Cancel(&request), MPI_ERR_REQUEST);
    TL_MPI_ERROR(MPI_Request_free(&request), MPI_ERR_REQUEST);
    check_works(comm, "null requests");
}

/** Of messages for which there is no room in the buffer, or no buffer. */
static void check_buffered(MPI_Comm comm, int bytes)
{
    static char data[1000];

    TL_MPI_ERROR(MPI_Bsend(data, bytes, MPI_BYTE, 0, 1, comm), MPI_ERR_BUFFER);
    TL_MPI_ERROR(MPI_Ibsend(data, bytes, MPI_BYTE, 0, 1, comm, &request), MPI_ERR_BUFFER);
    TL_MPI(MPI_Bsend_init(data, bytes, MPI_BYTE, 0, 1, comm, &request));
    TL_MPI_ERROR(MPI_Start(&request), MPI_ERR_BUFFER);
    TL_MPI(MPI_Request_free(&request));
    TL_MPI(MPI_Iprobe(MPI_ANY_SOURCE, 1, comm, &flag, &status));
    TL_CHECK(!flag, "a message that had no room in the buffer was sent");
    check_works(comm, "no buffer");
}

static void test_buffer(MPI_Comm comm)
{
    char buffer[500];
    void *was = NULL;
    int size;

    check_buffered(comm, 8);
    MPI_Buffer_attach(buffer, sizeof(buffer));
    check_buffered(comm, 1000);
    MPI_Buffer_detach(&was, &size);
}

int main(int argc, char **argv)
{
    MPI_Comm comm;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    test_ranks(comm);
    test_ranks(MPI_COMM_SELF);
    test_tags(comm);
    test_counts_and_types(comm);
    test_requests(comm);
    if (p2p_layer("superpipe"))
        test_buffer(MPI_COMM_SELF);
    check_sends(1, MPI_LONG, 0, 1, MPI_COMM_NULL, MPI_ERR_COMM);
    check_receives(1, MPI_LONG, 0, 1, MPI_COMM_NULL, MPI_ERR_COMM);
    check_works(comm, "no communicator");
    MPI_Comm_free(&comm);
    return tl_finish();
}
