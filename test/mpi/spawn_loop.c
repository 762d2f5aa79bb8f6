/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 1 */
/* p2p: auto copy pipeline */
/* timeout: 200 */
/* retry: start spawn */
/**
 * @file
 * Nothing grows with the children that a process has had. Round after round it spawns one, sends
 * and gets long messages, puts through a window of both, and disconnects: mappings of shared
 * memory, descriptors and shared memory in use are the same in the fifth round and in the last.
 * Each child also updates with more than its part of the parent's memory for that.
 * Other memory is not compared: Open MPI and PMIx themselves keep some 55 KiB of each child.
 *
 * What is kept for a child goes when it is known to have ended, at the next communicator with a
 * child: so each is waited for, and all is counted when the next one is there and was not talked to
 * yet.
 */
#include "test/mpi/phase.h"
#include "test/mpi/testlib.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHILD_OPTION "-child"
#define LONG         (1 << 20)
enum { ROUNDS = 9, FIRST = 4 };
/* Of 1 MiB half of three quarters is the part of each of the two: these take more. */
enum { UPDATES = 512, UPDATE = 1024 };

/* ---- what both do ---- */

static unsigned char out[LONG], in[LONG];

static void fill(unsigned char *at, int bytes, int salt)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (unsigned char)(i * 7 + salt);
}

/** So many accumulates that some must wait for others. */
static void update(MPI_Comm both, bool is_child, int round)
{
    int64_t ones[UPDATE / sizeof(int64_t)], sums[UPDATE / sizeof(int64_t)] = {0};
    const int n = (int)(UPDATE / sizeof(int64_t));
    int wrong = 0;
    MPI_Win win;

    for (int i = 0; i < n; i++)
        ones[i] = 1;
    TL_MPI(MPI_Win_create(sums, UPDATE, 1, MPI_INFO_NULL, both, &win));
    if (is_child) {
        TL_MPI(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
        for (int i = 0; i < UPDATES; i++)
            TL_MPI(MPI_Accumulate(ones, n, MPI_INT64_T, 0, 0, n, MPI_INT64_T, MPI_SUM, win));
        TL_MPI(MPI_Win_unlock(0, win));
    }
    TL_MPI(MPI_Barrier(both));
    for (int i = 0; i < n && !is_child; i++)
        wrong += sums[i] != UPDATES;
    TL_CHECK(wrong == 0, "round %d: %d of %d sums are wrong", round, wrong, n);
    TL_MPI(MPI_Win_free(&win));
}

/** Long messages both ways, and puts both ways by a window over both. */
static void talk(MPI_Comm inter, bool is_child, int round)
{
    MPI_Comm both;
    MPI_Win win;
    unsigned char *base;
    const int other = !is_child;

    fill(out, LONG, round + is_child);
    TL_MPI(MPI_Sendrecv(out, LONG, MPI_BYTE, 0, round, in, LONG, MPI_BYTE, 0, round, inter,
                        MPI_STATUS_IGNORE));
    fill(out, LONG, round + !is_child);
    TL_CHECK(memcmp(in, out, LONG) == 0, "round %d: a message has changed", round);

    TL_MPI(MPI_Intercomm_merge(inter, is_child, &both));
    TL_MPI(MPI_Win_allocate(LONG, 1, MPI_INFO_NULL, both, &base, &win));
    fill(out, LONG, 3 * round + is_child);
    TL_MPI(MPI_Win_fence(0, win));
    TL_MPI(MPI_Put(out, LONG, MPI_BYTE, other, 0, LONG, MPI_BYTE, win));
    TL_MPI(MPI_Win_fence(0, win));
    fill(out, LONG, 3 * round + !is_child);
    TL_CHECK(memcmp(base, out, LONG) == 0, "round %d: a put has changed", round);
    TL_MPI(MPI_Win_free(&win));
    update(both, is_child, round);
    TL_MPI(MPI_Comm_free(&both));
}

static int child(MPI_Comm parent)
{
    int pid = (int)getpid(), round;

    MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN);
    TL_MPI(
        MPI_Sendrecv(&pid, 1, MPI_INT, 0, 0, &round, 1, MPI_INT, 0, 0, parent, MPI_STATUS_IGNORE));
    talk(parent, true, round);
    MPI_Comm_disconnect(&parent);
    return tl_finish();
}

/* ---- what is counted ---- */

