/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-5 */
/* p2p: auto eager */
/**
 * @file
 * The first messages between two processes leave within the calls that send them: their sender does
 * not call MPI again before the receiver has said, by a datagram, that it has them. Each pair is
 * new to each other, and is sent to in a way of its own: modes, a persistent request, one that is
 * freed, layouts, lengths up to the longest that are sent at once, several in a row. For all of
 * them there is credit from the beginning.
 *
 * With an even number of ranks messages go by UCX on one node, too. A connection of UCX takes calls
 * of the sender: where there are no queues, only sends that wait are tried.
 */
#include "test/mpi/p2p.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test/mpi/counter.h"

/** Milliseconds until a sender gives the receiver up: whatever the machine is busy with, unless the
 *  test has failed. */
enum { GIVE_UP = 60000 };

typedef enum way {
    SEND,
    EMPTY,
    FREED,
    BUFFERED,
    EAGER,
    ROW,
    ISEND,
    PERSISTENT,
    VECTOR,
    WAYS
} way_t;

/** Bytes and number of messages of each. */
static const int bytes_of[WAYS] = {4, 0, 4, 100, 8000, 40, 1, 8, 640};

static int number_of(way_t way)
{
    return way == ROW ? 25 : 1;
}

/** Messages go by UCX on one node, too. Asked before MPI_Init. */
static bool cuts_queues(void)
{
    const char *ranks = getenv("OMPI_COMM_WORLD_SIZE");

    return ranks != NULL && atoi(ranks) % 2 == 0;
}

/** Pairs are counted so that those of two ranks begin with the first way. Without queues the
 *  messages of calls that do not wait stay until there is a connection, as with other layers. */
static way_t way_of(int from, int to)
{
    const way_t way = (way_t)((uint64_t)(from * 4 + to - 1) + tl_seed() - 1) % WAYS;

    const bool waits = way == SEND || way == EAGER || way == ROW || way == VECTOR;

    return waits || (p2p_is_one_host() && !cuts_queues()) ? way : SEND;
}

/* ---- datagrams ---- */

/** A socket that can be written to, and its port. */
static int open_socket(int *port_p)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    socklen_t len = sizeof(at);
    int s = socket(AF_INET, SOCK_DGRAM, 0);

    if (s < 0 || bind(s, (struct sockaddr *)&at, len) != 0 ||
        getsockname(s, (struct sockaddr *)&at, &len) != 0)
        TL_CHECK(false, "no socket to be had");
    *port_p = ntohs(at.sin_port);
    return s;
}

static void tell(in_addr_t address, int port)
{
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = address};
    int s = socket(AF_INET, SOCK_DGRAM, 0);

    TL_CHECK(sendto(s, "got", 3, 0, (const struct sockaddr *)&to, sizeof(to)) == 3,
             "the sender cannot be told");
    close(s);
}

/* ---- messages ---- */

/** The tag of each is the port where the sender listens; its first bytes are its address, where
 *  there are as many, and else both are on one host. */
static void write_message(void *memory, way_t way, int from, int i)
{
    const in_addr_t address = p2p_own_address();

    p2p_fill(memory, (size_t)bytes_of[way], p2p_seed(from, (int)way, i));
    if (bytes_of[way] >= (int)sizeof(address))
        memcpy(memory, &address, sizeof(address));
}

static void send_one(way_t way, void *out, int to, int tag)
{
    MPI_Datatype vector;
    MPI_Request request;
    static char buffer[4096];

    switch (way) {
    case FREED:
    case ISEND:
        TL_MPI(MPI_Isend(out, bytes_of[way], MPI_BYTE, to, tag, MPI_COMM_WORLD, &request));
        MPI_Request_free(&request);
        break;
    case BUFFERED:
        MPI_Buffer_attach(buffer, sizeof(buffer));
        TL_MPI(MPI_Bsend(out, bytes_of[way], MPI_BYTE, to, tag, MPI_COMM_WORLD));
        break;
    case PERSISTENT:
        TL_MPI(MPI_Send_init(out, bytes_of[way], MPI_BYTE, to, tag, MPI_COMM_WORLD, &request));
        TL_MPI(MPI_Start(&request));
        MPI_Request_free(&request);
        break;
    case VECTOR:
        MPI_Type_vector(bytes_of[way] / 16, 16, 32, MPI_BYTE, &vector);
        MPI_Type_commit(&vector);
        TL_MPI(MPI_Send(out, 1, vector, to, tag, MPI_COMM_WORLD));
        MPI_Type_free(&vector);
        break;
    default:
        TL_MPI(MPI_Send(out, bytes_of[way], MPI_BYTE, to, tag, MPI_COMM_WORLD));
    }
}

/** As the vector has it. */
static void spread(unsigned char *memory, int bytes)
{
    for (int at = bytes / 16 - 1; at > 0; at--)
        memcpy(memory + (size_t)at * 32, memory + (size_t)at * 16, 16);
}

/** Sends, and stays away from MPI until all of it is there. */
static void send_first(int to)
{
    static unsigned char out[2 * 8000];
    const way_t way = way_of(tl_rank(), to);
    int port;
    struct pollfd wait = {.fd = open_socket(&port), .events = POLLIN};

    for (int i = 0; i < number_of(way); i++) {
        write_message(out, way, tl_rank(), i);
        if (way == VECTOR)
            spread(out, bytes_of[way]);
        send_one(way, out, to, port);
    }
    TL_CHECK(poll(&wait, 1, GIVE_UP) == 1, "rank %d did not get what was sent in way %d", to,
             (int)way);
    close(wait.fd);
    if (way == BUFFERED) {
        void *buffer;
        int size;

        MPI_Buffer_detach(&buffer, &size);
    }
}

static void receive_first(int from)
{
    static unsigned char in[8000], want[8000];
    const way_t way = way_of(from, tl_rank());
    in_addr_t address = htonl(INADDR_LOOPBACK);
    MPI_Status status = {.MPI_TAG = 0};

    for (int i = 0; i < number_of(way); i++) {
        TL_MPI(MPI_Recv(in, sizeof(in), MPI_BYTE, from, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        p2p_check_status(&status, from, status.MPI_TAG, (size_t)bytes_of[way], "first");
        p2p_fill(want, (size_t)bytes_of[way], p2p_seed(from, (int)way, i));
        if (bytes_of[way] >= (int)sizeof(address)) {
            memcpy(&address, in, sizeof(address));
            memcpy(want, in, sizeof(address));
        }
        TL_BYTES(in, want, (size_t)bytes_of[way], "message %d of way %d", i, (int)way);
    }
    tell(address, status.MPI_TAG);
}

/** Each sends to those behind it when it has had the messages of those before it. */
static void test_first(void)
{
    for (int from = 0; from < tl_rank(); from++)
        receive_first(from);
    for (int to = tl_rank() + 1; to < tl_size(); to++)
        send_first(to);
}

int main(int argc, char **argv)
{
    if (cuts_queues())
        setenv("OMPI_MCA_pml_superpipe_queues", "0", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    counter_t *no_credit = counter_begin("pml_superpipe_no_credit");
    test_first();
    TL_CHECK(counter_read(no_credit) == 0, "%llu messages had to wait for credit",
             counter_read(no_credit));
    counter_end(no_credit);
    return tl_finish();
}
