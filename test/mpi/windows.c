/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic shared */
/**
 * @file
 * Windows as objects: attributes and alignment; sizes and units that differ by rank; communicators
 * of some ranks and in another order; windows that overlap, many at once, and made and freed
 * again and again without anything left behind. Infos: query; without locks: errors.
 */
#include "test/mpi/meet.h"

#include <stdlib.h>
#include <string.h>

/** Every rank puts a word of its own to every rank, then all are read and checked. */
static void exercise(const tl_window_t *w, int unit, uint32_t salt)
{
    uint32_t word = salt + (uint32_t)w->rank, got;
    MPI_Aint place = (MPI_Aint)w->rank * unit;

    TL_MPI(MPI_Win_lock_all(0, w->win));
    for (int t = 0; t < w->size; t++)
        TL_MPI(MPI_Put(&word, 4, MPI_BYTE, t, tl_disp(w, t, place), 4, MPI_BYTE, w->win));
    TL_MPI(MPI_Win_flush_all(w->win));
    MPI_Barrier(w->comm);
    for (int i = 0; i < w->size * w->size; i++) {
        int t = i / w->size, r = i % w->size;
        MPI_Aint disp = tl_disp(w, t, (MPI_Aint)r * unit);

        TL_MPI(MPI_Get(&got, 4, MPI_BYTE, t, disp, 4, MPI_BYTE, w->win));
        TL_MPI(MPI_Win_flush(t, w->win));
        TL_CHECK(got == salt + (uint32_t)r, "%u at %d, not %u", got, t, salt + (uint32_t)r);
    }
    TL_MPI(MPI_Win_unlock_all(w->win));
    MPI_Barrier(w->comm);
}

/** A window with room for `exercise` with units of 8 bytes. */
static tl_window_t make_plain(tl_kind_t kind, MPI_Comm comm)
{
    int size;

    MPI_Comm_size(comm, &size);
    return tl_win_make(kind, 8 * (MPI_Aint)size, 8, comm, MPI_INFO_NULL);
}

/* ---- what a window says of itself ---- */

static void *attribute(MPI_Win win, int key)
{
    void *value = NULL;
    int flag = 0;

    TL_MPI(MPI_Win_get_attr(win, key, &value, &flag));
    TL_CHECK(flag, "attribute %d is not there", key);
    return value;
}

static void test_attributes(tl_kind_t kind)
{
    static const int flavors[] = {MPI_WIN_FLAVOR_CREATE, MPI_WIN_FLAVOR_ALLOCATE,
                                  MPI_WIN_FLAVOR_DYNAMIC, MPI_WIN_FLAVOR_SHARED};
    MPI_Aint bytes = 64 + 64 * tl_rank();
    int unit = 8 << tl_rank() % 3;
    tl_window_t w = tl_win_make(kind, bytes, unit, MPI_COMM_WORLD, MPI_INFO_NULL);
    bool dynamic = kind == TL_DYNAMIC;

    void *base = attribute(w.win, MPI_WIN_BASE);
    TL_CHECK(base == (dynamic ? MPI_BOTTOM : (void *)w.base), "base %p", base);
    MPI_Aint *size = attribute(w.win, MPI_WIN_SIZE);
    TL_CHECK(size && *size == (dynamic ? 0 : bytes), "size %ld", size ? (long)*size : -1);
    int *disp_unit = attribute(w.win, MPI_WIN_DISP_UNIT);
    TL_CHECK(disp_unit && *disp_unit == (dynamic ? 1 : unit), "unit %d",
             disp_unit ? *disp_unit : -1);
    int *flavor = attribute(w.win, MPI_WIN_CREATE_FLAVOR);
    TL_CHECK(flavor && *flavor == flavors[kind], "flavor %d", flavor ? *flavor : -1);
    int *model = attribute(w.win, MPI_WIN_MODEL);
    TL_CHECK(model && *model == MPI_WIN_UNIFIED, "model %d", model ? *model : -1);
    tl_win_free(&w);
}

/* ---- sizes and units ---- */

