/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* p2p: auto eager */
/**
 * @file
 * A sender is a step ahead: two messages are there before their receiver, which stays away from MPI
 * meanwhile, waits for the first one. The wait ends with that, and the second one is still in its
 * queue when its receive is posted: it goes from there right into the user's memory, and is never
 * kept as an unexpected one. Each says to the other by a datagram when it is out of MPI.
 */
#include "test/mpi/p2p.h"

#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test/mpi/counter.h"

enum { TAG = 7, STEPS = 20, BYTES = 4096, GIVE_UP = 1000 * TL_PATIENCE };

static struct sockaddr_in other;
static int ears;

static void open_ears(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    socklen_t len = sizeof(at);

    ears = socket(AF_INET, SOCK_DGRAM, 0);
    if (ears < 0 || bind(ears, (struct sockaddr *)&at, len) != 0 ||
        getsockname(ears, (struct sockaddr *)&at, &len) != 0)
        tl_die("no socket to be had");
    at.sin_addr.s_addr = p2p_own_address();
    TL_MPI(MPI_Sendrecv(&at, sizeof(at), MPI_BYTE, 1 - tl_rank(), TAG, &other, sizeof(other),
                        MPI_BYTE, 1 - tl_rank(), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

static void tell(void)
{
    TL_CHECK(sendto(ears, "now", 3, 0, (const struct sockaddr *)&other, sizeof(other)) == 3,
             "the other one cannot be told");
}

static void await(void)
{
    struct pollfd wait = {.fd = ears, .events = POLLIN};
    char said[3];

    TL_CHECK(poll(&wait, 1, GIVE_UP) == 1 && recv(ears, said, sizeof(said), 0) == sizeof(said),
             "nothing was heard of the other one");
}

static void send_both(int step)
{
    unsigned char out[BYTES];

    await();
    for (int i = 0; i < 2; i++) {
        p2p_fill(out, sizeof(out), p2p_seed(0, step, i));
        TL_MPI(MPI_Send(out, sizeof(out), MPI_BYTE, 1, TAG, MPI_COMM_WORLD));
    }
    tell();
}

static void receive_both(int step)
{
    unsigned char in[BYTES], want[BYTES];
    MPI_Request request;

    tell();
    await();
    for (int i = 0; i < 2; i++) {
        TL_MPI(MPI_Irecv(in, sizeof(in), MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &request));
        TL_MPI(MPI_Waitall(1, &request, MPI_STATUSES_IGNORE));
        p2p_fill(want, sizeof(want), p2p_seed(0, step, i));
        TL_BYTES(in, want, sizeof(want), "message %d of step %d", i, step);
    }
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    open_ears();
    counter_t *unexpected = counter_begin("pml_superpipe_unexpected");
    for (int step = 0; step < STEPS; step++)
        if (tl_rank() == 0)
            send_both(step);
        else
            receive_both(step);
    TL_CHECK(counter_read(unexpected) == 0 || !p2p_is_one_host(),
             "%llu messages were taken out of their queue before their receives",
             counter_read(unexpected));
    counter_end(unexpected);
    close(ears);
    return tl_finish();
}
