/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2 */
/* p2p: auto pipeline */
/* long: auto pipeline */
/* sanitized: pairs */
/**
 * @file
 * Messages of more than 4 GiB, contiguous and not. They need little memory: but for windows at
 * their beginning, around 2 GiB and from 4 GiB to the end, all addresses are a few pages again and
 * again, in a period that no power of two is a multiple of.
 */
#define _GNU_SOURCE /* memfd_create */
#include "test/mpi/p2p.h"

#include <sys/mman.h>
#include <unistd.h>

#define MEBI   ((MPI_Aint)1 << 20)
#define GIBI   ((MPI_Aint)1 << 30)
#define BLOCKS 4104
#define GAP    ((MPI_Aint)64)
#define BYTES  (BLOCKS * MEBI)
#define SPAN   (BLOCKS * (MEBI + GAP))
#define PERIOD (47 * MEBI + 12288)
#define PIECE  ((MPI_Aint)4096)

/** Parts of the data that have memory of their own, with some room for gaps around them. */
static const MPI_Aint windows[][2] = {
    {0, 4 * MEBI}, {2 * GIBI - 4 * MEBI, 2 * GIBI + 4 * MEBI}, {4 * GIBI - 4 * MEBI, BYTES}};
enum { WINDOWS = sizeof(windows) / sizeof(*windows) };

static void map_at(unsigned char *at, MPI_Aint bytes, int flags, int file)
{
    if (mmap(at, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_FIXED | flags, file, 0) != at)
        tl_die("mmap");
}

/** The addresses; *repeated is what most of them are. */
static unsigned char *map_memory(unsigned char **repeated)
{
    unsigned char *memory =
        mmap(NULL, (size_t)SPAN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int file = memfd_create("p2p_huge", 0);

    if (memory == MAP_FAILED || file < 0 || ftruncate(file, PERIOD) != 0)
        tl_die("no memory");
    *repeated = mmap(NULL, (size_t)PERIOD, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    for (MPI_Aint at = 0; at < SPAN; at += PERIOD)
        map_at(memory + at, SPAN - at < PERIOD ? SPAN - at : PERIOD, MAP_SHARED, file);
    close(file);
    for (int w = 0; w < WINDOWS; w++) {
        /* What is before 4 GiB of the data is not behind it in memory by more than the gaps. */
        MPI_Aint end = windows[w][1] == BYTES ? SPAN : windows[w][1] + MEBI;

        map_at(memory + windows[w][0], end - windows[w][0], MAP_PRIVATE | MAP_ANONYMOUS, -1);
    }
    return memory;
}

/** Where a byte of the data is in memory. */
static MPI_Aint place(MPI_Aint byte, bool gaps)
{
    return gaps ? byte / MEBI * (MEBI + GAP) + byte % MEBI : byte;
}

/** Writes what is in the windows, or counts the pieces that are wrong. */
static int each_piece(unsigned char *memory, bool gaps, bool write, int tag)
{
    int wrong = 0;

    for (int w = 0; w < WINDOWS; w++) {
        for (MPI_Aint byte = windows[w][0]; byte < windows[w][1]; byte += PIECE) {
            unsigned char *at = memory + place(byte, gaps);
            uint64_t seed = p2p_seed(0, tag, (int)(byte / PIECE));

            if (write)
                p2p_fill(at, (size_t)PIECE, seed);
            else
                wrong += !p2p_holds(at, (size_t)PIECE, seed);
        }
    }
    return wrong;
}

/** One message from rank 0 to rank 1; each side has gaps or not. */
static void send_one(MPI_Datatype gapped, bool sender_gaps, bool receiver_gaps, int tag)
{
    const bool gaps = tl_rank() == 0 ? sender_gaps : receiver_gaps;
    unsigned char *repeated, *memory = map_memory(&repeated);
    MPI_Datatype type = gaps ? gapped : MPI_INT;
    int count = gaps ? 1 : (int)(BYTES / (MPI_Aint)sizeof(int)), wrong;
    MPI_Count elements = 0;
    MPI_Status status;

    if (tl_rank() == 0) {
        p2p_fill(repeated, (size_t)PERIOD, p2p_seed(0, tag, -1));
        each_piece(memory, gaps, true, tag);
        TL_MPI(MPI_Send(memory, count, type, 1, tag, MPI_COMM_WORLD));
    } else {
        TL_MPI(MPI_Recv(memory, count, type, 0, tag, MPI_COMM_WORLD, &status));
        TL_MPI(MPI_Get_elements_x(&status, type, &elements));
        TL_CHECK(elements == BYTES / (MPI_Aint)sizeof(int), "%lld elements", (long long)elements);
        TL_CHECK(status.MPI_SOURCE == 0 && status.MPI_TAG == tag, "from %d with tag %d",
                 status.MPI_SOURCE, status.MPI_TAG);
        wrong = each_piece(memory, gaps, false, tag);
        TL_CHECK(wrong == 0, "%d pieces of the message are wrong", wrong);
        for (int k = 0; gaps && k < 3; k++)
            TL_FILL(memory + k * (MEBI + GAP) + MEBI, 0, (size_t)GAP, "gap %d", k);
        /* Each of these pages has come many times, always the same where nothing has moved. */
        if (!sender_gaps && !receiver_gaps) {
            TL_CHECK(p2p_holds(repeated, (size_t)PERIOD, p2p_seed(0, tag, -1)),
                     "what is repeated is wrong");
        }
    }
    munmap(repeated, (size_t)PERIOD);
    munmap(memory, (size_t)SPAN);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    MPI_Datatype gapped;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Type_create_hvector(BLOCKS, (int)(MEBI / (MPI_Aint)sizeof(int)), MEBI + GAP, MPI_INT,
                            &gapped);
    MPI_Type_commit(&gapped);
    send_one(gapped, false, false, 1);
    send_one(gapped, true, tl_seed() % 2, 2);
    MPI_Type_free(&gapped);
    return tl_finish();
}
