/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: create allocate dynamic shared */
/* methods: auto */
/**
 * @file
 * What a window says: by MPI_Win_shared_query where the memory of others is mapped, whatever made
 * the window (MPI-4.1), without a word on stderr where it cannot say anything; by MPI_Win_get_info
 * what is in force of what it was asked for.
 */
#include <string.h>

#include "test/mpi/testlib.h"

static MPI_Aint bytes_of(int rank)
{
    return 64 * ((rank + 1) % 3);
}

/** Window and its answer for a rank. */
typedef struct answer {
    MPI_Aint bytes;
    int unit;
    unsigned char *base;
} answer_t;

static answer_t ask(const tl_window_t *w, int rank)
{
    answer_t a = {-1, -1, NULL};

    TL_MPI(MPI_Win_shared_query(w->win, rank, &a.bytes, &a.unit, &a.base));
    return a;
}

/** Is memory of the others mapped? What MPI does not allocate never is. */
static bool must_be_mapped(const tl_window_t *w, int rank)
{
    return rank == w->rank || w->kind == TL_SHARED;
}

static void test_bases(tl_kind_t kind)
{
    const int units[] = {1, 8, 4};
    tl_window_t w =
        tl_win_make(kind, bytes_of(tl_rank()), units[tl_rank() % 3], MPI_COMM_WORLD, MPI_INFO_NULL);

    for (int writer = 0; writer < w.size; writer++) {
        MPI_Win_lock_all(0, w.win);
        for (int t = 0; t < w.size; t++) {
            const answer_t a = ask(&w, t);
            const bool mapped = a.base != NULL;

            TL_CHECK(a.unit == units[t % 3], "unit %d of rank %d", a.unit, t);
            TL_CHECK(a.bytes == (mapped ? bytes_of(t) : 0), "%ld bytes of rank %d at %p",
                     (long)a.bytes, t, (void *)a.base);
            TL_CHECK(mapped || !must_be_mapped(&w, t) || bytes_of(t) == 0, "rank %d is not mapped",
                     t);
            TL_CHECK(kind != TL_CREATE || t == w.rank || !mapped, "private memory of rank %d", t);
            if (mapped && writer == w.rank)
                memset(a.base, writer + 1, (size_t)a.bytes);
        }
        MPI_Win_sync(w.win);
        MPI_Barrier(w.comm);
        MPI_Win_sync(w.win);
        if (ask(&w, w.rank).base != NULL && (kind == TL_SHARED || writer == w.rank))
            TL_FILL(w.base, (unsigned char)(writer + 1), (size_t)w.bytes, "of %d", writer);
        MPI_Win_unlock_all(w.win);
        MPI_Barrier(w.comm);
    }
    /* The lowest rank that has memory. */
    TL_CHECK(ask(&w, MPI_PROC_NULL).unit == units[0], "unit %d", ask(&w, MPI_PROC_NULL).unit);
    TL_CHECK(ask(&w, MPI_PROC_NULL).base == ask(&w, 0).base, "another one than that of rank 0");
    tl_win_free(&w);
}

/** Memory that MPI allocates is mapped on one host, unless a method is forced or memory is short:
 *  where a store by a pointer arrives. */
static void test_allocated(void)
{
    tl_window_t w = tl_win_make(TL_ALLOCATE, 64, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    const int next = (w.rank + 1) % w.size;
    const answer_t a = ask(&w, next);

    MPI_Win_lock_all(0, w.win);
    if (tl_same_host(next) && TL_CHECK(a.base != NULL, "rank %d is not mapped", next))
        a.base[3] = 77;
    MPI_Win_sync(w.win);
    MPI_Barrier(w.comm);
    MPI_Win_sync(w.win);
    if (tl_same_host((w.rank + w.size - 1) % w.size))
        TL_CHECK(w.base[3] == 77, "%d", w.base[3]);
    MPI_Win_unlock_all(w.win);
    tl_win_free(&w);
}

static void test_dynamic(void)
{
    tl_window_t w = tl_win_make(TL_DYNAMIC, 64, 1, MPI_COMM_WORLD, MPI_INFO_NULL);
    int unit, class = MPI_SUCCESS;
    MPI_Aint bytes;
    void *base;

    tl_listen();
    MPI_Error_class(MPI_Win_shared_query(w.win, 0, &bytes, &unit, &base), &class);
    const char *said = tl_heard();

    TL_CHECK(class == MPI_ERR_RMA_FLAVOR, "class %d", class);
    TL_CHECK(said[0] == '\0', "it says %s", said);
    tl_win_free(&w);
}

/* ---- infos ---- */

static void check_info(MPI_Win win, const char *key, const char *want)
{
    char value[MPI_MAX_INFO_VAL + 1] = "(none)";
    MPI_Info info = MPI_INFO_NULL;
    int flag = 0;

    TL_MPI(MPI_Win_get_info(win, &info));
    MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &flag);
    TL_CHECK(strcmp(value, want) == 0, "info %s is '%s', not '%s'", key, value, want);
    MPI_Info_free(&info);
}

typedef struct hint {
    const char *key, *asked, *in_force;
} hint_t;

static void test_infos(tl_kind_t kind)
{
    static const hint_t hints[] = {
        {"accumulate_ops", NULL, "same_op_no_op"},
        {"accumulate_ops", "same_op", "same_op"},
        {"accumulate_ordering", NULL, "rar,raw,war,waw"},
        {"accumulate_ordering", "none", "rar,raw,war,waw"},
        {"mpi_accumulate_granularity", NULL, "0"},
        {"mpi_accumulate_granularity", "8", "8"},
        {"mpi_accumulate_granularity", "4096", "4096"},
        {"mpi_accumulate_granularity", "some", "0"},
        {"same_size", "true", "true"},
        {"same_disp_unit", "true", "true"},
        {"same_disp_unit", NULL, "false"},
        {"no_locks", "false", "false"},
    };

    for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
        const hint_t *h = &hints[i];
        MPI_Info info;

        MPI_Info_create(&info);
        if (h->asked != NULL)
            MPI_Info_set(info, h->key, h->asked);
        tl_window_t w = tl_win_make(kind, 64, 1, MPI_COMM_WORLD, info);
        check_info(w.win, h->key, h->in_force);
        /* What is said later changes nothing, though Open MPI 4.1 says it. */
        MPI_Info_set(info, "mpi_accumulate_granularity", "64");
        TL_MPI(MPI_Win_set_info(w.win, info));
        if (OMPI_MAJOR_VERSION >= 5)
            check_info(w.win, h->key, h->in_force);
        MPI_Info_free(&info);
        tl_win_free(&w);
    }
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        if (kind == TL_ALLOCATE)
            test_allocated();
        if (kind == TL_DYNAMIC)
            test_dynamic();
        else
            test_bases(kind);
        test_infos(kind);
    }
    return tl_finish();
}
