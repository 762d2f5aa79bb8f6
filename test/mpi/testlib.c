/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* process_vm_readv */
#endif
#include "test/mpi/counter.h"
#include "test/mpi/testlib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static struct {
    const char *name;
    int rank, size;
    uint64_t seed;
    int factor;
    bool kinds[TL_KINDS];
} self = {.seed = 1, .factor = 1};

static const char *const kind_names[] = {"create", "allocate", "dynamic", "shared"};

/* ---- program ---- */

void tl_die(const char *what)
{
    fprintf(stderr, "%s: rank %d: %s\n", self.name, self.rank, what);
    MPI_Abort(MPI_COMM_WORLD, TL_EXIT_FAILED);
    abort();
}

static void select_kind(const char *word)
{
    bool known = false;

    for (int k = 0; k < TL_KINDS; k++)
        if (strcmp(word, "all") == 0 || strcmp(word, kind_names[k]) == 0)
            self.kinds[k] = known = true;
    if (!known)
        tl_die("-w wants create, allocate, dynamic, shared or all");
}

/** Handles an option that takes a value; false where it is not one of ours. */
static bool take_valued(const char *option, const char *value)
{
    if (strcmp(option, "-w") == 0)
        select_kind(value);
    else if (strcmp(option, "-s") == 0)
        self.seed = strtoull(value, NULL, 0);
    else if (strcmp(option, "-n") == 0)
        self.factor = atoi(value) > 0 ? atoi(value) : 1;
    else
        return false;
    return true;
}

static void read_options(int *argc, char **argv)
{
    const char *seed = getenv("ONIC_TEST_SEED");
    int kept = 1;

    if (seed != NULL)
        self.seed = strtoull(seed, NULL, 0);
    for (int i = 1; i < *argc; i++)
        if (i + 1 < *argc && take_valued(argv[i], argv[i + 1]))
            i++;
        else
            argv[kept++] = argv[i];
    argv[kept] = NULL;
    *argc = kept;
}

bool tl_asked_for(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return argc <= 1;
}

bool tl_launched_here(void)
{
    const char *here = getenv("OMPI_COMM_WORLD_LOCAL_SIZE"), *all = getenv("OMPI_COMM_WORLD_SIZE");

    return here != NULL && all != NULL && strcmp(here, all) == 0;
}

bool tl_one_host(void)
{
    MPI_Comm node;
    int size;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &size);
    MPI_Comm_free(&node);
    int mine = size == self.size, all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    return all;
}

MPI_Group tl_group_of(MPI_Comm comm, int rank)
{
    MPI_Group all, one;

    MPI_Comm_group(comm, &all);
    MPI_Group_incl(all, 1, &rank, &one);
    MPI_Group_free(&all);
    return one;
}

int tl_class(int code)
{
    int class = MPI_SUCCESS;

    MPI_Error_class(code, &class);
    return class;
}

bool tl_same_host(int rank)
{
    MPI_Comm node;
    MPI_Group all, here;
    int there;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Comm_group(node, &here);
    MPI_Group_translate_ranks(all, 1, &rank, here, &there);
    MPI_Group_free(&here);
    MPI_Group_free(&all);
    MPI_Comm_free(&node);
    return there != MPI_UNDEFINED;
}

