/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-5 */
/* p2p: */
/**
 * @file
 * First messages between processes that have no descriptor left: short and long ones, contiguous
 * and with holes, then collectives. With an even number of ranks only the odd ones have none.
 */
#include "test/mpi/p2p.h"

#include <stdlib.h>

#include "test/mpi/descriptors.h"

enum { LONGEST = 1 << 20 };

static const int sizes[] = {8, 8192, LONGEST};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/** A message to each other rank and one from each: each pair is new at the first. */
static void exchange(int bytes, int tag, MPI_Datatype type, int count, size_t extent)
{
    const int n = tl_size(), me = tl_rank();

    for (int i = 1; i < n; i++) {
        const int to = (me + i) % n, from = (me + n - i) % n;
        unsigned char *out = tl_alloc(extent), *in = tl_alloc(extent);
        MPI_Status status;

        for (size_t k = 0; k < extent; k++)
            out[k] = (unsigned char)(me * 37 + tag + (int)(k % 251));
        TL_MPI(MPI_Sendrecv(out, count, type, to, tag, in, count, type, from, tag, MPI_COMM_WORLD,
                            &status));
        p2p_check_status(&status, from, tag, (size_t)bytes, "a first message");
        for (size_t k = 0; k < extent; k++)
            out[k] = (unsigned char)(from * 37 + tag + (int)(k % 251));
        if (type != MPI_BYTE)
            for (size_t k = 0; k < extent; k++)
                out[k] = k % 16 < 8 ? out[k] : in[k];
        TL_BYTES(in, out, extent, "%d bytes from rank %d", bytes, from);
        free(out);
        free(in);
    }
}

int main(int argc, char **argv)
{
    MPI_Datatype holes;
    int one = 1, sum;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(2, 16);
    if (tl_size() % 2 != 0 || tl_rank() % 2 != 0)
        descriptors_take();
    MPI_Type_vector(LONGEST / 8, 8, 16, MPI_BYTE, &holes);
    MPI_Type_commit(&holes);
    for (int i = 0; i < SIZES; i++)
        exchange(sizes[i], i, MPI_BYTE, sizes[i], (size_t)sizes[i]);
    exchange(LONGEST, SIZES, holes, 1, 2 * LONGEST - 8);
    TL_MPI(MPI_Barrier(MPI_COMM_WORLD));
    TL_MPI(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    TL_CHECK(sum == tl_size(), "%d of %d are counted", sum, tl_size());
    descriptors_give();
    MPI_Type_free(&holes);
    return tl_finish();
}