typedef struct kept {
    int mappings;    /**< of shared memory, but for PMIx's own */
    int descriptors; /**< open */
    long shared;     /**< KiB of shared memory in use */
} kept_t;

static int count_mappings(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512], perms[8];
    int n = 0;

    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL)
        n += sscanf(line, "%*s %7s", perms) == 1 && perms[3] == 's' && strstr(line, "pmix") == NULL;
    if (maps == NULL || fclose(maps) != 0)
        tl_die("the mappings of this process cannot be read");
    return n;
}

static int count_descriptors(void)
{
    DIR *open = opendir("/proc/self/fd");
    int n = 0;

    if (open == NULL)
        tl_die("the descriptors of this process cannot be read");
    while (readdir(open) != NULL)
        n++;
    closedir(open);
    return n;
}

static long shared_in_use(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    long kib = 0;

    while (status != NULL && fgets(line, sizeof(line), status) != NULL &&
           sscanf(line, "RssShmem: %ld", &kib) != 1) {
    }
    if (status == NULL || fclose(status) != 0)
        tl_die("the memory of this process cannot be read");
    return kib;
}

static kept_t count(void)
{
    return (kept_t){count_mappings(), count_descriptors(), shared_in_use()};
}

/** Counts until there is no more than `first`, or it is not going to be less: UCX gives back what
 * is closed in later calls. */
static kept_t count_again(const kept_t *first)
{
    kept_t now = count();

    for (int i = 0;
         i < 1000 && (now.mappings > first->mappings || now.descriptors > first->descriptors);
         i++) {
        int flag;
        MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
        now = count();
    }
    return now;
}

/* ---- the parent ---- */

/** Until it is no process any more, or one that only waits to be asked how it ended. */
static void wait_for_end(int pid)
{
    const struct timespec msec = {0, 1000000};
    char path[64], text[512], state = ' ';

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    while (state != 'Z' && kill((pid_t)pid, 0) == 0) {
        FILE *stat = fopen(path, "r");
        const char *name_end = NULL;

        if (stat != NULL) {
            name_end = fgets(text, sizeof(text), stat) != NULL ? strrchr(text, ')') : NULL;
            fclose(stat);
        }
        state = name_end != NULL && name_end[1] != '\0' ? name_end[2] : ' ';
        nanosleep(&msec, NULL);
    }
}

static MPI_Comm spawn(const char *program)
{
    char option[] = CHILD_OPTION;
    char *argv[] = {option, NULL};
    MPI_Comm inter;

    phase("spawn");
    if (MPI_Comm_spawn(program, argv, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter,
                       MPI_ERRCODES_IGNORE) != MPI_SUCCESS)
        tl_skip("processes cannot be spawned here");
    phase("messages");
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    return inter;
}

int main(int argc, char **argv)
{
    kept_t first = {0, 0, 0}, now = first;
    MPI_Comm inter;
    int pid, last;

    setenv("OMPI_MCA_osc_nicstride_memory", "1", 1);
    setenv("OMPI_MCA_pml_superpipe_memory", "1", 1);
    phase("start");
    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    phase("messages");
    MPI_Comm_get_parent(&inter);
    if (inter != MPI_COMM_NULL)
        return child(inter);
    last = ROUNDS * tl_factor();
    for (int round = 1; round <= last; round++) {
        inter = spawn(argv[0]);
        if (round == FIRST)
            first = count_again(&first);
        if (round == last)
            now = count_again(&first);
        TL_MPI(MPI_Sendrecv(&round, 1, MPI_INT, 0, 0, &pid, 1, MPI_INT, 0, 0, inter,
                            MPI_STATUS_IGNORE));
        talk(inter, false, round);
        TL_MPI(MPI_Comm_disconnect(&inter));
        wait_for_end(pid);
    }
    TL_CHECK(now.mappings <= first.mappings, "mappings: %d in round %d, %d in round %d",
             first.mappings, FIRST, now.mappings, last);
    TL_CHECK(now.descriptors <= first.descriptors, "descriptors: %d in round %d, %d in round %d",
             first.descriptors, FIRST, now.descriptors, last);
    /* Pages of what is there all the time may be touched for the first time late. */
    TL_CHECK(now.shared - first.shared < 1024,
             "shared memory: %ld KiB in round %d, %ld in round %d", first.shared, FIRST, now.shared,
             last);
    return tl_finish();
}
