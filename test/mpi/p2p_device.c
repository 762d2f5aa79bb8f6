/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-2 */
/* p2p: auto */
/**
 * @file
 * Messages from and into memory of devices are refused where it can be told. There is no device:
 * some pages of this program count as one (see device.c). Every call with such a buffer must fail
 * and move nothing, with others it must work.
 */
#include "common/ompi_compat.h"
#include "common/support/device.h"
#include "test/mpi/p2p.h"

#include <stdlib.h>

enum { LONGS = 40000 };

static struct {
    long device[LONGS];
    long host[LONGS];
} memory;

static bool hook(const void *p)
{
    return (uintptr_t)p >= (uintptr_t)memory.device &&
           (uintptr_t)p < (uintptr_t)(memory.device + LONGS);
}

static void check_untouched(void)
{
    for (int i = 0; i < LONGS; i++)
        if (!TL_CHECK(memory.device[i] == 1000 + i, "long %d of the device is %ld", i,
                      memory.device[i]))
            break;
}

#define REFUSED(call) TL_MPI_ERROR(call, MPI_ERR_BUFFER)

/** A buffer of the device, in every call; nothing is under way afterwards. */
static void refuse(void *d, int n, MPI_Datatype type)
{
    const int to = (tl_rank() + 1) % tl_size();
    MPI_Request r = MPI_REQUEST_NULL;
    MPI_Comm world = MPI_COMM_WORLD;

    REFUSED(MPI_Send(d, n, type, to, 0, world));
    REFUSED(MPI_Ssend(d, n, type, to, 0, world));
    REFUSED(MPI_Rsend(d, n, type, to, 0, world));
    REFUSED(MPI_Bsend(d, n, type, to, 0, world));
    REFUSED(MPI_Isend(d, n, type, to, 0, world, &r));
    REFUSED(MPI_Issend(d, n, type, to, 0, world, &r));
    REFUSED(MPI_Ibsend(d, n, type, to, 0, world, &r));
    REFUSED(MPI_Recv(d, n, type, MPI_ANY_SOURCE, 0, world, MPI_STATUS_IGNORE));
    REFUSED(MPI_Irecv(d, n, type, to, 0, world, &r));
    TL_MPI(MPI_Send_init(d, n, type, to, 0, world, &r));
    REFUSED(MPI_Start(&r));
    TL_MPI(MPI_Request_free(&r));
    TL_MPI(MPI_Recv_init(d, n, type, to, 0, world, &r));
    REFUSED(MPI_Start(&r));
    TL_MPI(MPI_Request_free(&r));
}

/** A message whose receive into the device was refused is still there. */
static void refuse_matched(int n)
{
    const int to = (tl_rank() + 1) % tl_size(), from = (tl_rank() + tl_size() - 1) % tl_size();
    MPI_Message message;
    MPI_Request send, receive;

    for (int i = 0; i < n; i++)
        memory.host[i] = 10 * tl_rank() + i;
    TL_MPI(MPI_Isend(memory.host, n, MPI_LONG, to, n, MPI_COMM_WORLD, &send));
    TL_MPI(MPI_Mprobe(from, n, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
    REFUSED(MPI_Mrecv(memory.device, n, MPI_LONG, &message, MPI_STATUS_IGNORE));
    REFUSED(MPI_Imrecv(memory.device, n, MPI_LONG, &message, &receive));
    long *in = tl_alloc((size_t)n * sizeof(long));
    TL_MPI(MPI_Mrecv(in, n, MPI_LONG, &message, MPI_STATUS_IGNORE));
    TL_MPI(MPI_Wait(&send, MPI_STATUS_IGNORE));
    TL_CHECK(in[0] == 10L * from && in[n - 1] == 10L * from + n - 1, "%ld to %ld", in[0],
             in[n - 1]);
    free(in);
}

/** Types whose data is on the device though the pointer that is given is not. */
static void refuse_types(void)
{
    MPI_Aint where[2];
    MPI_Datatype absolute, mixed, vector;
    int lengths[2] = {2, 2};

    MPI_Get_address(memory.device, &where[0]);
    MPI_Get_address(memory.host, &where[1]);
    MPI_Type_create_hindexed(1, lengths, where, MPI_LONG, &absolute);
    MPI_Type_create_hindexed(2, lengths, where, MPI_LONG, &mixed);
    MPI_Type_vector(20, 2, 5, MPI_LONG, &vector);
    MPI_Type_commit(&absolute);
    MPI_Type_commit(&mixed);
    MPI_Type_commit(&vector);
    refuse(MPI_BOTTOM, 1, absolute);
    refuse(MPI_BOTTOM, 1, mixed);
    refuse(memory.device, 1, vector);
    MPI_Type_free(&absolute);
    MPI_Type_free(&mixed);
    MPI_Type_free(&vector);
}

/** MPI looks at no memory of an empty message. */
static void take_empty(void)
{
    const int to = (tl_rank() + 1) % tl_size(), from = (tl_rank() + tl_size() - 1) % tl_size();

    TL_MPI(MPI_Sendrecv(memory.device, 0, MPI_LONG, to, 0, memory.device, 0, MPI_LONG, from, 0,
                        MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

int main(int argc, char **argv)
{
    const int lengths[] = {1, 16, LONGS};

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    if (!p2p_layer("superpipe"))
        tl_skip("this layer does not ask whose memory it is");
    for (int i = 0; i < LONGS; i++)
        memory.device[i] = 1000 + i;
    __atomic_store_n(&onic_device_fn, hook, __ATOMIC_RELEASE);
    for (int i = 0; i < 3; i++) {
        refuse(memory.device, lengths[i], MPI_LONG);
        refuse_matched(lengths[i]);
    }
    refuse_types();
    take_empty();
    check_untouched();
    __atomic_store_n(&onic_device_fn, NULL, __ATOMIC_RELEASE);
    return tl_finish();
}
