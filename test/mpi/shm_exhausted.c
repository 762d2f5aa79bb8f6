/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1-4 */
/* windows: allocate shared */
/**
 * @file
 * Shared memory that cannot be had: no file may grow beyond a limit far below the size of the
 * window, on all ranks or on some. MPI_Win_allocate must give the window all the same, on memory
 * of another kind, and windows made later, under no limit, must be as good as ever.
 * MPI_Win_allocate_shared may fail, but then on all ranks, and with an error that is returned.
 */
#include "test/mpi/testlib.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define MIB   ((MPI_Aint)1 << 20)
#define BYTES (256 * MIB)
/** Room for what a transport needs for itself, not for the window. */
#define LIMIT (16 * MIB)
/** The most that is touched at each place, since memory that is never touched costs nothing. */
#define TOUCHED 4096

typedef enum who { NOBODY, EVERYBODY, FIRST, LAST, WHOS } who_t;
static const char *const who_names[] = {"nobody", "everybody", "the first rank", "the last rank"};

static void limit_files(who_t who)
{
    bool me = who == EVERYBODY || (who == FIRST && tl_rank() == 0) ||
              (who == LAST && tl_rank() == tl_size() - 1);
    struct rlimit limit;

    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = me ? (rlim_t)LIMIT : limit.rlim_max;
    TL_CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0, "the limit cannot be set");
}

/** Writes to both ends and the middle of the next rank's memory and reads it back. */
static void use_window(MPI_Win win, unsigned char *base)
{
    static const MPI_Aint places[] = {0, BYTES / 2 - 5, BYTES - TOUCHED};
    static unsigned char data[TOUCHED], back[TOUCHED];
    int next = (tl_rank() + 1) % tl_size(), before = (tl_rank() + tl_size() - 1) % tl_size();
    int64_t one = 1;

    memset(data, tl_rank() + 1, sizeof(data));
    TL_MPI(MPI_Win_fence(0, win));
    for (int i = 0; i < 3; i++)
        TL_MPI(MPI_Put(data, TOUCHED, MPI_BYTE, next, places[i], TOUCHED, MPI_BYTE, win));
    TL_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    for (int i = 0; i < 3; i++)
        TL_FILL(base + places[i], (unsigned char)(before + 1), TOUCHED, "put to place %d", i);
    TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win));
    TL_MPI(MPI_Get(back, TOUCHED, MPI_BYTE, next, places[2], TOUCHED, MPI_BYTE, win));
    TL_MPI(MPI_Accumulate(&one, 1, MPI_INT64_T, next, 8192, 1, MPI_INT64_T, MPI_SUM, win));
    TL_MPI(MPI_Win_unlock(next, win));
    TL_BYTES(back, data, TOUCHED, "got back");
    MPI_Barrier(MPI_COMM_WORLD);
}

static void test_allocate(who_t who)
{
    unsigned char *base = NULL;
    int code;
    MPI_Win win;

    limit_files(who);
    code = MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    limit_files(NOBODY);
    if (TL_CHECK(code == MPI_SUCCESS, "no window when %s is limited", who_names[who])) {
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
        use_window(win, base);
        TL_MPI(MPI_Win_free(&win));
    }
}

/** All ranks get the window, or all an error. */
static void test_shared(who_t who)
{
    int good, count = 0;
    unsigned char *base;
    MPI_Win win;

    limit_files(who);
    good = MPI_Win_allocate_shared(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win) ==
           MPI_SUCCESS;
    limit_files(NOBODY);
    MPI_Allreduce(&good, &count, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    TL_CHECK(count == tl_size() || (count == 0 && who != NOBODY),
             "%d of %d ranks have the window when %s is limited", count, tl_size(), who_names[who]);
    if (count == tl_size()) {
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
        use_window(win, base);
        TL_MPI(MPI_Win_free(&win));
    }
}

int main(int argc, char **argv)
{
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    tl_shared_needs(BYTES);
    signal(SIGXFSZ, SIG_IGN);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        for (int i = 0; i < WHOS; i++) {
            who_t who = (who_t)((i + 1) % WHOS); /* without a limit comes last */

            if (kind == TL_ALLOCATE)
                test_allocate(who);
            else if (kind == TL_SHARED)
                test_shared(who);
        }
    }
    return tl_finish();
}
