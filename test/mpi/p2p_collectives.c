/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* p2p: */
/**
 * @file
 * Collectives of each kind, above the point-to-point layer, blocking and not: sizes from nothing to
 * 1 MiB, on several communicators, against results that each rank computes for itself.
 */
#include "test/mpi/p2p.h"

#include <stdlib.h>
#include <string.h>

/** Longs: of one rank's part, where there are parts. */
static const int counts[] = {0, 1, 2, 13, 127, 1025, 8193, 131072};
enum { COUNTS = sizeof(counts) / sizeof(*counts), LARGEST = 131072, MOST = 4 };

static MPI_Comm comm;
static int rank, size;
/** Room for a part of LARGEST longs of each rank. */
static long *in, *out;
static const char *what;

/** The i-th long that rank r gives to rank `to`; small, so that sums and products are exact. */
static long value(int r, int to, int i)
{
    return (r + 1) * 7 + to * 3 + i % 1000;
}

static void give(int n, int to, long *at)
{
    for (int i = 0; i < n; i++)
        at[i] = value(rank, to, i);
}

static void wipe(int n)
{
    memset(in, 0xff, (size_t)size * (size_t)n * sizeof(long));
}

/** What a part of `n` longs at `at` has to be: those of rank r for `to`. */
static void check_part(const long *at, int n, int r, int to)
{
    int wrong = 0;

    for (int i = 0; i < n; i++)
        wrong += at[i] != value(r, to, i);
    TL_CHECK(wrong == 0, "%s: %d of %d longs of rank %d of %d are wrong", what, wrong, n, r, size);
}

/** Parts of all ranks, of these lengths at these places. */
static void check_places(const int *parts, const int *places, int to)
{
    for (int r = 0; r < size; r++)
        check_part(in + places[r], parts[r], r, to);
}

/** One part after the other from all ranks. */
static void check_parts(int n, int to)
{
    for (int r = 0; r < size; r++)
        check_part(in + (size_t)r * (size_t)n, n, r, to);
}

/** One part after the other for all ranks. */
static void give_parts(int n)
{
    for (int r = 0; r < size; r++)
        give(n, r, out + (size_t)r * (size_t)n);
}

/** Sums over ranks first .. last of what they gave for `to`, from their `skip`-th on. */
static void check_sum(const long *at, int n, int skip, int first, int last)
{
    int wrong = 0;

    for (int i = 0; i < n; i++) {
        long sum = 0;

        for (int r = first; r <= last; r++)
            sum += value(r, 0, skip + i);
        wrong += at[i] != sum;
    }
    TL_CHECK(wrong == 0, "%s: %d of %d sums over %d ranks are wrong", what, wrong, n, size);
}

