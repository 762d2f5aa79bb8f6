/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-4 */
/* engines: datagram */
/* apart: transport */
/* timeout: 200 */
/**
 * @file
 * The last messages of a job are lost: those by which rank 0 ends the barrier that is made behind
 * the runtime's fence (osc_nicstride's, because of the window). Rank 0 has all that it needs, and
 * the others ask it late. Their hosts say nothing of packets for a process that has gone, as where
 * packets are filtered: without a farewell they would wait for ever. pml_superpipe, which has one
 * more fence behind all, is not used.
 */
#include "test/mpi/meet.h"

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "coll_nicbarrier/engines/datagram/wire/packet.h"

enum { MANY = 5 };

static atomic_bool loses;
static atomic_int lost;

/** In place of the C library's. */
__attribute__((visibility("default"))) ssize_t
sendto(int fd, const void *bytes, size_t n, int flags, const struct sockaddr *to, socklen_t len)
{
    if (atomic_load(&loses) && n == NICBARRIER_PACKET_SIZE &&
        ((const unsigned char *)bytes)[NICBARRIER_PACKET_KIND_AT] == NICBARRIER_PACKET_EPOCH) {
        atomic_fetch_add(&lost, 1);
        return (ssize_t)n;
    }
    return syscall(SYS_sendto, fd, bytes, n, flags, to, len);
}

/** Likewise: nobody is told of refusals. */
__attribute__((visibility("default"))) int setsockopt(int fd, int level, int name,
                                                      const void *value, socklen_t len)
{
    if ((level == IPPROTO_IP && name == IP_RECVERR) ||
        (level == IPPROTO_IPV6 && name == IPV6_RECVERR))
        return 0;
    return (int)syscall(SYS_setsockopt, fd, level, name, value, len);
}

int main(int argc, char **argv)
{
    setenv("OMPI_MCA_coll_nicbarrier_setup_call", "1", 1);
    setenv("OMPI_MCA_coll_nicbarrier_schedule", "gather", 1);
    setenv("OMPI_MCA_coll_nicbarrier_stepper", "host", 1);
    setenv("OMPI_MCA_coll_nicbarrier_nack_timeout", "100000", 1);
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    meet_begin();
    if (meet_engine() == NULL)
        tl_skip("another component does the barriers");
    meet_t m = meet_new(MPI_COMM_WORLD);
    MPI_Win win;
    int word = 0;
    TL_MPI(MPI_Win_create(&word, sizeof(word), sizeof(word), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    for (int i = 0; i < MANY; i++)
        meet_barrier(&m, "blocking");
    TL_CHECK(meet_counter("barriers_datagram") >= MANY || !tl_one_host(),
             "%lld barriers by datagrams", meet_counter("barriers_datagram"));
    meet_free(&m);
    TL_MPI(MPI_Win_free(&win));
    const bool first = tl_rank() == 0;
    atomic_store(&loses, first);
    const int code = meet_finish();
    /* Open MPI 5 has no communicator any more then. */
    if (OMPI_MAJOR_VERSION >= 5 || !first || atomic_load(&lost) > 0)
        return code;
    puts("barrier_farewell: nothing was lost");
    return TL_EXIT_FAILED;
}
