/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-2 */
/* windows: create allocate dynamic shared */
/**
 * @file
 * Datatypes that go backwards arrive where they should. A stride of -1 byte in a vector is said in
 * other ways, since Open MPI takes it for none and describes a type that goes up.
 */
#include "test/mpi/testlib.h"

#include <string.h>

/** Bytes in a type. */
#define N 4
/** Bytes of the memory, and where in it the types start. */
#define ROOM  64
#define START 32

static unsigned char buffer[ROOM];

/** A type that goes from one byte to the one before it, or by other distances backwards. */
static bool kept(int index, MPI_Datatype *type, int *step)
{
    MPI_Aint at[N];
    MPI_Datatype byte;

    *step = index == 3 ? -2 : -1;
    switch (index) {
    case 0:
        for (int i = 0; i < N; i++)
            at[i] = -i;
        MPI_Type_create_hindexed_block(N, 1, at, MPI_BYTE, type);
        return true;
    case 1:
        MPI_Type_create_resized(MPI_BYTE, 0, -1, &byte);
        MPI_Type_contiguous(N, byte, type);
        MPI_Type_free(&byte);
        return true;
    case 2:
        MPI_Type_create_resized(MPI_BYTE, 0, -1, &byte);
        MPI_Type_vector(N, 1, 1, byte, type);
        MPI_Type_free(&byte);
        return true;
    case 3:
        MPI_Type_vector(N, 1, -2, MPI_BYTE, type);
        return true;
    default:
        return false;
    }
}

static void check_moved(const tl_window_t *w, MPI_Datatype type, int step, const char *what)
{
    const int target = (w->rank + 1) % w->size;
    const MPI_Aint disp = tl_disp(w, target, START);

    for (int i = 0; i < ROOM; i++) {
        buffer[i] = (unsigned char)i;
        w->base[i] = 'w';
    }
    MPI_Barrier(w->comm);
    TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, w->win));
    TL_MPI(MPI_Put(buffer, N, MPI_BYTE, target, disp, 1, type, w->win));
    TL_MPI(MPI_Win_unlock(target, w->win));
    MPI_Barrier(w->comm);
    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, w->win));
    TL_MPI(MPI_Get(buffer + START, 1, type, target, disp, 1, type, w->win));
    TL_MPI(MPI_Win_unlock(target, w->win));
    for (int i = 0; i < ROOM; i++) {
        const int back = START - i, distance = -step;
        const bool moved = back >= 0 && back % distance == 0 && back / distance < N;
        const int is = moved ? back / distance : i;
        TL_CHECK(buffer[i] == is, "%s: byte %d is %d, not %d", what, i, buffer[i], is);
        TL_CHECK(w->base[i] == (moved ? is : 'w'), "%s: byte %d of the window is %d", what, i,
                 w->base[i]);
    }
    MPI_Barrier(w->comm);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"indexed", "resized", "vector of resized", "two by two"};
    MPI_Datatype type;
    int step;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        tl_window_t w = tl_win_make(kind, ROOM, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
        for (int i = 0; kept(i, &type, &step); i++) {
            MPI_Type_commit(&type);
            check_moved(&w, type, step, names[i]);
            MPI_Type_free(&type);
        }
        tl_win_free(&w);
    }
    return tl_finish();
}
