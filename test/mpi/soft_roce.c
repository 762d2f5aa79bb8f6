/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* windows: create allocate */
/* needs: rdma */
/**
 * @file
 * The data went over the device: what soft-RoCE counts grows by what is put and got, with
 * contiguous and with strided data, and not by the gaps between strided blocks. What a strided get
 * costs in packets and in requests of the origin's is printed: with a method forced, reads against
 * the other side's puts. And what the device cannot take from where it is arrives, too.
 *
 * Skipped where there is no such device; test/fabric/roce makes one.
 */
#include "test/mpi/counter.h"
#include "test/mpi/testlib.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/** Data of one packet at most: the MTU of the devices. */
#define PACKET 4096
/** Packets that each transfer may cost besides: requests, acknowledgements, synchronisation. */
#define OVERHEAD 500
/** Of a block that goes by itself there and back: request, answer, acknowledgement of each. */
#define BLOCK_PACKETS 6
/** The kernel keeps what it has counted for 10 ms before it counts again. */
#define COUNTERS_USEC 20000
#define LARGEST       ((MPI_Aint)1 << 20)
#define BLOCK         64
#define STRIDE        512
#define TRIES         10
#define GETS          3

/** Packets sent by all devices, or -1 where there are none. */
static long packets_sent(void)
{
    static const char pattern[] = "/sys/class/infiniband/rxe*/ports/1/hw_counters/sent_pkts";
    glob_t found;
    long sum = -1;

    usleep(COUNTERS_USEC);
    if (glob(pattern, 0, NULL, &found) == 0) {
        sum = 0;
        for (size_t i = 0; i < found.gl_pathc; i++) {
            FILE *file = fopen(found.gl_pathv[i], "r");
            long value = 0;

            if (file == NULL || fscanf(file, "%ld", &value) != 1)
                sum = -1;
            sum += value;
            if (file != NULL)
                fclose(file);
        }
        globfree(&found);
    }
    return sum;
}

/** Rank 0 puts to rank 1 and gets back. */
static void there_and_back(const tl_window_t *w, MPI_Aint bytes, MPI_Datatype type, int count)
{
    unsigned char *sent = tl_alloc((size_t)bytes), *got = tl_alloc((size_t)bytes);

    tl_fill_random(sent, (size_t)bytes, tl_seed());
    TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, w->win));
    TL_MPI(MPI_Put(sent, (int)bytes, MPI_BYTE, 1, tl_disp(w, 1, 0), count, type, w->win));
    TL_MPI(MPI_Win_flush(1, w->win));
    TL_MPI(MPI_Get(got, (int)bytes, MPI_BYTE, 1, tl_disp(w, 1, 0), count, type, w->win));
    TL_MPI(MPI_Win_unlock(1, w->win));
    TL_BYTES(got, sent, (size_t)bytes, "put and got back");
    free(sent);
    free(got);
}

/** Packets that going there and back takes; known to rank 0. */
static long growth(const tl_window_t *w, MPI_Aint bytes, MPI_Datatype type, int count)
{
    long before, grown = 0;

    MPI_Barrier(w->comm);
    before = packets_sent();
    MPI_Barrier(w->comm);
    if (w->rank == 0) {
        there_and_back(w, bytes, type, count);
        grown = packets_sent() - before;
    }
    MPI_Barrier(w->comm);
    return grown;
}

/** What other programs send meanwhile counts, too: one try of some is enough. Where the adapter
 *  moves each of `blocks` by itself, that takes some packets for each. */
