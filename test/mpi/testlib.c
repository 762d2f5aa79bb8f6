/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_DEFAULT, process_vm_readv */
#endif
#include "test/mpi/counter.h"
#include "test/mpi/testlib.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/** A broken component fails everywhere at once: the first few lines tell enough. */
#define REPORTS_MAX 12

static struct {
    const char *name;
    int rank, size;
    uint64_t seed;
    int factor;
    bool kinds[TL_KINDS];
} self = {.seed = 1, .factor = 1};

static atomic_long passed_checks, failed_checks;

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

    long mine[2] = {passed_checks, failed_checks}, sum[2] = {0, 0};

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

/* ---- checks ---- */

static void report(const char *file, int line, const char *format, va_list args)
{
    char text[512];

    vsnprintf(text, sizeof(text), format, args);
    fprintf(stderr, "%s:%d: %s: rank %d: %s\n", file, line, self.name, self.rank, text);
}

/** Counts; true where this failure is still to be printed. */
static bool count_check(bool ok)
{
    if (ok) {
        atomic_fetch_add(&passed_checks, 1);
        return false;
    }
    return atomic_fetch_add(&failed_checks, 1) < REPORTS_MAX;
}

bool tl_check(bool ok, const char *file, int line, const char *format, ...)
{
    if (count_check(ok)) {
        va_list args;

        va_start(args, format);
        report(file, line, format, args);
        va_end(args);
    }
    return ok;
}

bool tl_check_bytes(const void *got, const void *want, size_t n, const char *file, int line,
                    const char *format, ...)
{
    const unsigned char *g = got, *e = want;
    bool ok = n == 0 || memcmp(got, want, n) == 0;

    if (count_check(ok)) {
        va_list args;
        size_t at = 0;

        while (g[at] == e[at])
            at++;
        va_start(args, format);
        report(file, line, format, args);
        va_end(args);
        fprintf(stderr, "    byte %zu of %zu is 0x%02x, not 0x%02x\n", at, n, g[at], e[at]);
    }
    return ok;
}

bool tl_check_fill(const void *got, unsigned char value, size_t n, const char *file, int line,
                   const char *format, ...)
{
    const unsigned char *g = got;
    size_t at = 0;

    while (at < n && g[at] == value)
        at++;
    if (count_check(at == n)) {
        va_list args;

        va_start(args, format);
        report(file, line, format, args);
        va_end(args);
        fprintf(stderr, "    byte %zu of %zu is 0x%02x, not 0x%02x\n", at, n, g[at], value);
    }
    return at == n;
}

bool tl_check_mpi(int code, int error_class, const char *call, const char *file, int line)
{
    char text[MPI_MAX_ERROR_STRING] = "success";
    int class = MPI_SUCCESS, length;

    if (code != MPI_SUCCESS) {
        MPI_Error_class(code, &class);
        MPI_Error_string(code, text, &length);
    } else if (error_class == MPI_SUCCESS) {
        return true;
    }
    return tl_check(class == error_class, file, line, "%s: class %d (%s), not class %d", call,
                    class, text, error_class);
}

long tl_failed(void)
{
    return failed_checks;
}

static struct {
    int to, from; /**< the file, and standard error itself */
    char text[1 << 16];
} listening;

void tl_listen(void)
{
    // Not a nameless file of /tmp, which not every file system has.
    listening.to = memfd_create("heard", 0);
    listening.from = dup(STDERR_FILENO);
    // Threads that write at the same time do not share a position in such a file, but its end.
    if (listening.to < 0 || listening.from < 0 || fcntl(listening.to, F_SETFL, O_APPEND) != 0)
        tl_die("no file for standard error");
    (void)fflush(stderr);
    (void)dup2(listening.to, STDERR_FILENO);
}

const char *tl_heard(void)
{
    (void)fflush(stderr);
    (void)dup2(listening.from, STDERR_FILENO);
    (void)close(listening.from);
    const ssize_t n = pread(listening.to, listening.text, sizeof(listening.text) - 1, 0);

    listening.text[n > 0 ? n : 0] = '\0';
    (void)close(listening.to);
    return listening.text;
}

int tl_count(const char *text, const char *what)
{
    int n = 0;

    for (const char *at = text; (at = strstr(at, what)) != NULL; at += strlen(what))
        n++;
    return n;
}

/* ---- memory ---- */

void *tl_alloc(size_t bytes)
{
    void *memory = calloc(bytes > 0 ? bytes : 1, 1);

    if (memory == NULL)
        tl_die("out of memory");
    return memory;
}

/** What it notes of memory is memory of the process. */
static bool under_valgrind(void)
{
    const char *preloaded = getenv("LD_PRELOAD");
    return preloaded != NULL && strstr(preloaded, "vgpreload") != NULL;
}

size_t tl_private(void)
{
    unsigned long total = 0, resident = 0, shared = 0;
    FILE *file = NULL;

    if (dlsym(RTLD_DEFAULT, "__asan_init") == NULL && !under_valgrind())
        file = fopen("/proc/self/statm", "r");
    if (file != NULL) {
        if (fscanf(file, "%lu %lu %lu", &total, &resident, &shared) != 3)
            resident = shared = 0;
        fclose(file);
    }
    return (size_t)(resident - shared) * (size_t)sysconf(_SC_PAGESIZE);
}

size_t tl_allocated(void)
{
    const struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

void tl_growth_step(tl_growth_t *g, int i, int warm_up, int n)
{
    const int part = (n - warm_up) / TL_GROWTH_PARTS;

    if (i < warm_up || (i - warm_up) % part != 0 || i > warm_up + TL_GROWTH_PARTS * part)
        return;
    const size_t now = tl_private(), growth = i > warm_up && now > g->before ? now - g->before : 0;

    g->least = i == warm_up ? SIZE_MAX : growth < g->least ? growth : g->least;
    g->before = now;
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