bool tl_may_copy(void)
{
    long mine[3] = {getpid(), (long)(intptr_t)mine, 0}, *all;
    int may = 1, all_may = 0;

    all = tl_alloc((size_t)self.size * sizeof(mine));
    MPI_Allgather(mine, 3, MPI_LONG, all, 3, MPI_LONG, MPI_COMM_WORLD);
    for (int i = 0; i < self.size; i++) {
        long got = 0;
        struct iovec to = {&got, sizeof(got)}, from = {(void *)(intptr_t)all[3 * i + 1], 8};

        may &= process_vm_readv((pid_t)all[3 * i], &to, 1, &from, 1, 0) == 8 && got == all[3 * i];
    }
    MPI_Allreduce(&may, &all_may, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    free(all);
    return all_may;
}

void tl_init(int *argc, char ***argv, int required)
{
    const char *slash = strrchr((*argv)[0], '/');
    int provided;

    self.name = slash != NULL ? slash + 1 : (*argv)[0];
    if (strncmp(self.name, "lt-", 3) == 0)
        self.name += 3;
    MPI_Init_thread(argc, argv, required, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &self.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &self.size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    read_options(argc, *argv);
    if (provided < required)
        tl_skip("this MPI does not give the thread level");
}

/** All windows are freed here, so nothing of them may be left. */
static void check_pools(void)
{
    if (getenv("ONIC_TEST_LEAKS") != NULL)
        return;
    MPI_Barrier(MPI_COMM_WORLD);
    counter_check_pool("osc_nicstride_live_ops");
    counter_check_pool("osc_nicstride_live_requests");
}

int tl_finish(void)
{
    check_pools();

    long mine[2] = {tl_passed(), tl_failed()}, sum[2] = {0, 0};

    MPI_Allreduce(mine, sum, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (self.rank == 0) {
        printf("%s: %ld checks passed, %ld failed\n", self.name, sum[0], sum[1]);
        if (sum[1] > 0) {
            printf("%s: seed %llu, %d ranks\n", self.name, (unsigned long long)self.seed,
                   self.size);
        }
        fflush(stdout);
    }
    MPI_Finalize();
    return sum[1] == 0 ? TL_EXIT_OK : TL_EXIT_FAILED;
}

void tl_skip(const char *why)
{
    if (self.rank == 0) {
        printf("%s: skipped: %s\n", self.name, why);
        fflush(stdout);
    }
    MPI_Finalize();
    exit(TL_EXIT_SKIP);
}

static tl_kind_t kind_from(int k)
{
    while (k < TL_KINDS && !self.kinds[k])
        k++;
    return (tl_kind_t)k;
}

/** Not before a program asks for them: it communicates, and programs of other things may be about
 *  processes that have not met. */
static void settle_kinds(void)
{
    static bool settled;
    bool any = false;

    if (settled)
        return;
    settled = true;
    for (int k = 0; k < TL_KINDS; k++)
        any = any || self.kinds[k];
    if (!any)
        select_kind("all");
    if (self.kinds[TL_SHARED] && !tl_one_host())
        self.kinds[TL_SHARED] = false;
    if (kind_from(0) == TL_KINDS)
        tl_skip("no shared window over several hosts");
}

void tl_shared_needs(MPI_Aint bytes)
{
    struct statvfs shm;
    char why[80];
    int room, least;

    /* As much again is for the transports. */
    room = statvfs("/dev/shm", &shm) != 0 ||
           shm.f_bavail / 2 >= (uint64_t)bytes * (uint64_t)self.size / shm.f_frsize;
    MPI_Allreduce(&room, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    settle_kinds();
    if (least || !self.kinds[TL_SHARED])
        return;
    self.kinds[TL_SHARED] = false;
    if (kind_from(0) == TL_KINDS) {
        snprintf(why, sizeof(why), "/dev/shm has no room for %ld MiB for each rank",
                 (long)(bytes >> 20));
        tl_skip(why);
    }
}

void tl_need_ranks(int min, int max)
{
    if (self.size < min || self.size > max) {
        char why[80];

        snprintf(why, sizeof(why), "made for %d to %d ranks", min, max);
        tl_skip(why);
    }
}

const char *tl_name(void)
{
    return self.name;
}

int tl_rank(void)
{
    return self.rank;
}

int tl_size(void)
{
    return self.size;
}

uint64_t tl_seed(void)
{
    return self.seed;
}

int tl_factor(void)
{
    return self.factor;
}

void tl_closed(bool closed)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct caps[2];

    /* The former is enough for most users, the latter for those who may do more than others. */
    TL_CHECK(prctl(PR_SET_DUMPABLE, closed ? 0 : 1, 0, 0, 0) == 0, "prctl");
    TL_CHECK(syscall(SYS_capget, &header, caps) == 0, "capget");
    for (int i = 0; i < 2; i++)
        caps[i].effective = closed ? 0 : caps[i].permitted;
    TL_CHECK(syscall(SYS_capset, &header, caps) == 0, "capset");
}

void tl_await_stopped(pid_t pid)
{
    char path[64], text[256], state = '?';

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    while (state != 'T' && state != 'Z' && state != 'X') {
        FILE *f = fopen(path, "r");
        if (f == NULL)
            return;
        text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
        fclose(f);
        const char *name_end = strrchr(text, ')');
        state = name_end != NULL && name_end[1] != '\0' ? name_end[2] : '?';
        usleep(1000);
    }
}

bool tl_slow(void)
{
    return getenv("ONIC_TEST_SLOW") != NULL;
}

bool tl_large(void)
{
    return getenv("ONIC_TEST_LARGE") != NULL;
}

tl_kind_t tl_first_kind(void)
{
    settle_kinds();
    return kind_from(0);
}

tl_kind_t tl_next_kind(tl_kind_t kind)
{
    settle_kinds();
    return kind_from((int)kind + 1);
}

const char *tl_kind_name(tl_kind_t kind)
{
    return kind_names[kind];
}

/* ---- random numbers ---- */

tl_rng_t tl_rng(uint64_t seed, uint64_t stream)
{
    tl_rng_t rng = {seed * UINT64_C(0x9E3779B97F4A7C15) + stream};

    rng.state = tl_random(&rng) ^ (stream << 32);
    return rng;
}

/* splitmix64 */
uint64_t tl_random(tl_rng_t *rng)
{
    uint64_t z = rng->state += UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

int64_t tl_range(tl_rng_t *rng, int64_t low, int64_t high)
{
    return low + (int64_t)(tl_random(rng) % (uint64_t)(high - low + 1));
}

bool tl_one_in(tl_rng_t *rng, int n)
{
    return tl_range(rng, 1, n) == 1;
}

void tl_fill_random(void *memory, size_t bytes, uint64_t seed)
{
    unsigned char *m = memory;
    tl_rng_t rng = tl_rng(seed, 0);

    for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
        uint64_t value = tl_random(&rng);
        size_t n = bytes - i < sizeof(value) ? bytes - i : sizeof(value);

        memcpy(m + i, &value, n);
    }
}
