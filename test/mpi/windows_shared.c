/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: shared */
/**
 * @file
 * MPI_Win_allocate_shared and MPI_Win_shared_query: where each rank's part lies, contiguous or
 * not, empty parts, and loads, stores and transfers on the same memory.
 */
#include "test/mpi/testlib.h"

#include <stdlib.h>
#include <string.h>

/** Sizes of each rank's part in the tests below: odd ranks have 40 bytes, even ones 104. */
static MPI_Aint part(int rank)
{
    return rank % 2 ? 40 : 104;
}

/** What one rank stores, all others load, at the address that the query gives. */
static void check_mapped(MPI_Win win, int size, bool contiguous)
{
    unsigned char *base, *end = NULL;
    MPI_Aint bytes;
    int unit;

    for (int r = 0; r < size; r++) {
        TL_MPI(MPI_Win_shared_query(win, r, &bytes, &unit, &base));
        TL_CHECK(bytes == part(r) && unit == 8, "rank %d has %ld bytes, unit %d", r, (long)bytes,
                 unit);
        TL_CHECK((uintptr_t)base % 8 == 0, "rank %d has %p", r, (void *)base);
        TL_CHECK(!contiguous || end == NULL || base == end, "a gap before rank %d", r);
        TL_FILL(base, (unsigned char)('A' + r), (size_t)bytes, "memory of rank %d", r);
        end = base + bytes;
    }
}

/** What ranks say of how the parts lie: all the same, or rank 0 alone that they may lie apart. */
typedef enum wish { CONTIGUOUS, APART, DIFFERENT } wish_t;

static void test_shared(wish_t wish)
{
    const bool contiguous = wish == CONTIGUOUS || (wish == DIFFERENT && tl_rank() != 0);
    unsigned char *base, *first;
    MPI_Aint bytes = part(tl_rank()), first_bytes;
    MPI_Info info;
    MPI_Win win;
    int unit;

    MPI_Info_create(&info);
    MPI_Info_set(info, "alloc_shared_noncontig", contiguous ? "false" : "true");
    TL_MPI(MPI_Win_allocate_shared(bytes, 8, info, MPI_COMM_WORLD, &base, &win));
    TL_MPI(MPI_Win_lock_all(0, win));
    memset(base, 'A' + tl_rank(), (size_t)bytes);
    TL_MPI(MPI_Win_sync(win));
    MPI_Barrier(MPI_COMM_WORLD);
    TL_MPI(MPI_Win_sync(win));
    check_mapped(win, tl_size(), wish == CONTIGUOUS);
    TL_MPI(MPI_Win_shared_query(win, MPI_PROC_NULL, &first_bytes, &unit, &first));
    TL_CHECK(first[0] == 'A' && first_bytes == part(0), "the lowest rank's part has %ld bytes",
             (long)first_bytes);
    TL_MPI(MPI_Win_unlock_all(win));
    TL_MPI(MPI_Win_free(&win));
    MPI_Info_free(&info);
}

/** Only the last rank has memory; MPI_PROC_NULL asks for it, and the others' own parts are empty.
 */
static void test_shared_one_part(void)
{
    unsigned char *base, *first = NULL;
    int last = tl_size() - 1, unit;
    MPI_Aint bytes = tl_rank() == last ? 4096 : 0, first_bytes = -1, own_bytes = -1;
    MPI_Win win;

    TL_MPI(MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    TL_MPI(MPI_Win_shared_query(win, MPI_PROC_NULL, &first_bytes, &unit, &first));
    TL_CHECK(first_bytes == 4096, "%ld bytes", (long)first_bytes);
    TL_MPI(MPI_Win_shared_query(win, tl_rank(), &own_bytes, &unit, &base));
    TL_CHECK(own_bytes == bytes, "%ld bytes", (long)own_bytes);
    TL_MPI(MPI_Win_fence(0, win));
    if (tl_rank() == 0)
        first[4095] = 'z';
    TL_MPI(MPI_Win_fence(0, win));
    TL_CHECK(first[4095] == 'z', "got %d", first[4095]);
    TL_MPI(MPI_Win_free(&win));
}

/** Atomic operations of the processor and of MPI by turns on one counter, all ranks alike. */
static void test_loads_and_stores(void)
{
    unsigned char *base;
    long *counter, one = 1;
    MPI_Aint bytes;
    MPI_Win win;
    int unit;

    TL_MPI(MPI_Win_allocate_shared(sizeof(long), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    TL_MPI(MPI_Win_shared_query(win, 0, &bytes, &unit, &base));
    counter = (long *)base;
    if (tl_rank() == 0)
        *counter = 0;
    for (int i = 0; i < 20; i++) {
        TL_MPI(MPI_Win_fence(0, win));
        TL_MPI(MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win));
        TL_MPI(MPI_Win_fence(0, win));
        __atomic_fetch_add(counter, 1, __ATOMIC_SEQ_CST);
    }
    TL_MPI(MPI_Win_fence(0, win));
    TL_CHECK(*counter == 40L * tl_size(), "%ld, not %ld", *counter, 40L * tl_size());
    TL_MPI(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        if (kind == TL_SHARED) {
            test_shared(CONTIGUOUS);
            test_shared(APART);
            test_shared(DIFFERENT);
            test_shared_one_part();
            test_loads_and_stores();
        }
    }
    return tl_finish();
}
