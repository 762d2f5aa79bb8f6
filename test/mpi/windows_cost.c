/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic shared */
/* methods: auto */
/**
 * @file
 * How many collectives between all ranks a window takes, beside the duplicate of its communicator:
 * three at most, also where ranks say different things or one has an error, and one more where
 * addresses are not known yet; how many processes are looked up for it, by all ranks together: one
 * for each end of the branches of a tree, and not all by each; and that such windows are right.
 */
#include "test/mpi/testlib.h"

#include <string.h>

#include "test/mpi/counter.h"

enum { MOST = 3, BYTES = 256 };

/** NULL: the component is not loaded. */
static counter_t *collectives, *lookups;

/** What comes from this rank must arrive at the next one, with its unit. */
static void use(MPI_Win win, tl_kind_t kind, MPI_Comm comm, int unit, const char *base)
{
    int me, size;
    char got = 0;

    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &size);
    const int next = (me + 1) % size, before = (me + size - 1) % size;
    const char mine = (char)(me + 1);

    if (kind == TL_DYNAMIC)
        return;
    (void)unit;
    TL_MPI(MPI_Win_fence(0, win));
    TL_MPI(MPI_Put(&mine, 1, MPI_BYTE, next, 1, 1, MPI_BYTE, win));
    TL_MPI(MPI_Win_fence(0, win));
    TL_CHECK(base[unit] == (char)(before + 1), "%d has come from rank %d", base[unit], before);
    TL_MPI(MPI_Get(&got, 1, MPI_BYTE, next, 1, 1, MPI_BYTE, win));
    TL_MPI(MPI_Win_fence(0, win));
    TL_CHECK(got == mine, "%d came back from rank %d", got, next);
}

/** How many were looked up for a window, with `before` of this process before it. */
static void check_lookups(MPI_Comm comm, unsigned long long before)
{
    unsigned long long n = counter_read(lookups) - before;
    int size;

    MPI_Comm_size(comm, &size);
    MPI_Allreduce(MPI_IN_PLACE, &n, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, comm);
    TL_CHECK(n <= 2 * (unsigned long long)(size - 1), "%llu look-ups of %d ranks", n, size);
}

/** Makes one, and returns how many collectives that took. */
static unsigned long long make(tl_kind_t kind, MPI_Comm comm, MPI_Aint bytes, int unit)
{
    static char mine[4 * BYTES];
    const unsigned long long before = counter_read(collectives);
    const unsigned long long looked_up = counter_read(lookups);
    char *base = mine;
    MPI_Win win;

    memset(mine, 0, sizeof(mine));
    switch (kind) {
    case TL_CREATE:
        TL_MPI(MPI_Win_create(mine, bytes, unit, MPI_INFO_NULL, comm, &win));
        break;
    case TL_ALLOCATE:
        TL_MPI(MPI_Win_allocate(bytes, unit, MPI_INFO_NULL, comm, &base, &win));
        break;
    case TL_DYNAMIC:
        TL_MPI(MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win));
        break;
    default:
        TL_MPI(MPI_Win_allocate_shared(bytes, unit, MPI_INFO_NULL, comm, &base, &win));
    }
    const unsigned long long n = counter_read(collectives) - before;
    check_lookups(comm, looked_up);
    use(win, kind, comm, unit, base);
    TL_MPI(MPI_Win_free(&win));
    return n;
}

static void check(const char *what, unsigned long long n)
{
    const unsigned long long most = MOST + (strncmp(what, "the first", 9) == 0);

    TL_CHECK((n >= 1 && n <= most) || collectives == NULL, "%s takes %llu collectives", what, n);
}

/** No process has as much memory: all get the error. */
static void check_error(void)
{
    const unsigned long long before = counter_read(collectives);
    MPI_Win win;

    if (tl_size() < 2)
        return;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    char *base;
    const MPI_Aint bytes = tl_rank() == tl_size() - 1 ? (MPI_Aint)1 << 62 : BYTES;
    const int code = MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    TL_CHECK(code != MPI_SUCCESS, "a window of more memory than there is");
    check("an error", counter_read(collectives) - before);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    const tl_kind_t kind = tl_first_kind();
    MPI_Comm reversed, half;
    int provided;

    TL_MPI(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    collectives = counter_begin("osc_nicstride_collectives");
    lookups = counter_begin("osc_nicstride_lookups");
    TL_MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, -tl_rank(), &reversed));
    TL_MPI(MPI_Comm_split(MPI_COMM_WORLD, tl_rank() % 2, 0, &half));
    check("the first window", make(kind, half, BYTES, 1));
    check("the first of all", make(kind, MPI_COMM_WORLD, BYTES, 1));
    check("one more", make(kind, MPI_COMM_WORLD, BYTES, 1));
    /* The names of windows differ now between the halves. */
    for (int i = 0; i < (tl_rank() % 2) + 1; i++)
        check("one of a half", make(kind, MPI_COMM_SELF, BYTES, 1));
    check("one with names that differ", make(kind, MPI_COMM_WORLD, BYTES, 1));
    check("one with sizes and units that differ",
          make(kind, MPI_COMM_WORLD, BYTES * (1 + tl_rank() % 4), 1 + 3 * tl_rank()));
    check("a reversed one", make(kind, reversed, BYTES * (1 + tl_rank() % 4), 1 + 3 * tl_rank()));
    if (kind == TL_ALLOCATE)
        check_error();
    TL_MPI(MPI_Comm_free(&reversed));
    TL_MPI(MPI_Comm_free(&half));
    TL_CHECK(counter_read(lookups) > 0 || lookups == NULL || tl_size() == 1, "nobody looks up");
    counter_end(lookups);
    counter_end(collectives);
    TL_MPI(MPI_T_finalize());
    return tl_finish();
}