static void check_growth(const tl_window_t *w, MPI_Aint bytes, MPI_Datatype type, int count,
                         long blocks, const char *what)
{
    const long least = 2 * (bytes / PACKET);
    long most = 4 * least + OVERHEAD, grown = most + 1;
    counter_t *nic = counter_begin("osc_nicstride_ops_nic");

    for (int i = 0; i < TRIES && grown > most; i++) {
        grown = growth(w, bytes, type, count);
        most = 4 * least + OVERHEAD + (counter_read(nic) > 0 ? BLOCK_PACKETS * blocks : 0);
        TL_MPI(MPI_Bcast(&grown, 1, MPI_LONG, 0, w->comm));
        TL_MPI(MPI_Bcast(&most, 1, MPI_LONG, 0, w->comm));
    }
    counter_end(nic);
    if (w->rank == 0) {
        printf("soft_roce: %s window, %s, %ld bytes there and back: %ld packets\n",
               tl_kind_name(w->kind), what, (long)bytes, grown);
        TL_CHECK(grown >= least, "%s: only %ld packets for %ld bytes", what, grown, (long)bytes);
        TL_CHECK(grown <= most, "%s: %ld packets for %ld bytes", what, grown, (long)bytes);
    }
}

/** A strided get by itself, when its keys have come: the origin has at most a request for each
 *  block, and none where the other side sends. */
static void get_alone(const tl_window_t *w, MPI_Aint bytes, MPI_Datatype type)
{
    unsigned char *got = tl_alloc((size_t)bytes);
    counter_t *requests = counter_begin("osc_nicstride_nic_requests");
    const long blocks = bytes / BLOCK;
    long least = LONG_MAX, asked = 0;

    for (int i = 0; i < GETS; i++) {
        MPI_Barrier(w->comm);
        if (w->rank == 0) {
            const long packets = packets_sent();
            const double before = counter_read(requests);

            TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, w->win));
            TL_MPI(MPI_Get(got, (int)bytes, MPI_BYTE, 1, tl_disp(w, 1, 0), 1, type, w->win));
            TL_MPI(MPI_Win_unlock(1, w->win));
            asked = (long)(counter_read(requests) - before);
            const long grown = packets_sent() - packets;
            least = grown < least ? grown : least;
        }
        MPI_Barrier(w->comm);
    }
    counter_end(requests);
    if (w->rank == 0) {
        printf("soft_roce: %s window, a get of %ld blocks of %d bytes: %ld packets, %ld requests\n",
               tl_kind_name(w->kind), blocks, BLOCK, least, asked);
        TL_CHECK(asked <= blocks, "%ld requests for %ld blocks", asked, blocks);
    }
    free(got);
}

/** A constant of the program, which UCX cannot register, though keys have come by now. */
static void put_constant(const tl_window_t *w)
{
    static const unsigned char table[LARGEST] = {[0] = 1, [LARGEST - 1] = 2};

    if (w->rank == 0) {
        TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, w->win));
        TL_MPI(MPI_Put(table, (int)LARGEST, MPI_BYTE, 1, tl_disp(w, 1, 0), (int)LARGEST, MPI_BYTE,
                       w->win));
        TL_MPI(MPI_Win_unlock(1, w->win));
    }
    MPI_Barrier(w->comm);
    if (w->rank == 1) {
        TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, w->win));
        TL_BYTES(w->base, table, LARGEST, "a constant");
        TL_MPI(MPI_Win_unlock(1, w->win));
    }
    MPI_Barrier(w->comm);
}

int main(int argc, char **argv)
{
    MPI_Datatype strided;
    int provided;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    if (packets_sent() < 0)
        tl_skip("no soft-RoCE device (test/fabric/roce makes one)");
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        tl_window_t w =
            tl_win_make(kind, LARGEST / BLOCK * STRIDE, 1, MPI_COMM_WORLD, MPI_INFO_NULL);

        for (MPI_Aint bytes = LARGEST / 64; bytes <= LARGEST; bytes *= 8) {
            check_growth(&w, bytes, MPI_BYTE, (int)bytes, 0, "contiguous");
            MPI_Type_vector((int)(bytes / BLOCK), BLOCK, STRIDE, MPI_BYTE, &strided);
            MPI_Type_commit(&strided);
            check_growth(&w, bytes, strided, 1, bytes / BLOCK, "strided");
            if (bytes < LARGEST)
                get_alone(&w, bytes, strided);
            MPI_Type_free(&strided);
        }
        put_constant(&w);
        tl_win_free(&w);
    }
    MPI_T_finalize();
    return tl_finish();
}