/** Rank r has 24 * r bytes, rank 0 none; everybody fills everybody's memory in turn. */
static void test_sizes(tl_kind_t kind)
{
    tl_window_t w = tl_win_make(kind, 24 * tl_rank(), 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    unsigned char *data = tl_alloc((size_t)w.size * 24);

    for (int writer = 0; writer < w.size; writer++) {
        memset(data, 'a' + writer, (size_t)w.size * 24);
        TL_MPI(MPI_Win_fence(0, w.win));
        for (int t = 0; t < w.size && writer == w.rank; t++) {
            int n = 24 * t;

            TL_MPI(MPI_Put(data, n, MPI_BYTE, t, n ? tl_disp(&w, t, 0) : 0, n, MPI_BYTE, w.win));
        }
        TL_MPI(MPI_Win_fence(0, w.win));
        TL_FILL(w.base, (unsigned char)('a' + writer), (size_t)w.bytes, "from %d", writer);
    }
    free(data);
    tl_win_free(&w);
}

/** The target's unit counts, not the origin's. */
static void test_units(tl_kind_t kind)
{
    static const int units[] = {4, 12, 6, 1};
    tl_window_t w = tl_win_make(kind, 12 * (MPI_Aint)tl_size(), units[tl_rank() % 4],
                                MPI_COMM_WORLD, MPI_INFO_NULL);

    exercise(&w, 12, 77);
    tl_win_free(&w);
}

/** Whether memory begins as the program has asked for; it may ask for it on some ranks alone. What
 *  cannot be an alignment is no wish. */
static void test_alignment(tl_kind_t kind)
{
    static const char *const wishes[] = {"64", "4096", "128", "100", "page", "0"};

    for (size_t i = 0; i < sizeof(wishes) / sizeof(*wishes); i++) {
        uintptr_t align = i == 1 ? 4096 : i == 2 ? 128 : 64;
        bool mine = i != 2 || tl_rank() == tl_size() - 1;
        MPI_Info info;
        tl_window_t w;

        MPI_Info_create(&info);
        MPI_Info_set(info, "alloc_shared_noncontig", "true");
        if (mine)
            MPI_Info_set(info, "mpi_minimum_memory_alignment", wishes[i]);
        w = tl_win_make(kind, 5000 + 24 * (MPI_Aint)tl_rank(), 8, MPI_COMM_WORLD, info);
        if (kind == TL_ALLOCATE || kind == TL_SHARED) {
            TL_CHECK((uintptr_t)w.base % 64 == 0, "memory begins at %p", (void *)w.base);
            TL_CHECK(!mine || (uintptr_t)w.base % align == 0, "aligned to %s, memory begins at %p",
                     wishes[i], (void *)w.base);
        }
        exercise(&w, 8, 4321);
        MPI_Info_free(&info);
        tl_win_free(&w);
    }
}

/* ---- communicators ---- */

/** Halves of the ranks, all ranks in the opposite order, and all ranks, at the same time. */
static void test_communicators(tl_kind_t kind)
{
    MPI_Comm half, reversed;

    MPI_Comm_split(MPI_COMM_WORLD, tl_rank() % 2, 0, &half);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -tl_rank(), &reversed);
    tl_window_t all = make_plain(kind, MPI_COMM_WORLD);
    tl_window_t some = make_plain(kind, half);
    tl_window_t back = make_plain(kind, reversed);
    MPI_Comm_free(&half);
    MPI_Comm_free(&reversed);
    exercise(&all, 8, 100);
    exercise(&some, 8, 200u + (uint32_t)tl_rank() % 2 * 50);
    exercise(&back, 8, 300);
    tl_win_free(&all);
    exercise(&back, 8, 301);
    tl_win_free(&some);
    tl_win_free(&back);
}

/* ---- memory ---- */

/** Puts through one window, reads through another that covers part of the same memory. */
static void test_overlap(void)
{
    static int32_t memory[32];
    int32_t values[4] = {1, 2, 3, 4}, got[4] = {0};
    int next = (tl_rank() + 1) % tl_size();
    MPI_Win whole, part_of, dynamic;
    MPI_Aint address, remote;

    memset(memory, 0, sizeof(memory));
    TL_MPI(MPI_Win_create(memory, sizeof(memory), 4, MPI_INFO_NULL, MPI_COMM_WORLD, &whole));
    TL_MPI(MPI_Win_create(memory + 8, 16, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &part_of));
    TL_MPI(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic));
    TL_MPI(MPI_Win_attach(dynamic, memory, sizeof(memory)));
    MPI_Get_address(memory + 8, &address);
    MPI_Sendrecv(&address, 1, MPI_AINT, (tl_rank() + tl_size() - 1) % tl_size(), 0, &remote, 1,
                 MPI_AINT, next, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, whole));
    TL_MPI(MPI_Put(values, 4, MPI_INT32_T, next, 8, 4, MPI_INT32_T, whole));
    TL_MPI(MPI_Win_unlock(next, whole));
    MPI_Barrier(MPI_COMM_WORLD);
    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, part_of));
    TL_MPI(MPI_Get(got, 2, MPI_INT32_T, next, 0, 2, MPI_INT32_T, part_of));
    TL_MPI(MPI_Win_unlock(next, part_of));
    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, dynamic));
    TL_MPI(
        MPI_Get(got + 2, 2, MPI_INT32_T, next, MPI_Aint_add(remote, 8), 2, MPI_INT32_T, dynamic));
    TL_MPI(MPI_Win_unlock(next, dynamic));
    TL_BYTES(got, values, sizeof(got), "through the other windows");
    MPI_Barrier(MPI_COMM_WORLD);
    TL_MPI(MPI_Win_detach(dynamic, memory));
    TL_MPI(MPI_Win_free(&dynamic));
    TL_MPI(MPI_Win_free(&part_of));
    TL_MPI(MPI_Win_free(&whole));
}

