/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* p2p: pipeline rendezvous */
/* needs: rdma */
/* mpirun: --mca pml_superpipe_network_slots 1 */
/**
 * @file
 * Over an adapter the pipeline registers none of the user's memory: what is asked of libibverbs
 * passes here, and no buffer of a message is among it. UCX's rendezvous registers them, by which it
 * is seen that they would be found, and keeps them registered.
 *
 * Skipped where there is no such device; test/fabric/roce makes one.
 */
#define _GNU_SOURCE
#include "test/mpi/p2p.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "test/mpi/counter.h"

enum { LONG = 1 << 18, MESSAGES = 2, TIMES = 8, TAG = 7, TRIES = 50 };

/* ---- what libibverbs is asked ---------------------------------------------------------------- */

/** Else libraries would not find it here. */
#define VISIBLE __attribute__((visibility("default")))

struct ibv_pd;
struct ibv_mr;
VISIBLE struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access);
VISIBLE struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                        unsigned access);

/** Where the buffers of messages are. */
static struct {
    _Atomic(uintptr_t) first, end;
    atomic_int found; /**< registrations that have something of it */
} watched;

static void look(const void *addr, size_t length)
{
    const uintptr_t first = (uintptr_t)addr;

    if (first < atomic_load(&watched.end) && first + length > atomic_load(&watched.first))
        atomic_fetch_add(&watched.found, 1);
}

static void *real(const char *name)
{
    void *library = dlopen("libibverbs.so.1", RTLD_LAZY);

    return library != NULL ? dlsym(library, name) : NULL;
}

/* In place of the library's own. */
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    struct ibv_mr *(*reg)(struct ibv_pd *, void *, size_t, int) = real("ibv_reg_mr");

    look(addr, length);
    return reg != NULL ? reg(pd, addr, length, access) : NULL;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                unsigned access)
{
    struct ibv_mr *(*reg)(struct ibv_pd *, void *, size_t, uint64_t, unsigned) =
        real("ibv_reg_mr_iova2");

    look(addr, length);
    return reg != NULL ? reg(pd, addr, length, iova, access) : NULL;
}

/* ---- messages -------------------------------------------------------------------------------- */

static void exchange(unsigned char *out, unsigned char *in, int number)
{
    const int other = 1 - tl_rank();

    p2p_fill(out, LONG, p2p_seed(tl_rank(), TAG, number));
    TL_MPI(MPI_Sendrecv(out, LONG, MPI_BYTE, other, TAG, in, LONG, MPI_BYTE, other, TAG,
                        MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    TL_CHECK(p2p_holds(in, LONG, p2p_seed(other, TAG, number)), "message %d", number);
}

/** Until the protocol serves both: connections are made on first use. */
static bool warm_up(const counter_t *served)
{
    unsigned char *out = tl_alloc(LONG), *in = tl_alloc(LONG);
    int all = 0;

    for (int i = 0; i < TRIES && !all; i++) {
        exchange(out, in, i);
        all = counter_read(served) > 0;
        TL_MPI(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD));
    }
    free(out);
    free(in);
    return all;
}

/** Of memory that is new to the protocol, each buffer of which serves several times. */
static int registered(void)
{
    unsigned char *memory = tl_alloc((size_t)2 * MESSAGES * LONG);

    atomic_store(&watched.first, (uintptr_t)memory);
    atomic_store(&watched.end, (uintptr_t)memory + (uintptr_t)2 * MESSAGES * LONG);
    for (int i = 0; i < TIMES * MESSAGES; i++) {
        const size_t pair = (size_t)(i % MESSAGES) * 2 * LONG;

        exchange(memory + pair, memory + pair + LONG, i);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    atomic_store(&watched.end, 0);
    free(memory);
    return atomic_load(&watched.found);
}

static bool has_device(void)
{
    glob_t found;
    const bool has = glob("/sys/class/infiniband/rxe*", 0, NULL, &found) == 0;

    if (has)
        globfree(&found);
    return has;
}

int main(int argc, char **argv)
{
    const char *protocol = getenv("OMPI_MCA_pml_superpipe_protocol");
    char name[64] = "pml_superpipe_messages_";
    counter_t *served;
    int found;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    if (!has_device() || protocol == NULL)
        tl_skip("no soft-RoCE device (test/fabric/roce makes one)");
    served = counter_begin(strncat(name, protocol, sizeof(name) - strlen(name) - 1));
    TL_CHECK(warm_up(served), "protocol %s does not serve", protocol);
    found = registered();
    TL_CHECK((found > 0) == (strcmp(protocol, "rendezvous") == 0),
             "by %s: %d registrations of %d buffers", protocol, found, 2 * MESSAGES);
    TL_CHECK(found <= 2 * MESSAGES, "%d registrations of %d buffers: none is kept", found,
             2 * MESSAGES);
    counter_end(served);
    return tl_finish();
}
