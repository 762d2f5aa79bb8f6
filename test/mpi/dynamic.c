/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: dynamic */
/**
 * @file
 * Dynamic windows: a thousand regions, attached, detached and attached again at the same addresses,
 * with other memory under them; accesses that span regions. Other sizes: errors_dynamic.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "test/mpi/testlib.h"

#define REGIONS 1000
#define PAGE    4096

/** The window is one of no memory; these tests attach their own. */
static tl_window_t make(void)
{
    tl_window_t w = tl_win_make(TL_DYNAMIC, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL);

    TL_MPI(MPI_Win_lock_all(0, w.win));
    return w;
}

static void drop(tl_window_t *w)
{
    TL_MPI(MPI_Win_unlock_all(w->win));
    tl_win_free(w);
}

/** Where the next rank has what I have here. */
static MPI_Aint address_at_next(const tl_window_t *w, const void *mine)
{
    int next = (w->rank + 1) % w->size, before = (w->rank + w->size - 1) % w->size;
    MPI_Aint address, theirs = 0;

    MPI_Get_address(mine, &address);
    MPI_Sendrecv(&address, 1, MPI_AINT, before, 1, &theirs, 1, MPI_AINT, next, 1, w->comm,
                 MPI_STATUS_IGNORE);
    return theirs;
}

/* ---- many regions ---- */

typedef struct regions {
    int *memory[REGIONS];
    MPI_Aint there[REGIONS]; /**< addresses at the next rank */
    bool attached[REGIONS];
} regions_t;

static int ints_of(int i)
{
    return 4 + i % 29;
}

static void attach_one(const tl_window_t *w, regions_t *r, int i)
{
    TL_MPI(MPI_Win_attach(w->win, r->memory[i], ints_of(i) * (MPI_Aint)sizeof(int)));
    r->attached[i] = true;
}

/** Puts the last int of every attached region, gets it back, and looks at what arrived here. */
static void use_all(const tl_window_t *w, regions_t *r, int round)
{
    int sent[REGIONS], got[REGIONS] = {0}, target = tl_next(w);
    int before = (w->rank + w->size - 1) % w->size, wrong = 0;

    for (int i = 0; i < REGIONS; i++) {
        MPI_Aint last = MPI_Aint_add(r->there[i], (ints_of(i) - 1) * (MPI_Aint)sizeof(int));

        sent[i] = 10000 * w->rank + i + 7 * round;
        if (r->attached[i])
            TL_MPI(MPI_Put(&sent[i], 1, MPI_INT, target, last, 1, MPI_INT, w->win));
    }
    TL_MPI(MPI_Win_flush(target, w->win));
    for (int i = 0; i < REGIONS; i++) {
        MPI_Aint last = MPI_Aint_add(r->there[i], (ints_of(i) - 1) * (MPI_Aint)sizeof(int));

        if (r->attached[i])
            TL_MPI(MPI_Get(&got[i], 1, MPI_INT, target, last, 1, MPI_INT, w->win));
    }
    TL_MPI(MPI_Win_flush(target, w->win));
    MPI_Barrier(w->comm);
    TL_MPI(MPI_Win_sync(w->win));
    for (int i = 0; i < REGIONS; i++) {
        int want = 10000 * before + i + 7 * round;

        wrong += r->attached[i] && (got[i] != sent[i] || r->memory[i][ints_of(i) - 1] != want);
    }
    TL_CHECK(wrong == 0, "%d of %d regions wrong in round %d", wrong, REGIONS, round);
    MPI_Barrier(w->comm);
}

/** All attached; half of them detached; attached again in another order; all detached. */
static void many_regions(void)
{
    tl_window_t w = make();
    regions_t *r = tl_alloc(sizeof(*r));

    for (int i = 0; i < REGIONS; i++) {
        r->memory[i] = tl_alloc((size_t)ints_of(i) * sizeof(int));
        r->there[i] = address_at_next(&w, r->memory[i]);
        attach_one(&w, r, i);
    }
    MPI_Barrier(w.comm);
    use_all(&w, r, 0);
    for (int i = 0; i < REGIONS; i++) {
        if (i * 7 % 13 < 6) {
            TL_MPI(MPI_Win_detach(w.win, r->memory[i]));
            r->attached[i] = false;
        }
    }
    MPI_Barrier(w.comm);
    use_all(&w, r, 1);
    for (int i = REGIONS - 1; i >= 0; i--)
        if (!r->attached[i])
            attach_one(&w, r, i);
    MPI_Barrier(w.comm);
    use_all(&w, r, 2);
    for (int i = 0; i < REGIONS; i++) {
        TL_MPI(MPI_Win_detach(w.win, r->memory[i * 3 % REGIONS]));
        free(r->memory[i * 3 % REGIONS]);
    }
    free(r);
    drop(&w);
}

/* ---- the same address again ---- */

/** Puts a byte pattern to the next rank's memory, and checks what came here. */
static void put_pattern(const tl_window_t *w, unsigned char *mine, MPI_Aint there, int bytes,
                        int seed)
{
    unsigned char *sent = tl_alloc((size_t)bytes), *want = tl_alloc((size_t)bytes);
    int before = (w->rank + w->size - 1) % w->size;

    tl_fill_random(sent, (size_t)bytes, (uint64_t)(seed * 16 + w->rank));
    tl_fill_random(want, (size_t)bytes, (uint64_t)(seed * 16 + before));
    TL_MPI(MPI_Put(sent, bytes, MPI_BYTE, tl_next(w), there, bytes, MPI_BYTE, w->win));
    TL_MPI(MPI_Win_flush(tl_next(w), w->win));
    MPI_Barrier(w->comm);
    TL_MPI(MPI_Win_sync(w->win));
    TL_BYTES(mine, want, (size_t)bytes, "put of %d bytes into a region attached again", bytes);
    MPI_Barrier(w->comm);
    free(sent);
    free(want);
}