/** Blocking, or started and waited for. */
#define CALL(later, Name, name, ...)                                                               \
    do {                                                                                           \
        MPI_Request request_ = MPI_REQUEST_NULL;                                                   \
        what = #Name;                                                                              \
        if (later) {                                                                               \
            TL_MPI(MPI_I##name(__VA_ARGS__, &request_));                                           \
            TL_MPI(MPI_Wait(&request_, MPI_STATUS_IGNORE));                                        \
        } else {                                                                                   \
            TL_MPI(MPI_##Name(__VA_ARGS__));                                                       \
        }                                                                                          \
    } while (0)

/* ---- one to all, all to one ---- */

static void test_bcast(int n, int root, bool later)
{
    MPI_Datatype spaced;

    wipe(n);
    if (rank == root)
        give(n, 0, in);
    CALL(later, Bcast, bcast, in, n, MPI_LONG, root, comm);
    check_part(in, n, root, 0);
    /* Another type on the root. Open MPI takes a count of 0 for none at all, and of 1 for one. */
    if (n == 0)
        return;
    MPI_Type_create_hvector(n, 1, 2 * sizeof(long), MPI_LONG, &spaced);
    MPI_Type_commit(&spaced);
    for (int i = 0; i < n; i++)
        out[2 * i] = value(rank, 0, i);
    wipe(n);
    if (rank == root) {
        CALL(later, Bcast, bcast, out, 1, spaced, root, comm);
    } else {
        CALL(later, Bcast, bcast, in, n, MPI_LONG, root, comm);
        check_part(in, n, root, 0);
    }
    MPI_Type_free(&spaced);
}

static void test_gather(int n, int root, bool later)
{
    wipe(n);
    give(n, root, out);
    CALL(later, Gather, gather, out, n, MPI_LONG, in, n, MPI_LONG, root, comm);
    if (rank == root) {
        check_parts(n, root);
        wipe(n);
        give(n, root, in + (size_t)root * (size_t)n);
        CALL(later, Gather, gather, MPI_IN_PLACE, n, MPI_LONG, in, n, MPI_LONG, root, comm);
        check_parts(n, root);
        give_parts(n);
    } else {
        CALL(later, Gather, gather, out, n, MPI_LONG, NULL, 0, MPI_LONG, root, comm);
    }
    wipe(n);
    CALL(later, Scatter, scatter, out, n, MPI_LONG, in, n, MPI_LONG, root, comm);
    check_part(in, n, root, rank);
}

/* ---- all to all ---- */

static void test_all(int n, bool later)
{
    int parts[MOST], places[MOST], bytes[MOST];
    MPI_Datatype types[MOST];

    wipe(n);
    give(n, 0, out);
    CALL(later, Allgather, allgather, out, n, MPI_LONG, in, n, MPI_LONG, comm);
    check_parts(n, 0);
    wipe(n);
    give_parts(n);
    for (int r = 0; r < size; r++) {
        /* To a rank as many as both ranks say. */
        parts[r] = n / (1 + (rank + r) % 3);
        places[r] = r * n;
        bytes[r] = places[r] * (int)sizeof(long);
        types[r] = MPI_LONG;
    }
    CALL(later, Alltoall, alltoall, out, n, MPI_LONG, in, n, MPI_LONG, comm);
    check_parts(n, rank);
    wipe(n);
    CALL(later, Alltoallv, alltoallv, out, parts, places, MPI_LONG, in, parts, places, MPI_LONG,
         comm);
    check_places(parts, places, rank);
    wipe(n);
    CALL(later, Alltoallw, alltoallw, out, parts, bytes, types, in, parts, bytes, types, comm);
    check_places(parts, places, rank);
}

/* ---- reductions ---- */

static void test_reductions(int n, int root, bool later)
{
    int parts[MOST], before = 0;

    wipe(n);
    give(n, 0, out);
    CALL(later, Reduce, reduce, out, in, n, MPI_LONG, MPI_SUM, root, comm);
    if (rank == root)
        check_sum(in, n, 0, 0, size - 1);
    wipe(n);
    CALL(later, Allreduce, allreduce, out, in, n, MPI_LONG, MPI_SUM, comm);
    check_sum(in, n, 0, 0, size - 1);
    give(n, 0, in);
    CALL(later, Allreduce, allreduce, MPI_IN_PLACE, in, n, MPI_LONG, MPI_SUM, comm);
    check_sum(in, n, 0, 0, size - 1);
    wipe(n);
    CALL(later, Scan, scan, out, in, n, MPI_LONG, MPI_SUM, comm);
    check_sum(in, n, 0, 0, rank);
    wipe(n);
    CALL(later, Exscan, exscan, out, in, n, MPI_LONG, MPI_SUM, comm);
    if (rank > 0)
        check_sum(in, n, 0, 0, rank - 1);
    for (int r = 0; r < size; r++) {
        parts[r] = n / (r + 1);
        before += r < rank ? parts[r] : 0;
    }
    wipe(n);
    give(size * n, 0, out);
    CALL(later, Reduce_scatter, reduce_scatter, out, in, parts, MPI_LONG, MPI_SUM, comm);
    check_sum(in, parts[rank], before, 0, size - 1);
    wipe(n);
    CALL(later, Reduce_scatter_block, reduce_scatter_block, out, in, n, MPI_LONG, MPI_SUM, comm);
    check_sum(in, n, rank * n, 0, size - 1);
}

/** Many at once, whose order is that of the calls. */
static void test_together(int n)
{
    enum { TIMES = 20 };
    MPI_Request requests[TIMES];

    give(n, 0, out);
    for (int i = 0; i < TIMES; i++) {
        TL_MPI(MPI_Iallreduce(out + i, in + (ptrdiff_t)i * n, n - i, MPI_LONG, MPI_SUM, comm,
                              &requests[i]));
    }
    TL_MPI(MPI_Waitall(TIMES, requests, MPI_STATUSES_IGNORE));
    what = "many at once";
    for (int i = 0; i < TIMES; i++)
        check_sum(in + (ptrdiff_t)i * n, n - i, i, 0, size - 1);
}

static void test_on(MPI_Comm given)
{
    comm = given;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    /* Two neighbours even where there is one rank. */
    in = tl_alloc((size_t)(size + 1) * LARGEST * sizeof(long));
    out = tl_alloc((size_t)(size + 1) * LARGEST * sizeof(long));
    test_together(LARGEST / 20);
    for (int i = 0; i < 2 * COUNTS; i++) {
        int n = counts[i / 2], root = i % size;
        bool later = i % 2;

        test_bcast(n, root, later);
        test_gather(n, root, later);
        test_all(n, later);
        test_reductions(n, root, later);
        TL_MPI(MPI_Barrier(comm));
    }
    free(in);
    free(out);
}

int main(int argc, char **argv)
{
    MPI_Comm other;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_need_ranks(1, MOST);
    test_on(MPI_COMM_WORLD);
    /* The ranks the other way round, and without the first one where there are more. */
    MPI_Comm_split(MPI_COMM_WORLD, tl_rank() == 0, -tl_rank(), &other);
    test_on(other);
    MPI_Comm_free(&other);
    return tl_finish();
}