/** The same memory is given to one window after another. */
static void test_memory_again(void)
{
    unsigned char on_stack[64], *given, word[4] = "abc";
    int next = (tl_rank() + 1) % tl_size();
    MPI_Win win;

    MPI_Alloc_mem(64, MPI_INFO_NULL, &given);
    for (int i = 0; i < 10; i++) {
        unsigned char *memory = i % 2 ? given : on_stack;

        memset(memory, 0, 64);
        TL_MPI(MPI_Win_create(memory, i % 3 ? 64 : 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        TL_MPI(MPI_Win_fence(0, win));
        TL_MPI(MPI_Put(word, 4, MPI_BYTE, next, 4, 4, MPI_BYTE, win));
        TL_MPI(MPI_Win_fence(0, win));
        TL_BYTES(memory + 4, word, 4, "window %d on memory used before", i);
        TL_MPI(MPI_Win_free(&win));
    }
    MPI_Free_mem(given);
}

/* ---- numbers of windows ---- */

static void test_many(tl_kind_t kind)
{
    enum { MOST = 200 };
    static tl_window_t windows[MOST];
    const int many = tl_slow() ? MOST / 4 : MOST;

    for (int i = 0; i < many; i++)
        windows[i] = make_plain(kind, MPI_COMM_WORLD);
    for (int i = 0; i < many; i++) {
        uint32_t word = (uint32_t)(i + 1);
        const tl_window_t *w = &windows[(i * 7) % many];
        int next = (w->rank + 1) % w->size;

        TL_MPI(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, w->win));
        TL_MPI(MPI_Put(&word, 4, MPI_BYTE, next, tl_disp(w, next, 0), 4, MPI_BYTE, w->win));
        TL_MPI(MPI_Win_unlock(next, w->win));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < many; i++) {
        tl_window_t *w = &windows[(i * 7) % many];
        uint32_t seen;

        TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, w->rank, 0, w->win));
        memcpy(&seen, w->base, sizeof(seen));
        TL_MPI(MPI_Win_unlock(w->rank, w->win));
        TL_CHECK(seen == (uint32_t)(i + 1), "window %d has %u", i, seen);
        tl_win_free(w);
    }
}

static void make_use_free(tl_kind_t kind)
{
    tl_window_t w = tl_win_make(kind, 4096, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    int next = (w.rank + 1) % w.size, four = 4;

    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, w.win));
    TL_MPI(MPI_Put(&four, 4, MPI_BYTE, next, tl_disp(&w, next, 8), 4, MPI_BYTE, w.win));
    TL_MPI(MPI_Win_unlock(next, w.win));
    tl_win_free(&w);
}

/** What 510 windows leave behind: less than a page each, no file, hardly a mapping. */
static void test_leaks(tl_kind_t kind)
{
    enum { WARM_UP = 60 };
    const int part = tl_slow() ? 30 : 170, windows = WARM_UP + TL_GROWTH_PARTS * part;
    int files = 0, maps = 0;
    tl_growth_t growth = {0};

    for (int i = 0; i < windows; i++) {
        tl_growth_step(&growth, i, WARM_UP, windows);
        if (i == WARM_UP) {
            files = meet_entries("/proc/self/fd", "");
            maps = meet_mappings();
        }
        make_use_free(kind);
    }
    tl_growth_step(&growth, windows, WARM_UP, windows);

    TL_CHECK(growth.least < (size_t)part * 2048, "%zu bytes and more after %d windows",
             growth.least, part);
    TL_CHECK(meet_entries("/proc/self/fd", "") <= files + 8, "%d open files, %d before",
             meet_entries("/proc/self/fd", ""), files);
    TL_CHECK(meet_mappings() <= maps + 40, "%d mappings, %d before", meet_mappings(), maps);
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        test_attributes(kind);
        test_sizes(kind);
        test_units(kind);
        test_alignment(kind);
        test_communicators(kind);
        test_many(kind);
        test_leaks(kind);
        if (kind == TL_CREATE) {
            test_overlap();
            test_memory_again();
        }
    }
    return tl_finish();
}