/** One address, each time with other physical memory under it: what was cached is wrong. */
static void other_memory(void)
{
    enum { BYTES = 16 * PAGE };
    const int access = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
    tl_window_t w = make();
    unsigned char *memory = mmap(NULL, BYTES, access, flags, -1, 0);
    MPI_Aint there = address_at_next(&w, memory);

    for (int i = 0; i < 10; i++) {
        memset(memory, 0xEE, BYTES);
        TL_MPI(MPI_Win_attach(w.win, memory, BYTES));
        MPI_Barrier(w.comm);
        put_pattern(&w, memory, there, BYTES, 100 + i);
        TL_MPI(MPI_Win_detach(w.win, memory));
        MPI_Barrier(w.comm);
        munmap(memory, BYTES);
        memory = mmap(memory, BYTES, access, flags | MAP_FIXED, -1, 0);
    }
    munmap(memory, BYTES);
    drop(&w);
}

/* ---- several regions in one call ---- */

/** Regions that touch each other are one to a transfer, also to a strided one. */
static void adjacent(void)
{
    enum { PIECE = 1000, PIECES = 4, ALL = PIECE * PIECES };
    tl_window_t w = make();
    unsigned char *memory = tl_alloc(ALL), got[ALL / 2];
    MPI_Aint there = address_at_next(&w, memory);
    MPI_Datatype strided;
    int wrong = 0;

    for (int i = 0; i < PIECES; i++)
        TL_MPI(MPI_Win_attach(w.win, memory + (ptrdiff_t)((i * 3 + 1) % PIECES) * PIECE, PIECE));
    MPI_Barrier(w.comm);
    put_pattern(&w, memory, there, ALL, 200);
    put_pattern(&w, memory + 300, MPI_Aint_add(there, 300), PIECE, 201);
    MPI_Type_vector(ALL / 16, 8, 16, MPI_BYTE, &strided);
    MPI_Type_commit(&strided);
    put_pattern(&w, memory, there, ALL, 202);
    TL_MPI(MPI_Get(got, ALL / 2, MPI_BYTE, tl_next(&w), there, 1, strided, w.win));
    TL_MPI(MPI_Win_flush(tl_next(&w), w.win));
    unsigned char *want = tl_alloc(ALL);

    tl_fill_random(want, ALL, (uint64_t)(202 * 16 + w.rank));
    for (int i = 0; i < ALL / 2; i++)
        wrong += got[i] != want[i / 8 * 16 + i % 8];
    TL_CHECK(wrong == 0, "%d of %d bytes wrong through a vector", wrong, ALL / 2);
    MPI_Barrier(w.comm);
    for (int i = 0; i < PIECES; i++)
        TL_MPI(MPI_Win_detach(w.win, memory + (ptrdiff_t)i * PIECE));
    MPI_Type_free(&strided);
    free(want);
    free(memory);
    drop(&w);
}

/** One datatype with blocks in several regions, nothing between them attached. */
static void scattered(void)
{
    enum { BLOCKS = 5, INTS = 40 };
    tl_window_t w = make();
    int *memory[BLOCKS], sent[BLOCKS * INTS], lengths[BLOCKS], wrong = 0;
    int before = (w.rank + w.size - 1) % w.size;
    MPI_Aint places[BLOCKS], first = 0;
    MPI_Datatype type;

    for (int i = 0; i < BLOCKS; i++) {
        memory[i] = tl_alloc(INTS * sizeof(int));
        TL_MPI(MPI_Win_attach(w.win, memory[i], INTS * sizeof(int)));
        places[i] = address_at_next(&w, memory[i]);
        first = i == 0 ? places[0] : first;
        places[i] = MPI_Aint_diff(places[i], first);
        lengths[i] = INTS;
    }
    for (int i = 0; i < BLOCKS * INTS; i++)
        sent[i] = 1000 * w.rank + i;
    MPI_Type_create_hindexed(BLOCKS, lengths, places, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Barrier(w.comm);
    TL_MPI(MPI_Put(sent, BLOCKS * INTS, MPI_INT, tl_next(&w), first, 1, type, w.win));
    TL_MPI(MPI_Win_flush(tl_next(&w), w.win));
    MPI_Barrier(w.comm);
    TL_MPI(MPI_Win_sync(w.win));
    for (int i = 0; i < BLOCKS * INTS; i++)
        wrong += memory[i / INTS][i % INTS] != 1000 * before + i;
    TL_CHECK(wrong == 0, "%d of %d ints wrong in scattered regions", wrong, BLOCKS * INTS);
    MPI_Barrier(w.comm);
    for (int i = 0; i < BLOCKS; i++) {
        TL_MPI(MPI_Win_detach(w.win, memory[i]));
        free(memory[i]);
    }
    MPI_Type_free(&type);
    drop(&w);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    if (tl_next_kind(TL_ALLOCATE) != TL_DYNAMIC)
        tl_skip("dynamic windows not asked for");
    other_memory();
    many_regions();
    adjacent();
    scattered();
    return tl_finish();
}
