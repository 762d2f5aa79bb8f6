/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test/mpi/meet.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test/mpi/counter.h"

/** Flags of ranks on cache lines of their own. */
#define STRIDE 16

static void *map_board(const char *name, size_t bytes)
{
    int fd = open(name, O_RDWR | O_CLOEXEC);
    void *board =
        fd >= 0 ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (fd >= 0)
        close(fd);
    return board;
}

/** In the working directory, which hosts that are namespaces of one machine have in common: they
 *  have nothing else. */
static void make_board(char *name, size_t bytes)
{
    int fd = mkstemp(name);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0) {
        perror("meet_new");
        MPI_Abort(MPI_COMM_WORLD, TL_EXIT_FAILED);
    }
    close(fd);
}

void meet_begin_as_child(void)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        return;
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        _exit(TL_EXIT_FAILED);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
        /* The launcher may look after the others first, or after me: both is well. */
        sleep(2);
        _exit(TL_EXIT_OK);
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : TL_EXIT_FAILED);
}

int meet_entries(const char *path, const char *prefix)
{
    DIR *dir = opendir(path);
    int n = 0;
    for (const struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
        n += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
    if (dir != NULL)
        closedir(dir);
    return n;
}

int meet_mappings(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    int n = 0;
    for (int c; f != NULL && (c = fgetc(f)) != EOF;)
        n += c == '\n';
    if (f != NULL)
        fclose(f);
    return n;
}

meet_t meet_new(MPI_Comm comm)
{
    meet_t m = {.comm = comm};
    char name[] = "onic-meet-XXXXXX";
    MPI_Comm_rank(comm, &m.rank);
    MPI_Comm_size(comm, &m.size);
    m.bytes = (size_t)m.size * STRIDE * sizeof(long);
    if (m.rank == 0)
        make_board(name, m.bytes);
    MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, comm);
    m.memory = map_board(name, m.bytes);
    int mapped = m.memory != MAP_FAILED, all;
    MPI_Allreduce(&mapped, &all, 1, MPI_INT, MPI_LAND, comm);
    if (m.rank == 0)
        unlink(name);
    if (!all) {
        printf("SKIP: the ranks have no directory in common\n");
        fflush(stdout);
        MPI_Abort(MPI_COMM_WORLD, TL_EXIT_SKIP);
    }
    m.entered = m.memory;
    return m;
}

void meet_free(meet_t *m)
{
    munmap(m->memory, m->bytes);
}

long meet_enter(meet_t *m)
{
    m->mine++;
    atomic_store(&m->entered[m->rank * STRIDE], m->mine);
    return m->mine;
}

long meet_entered(const meet_t *m, int rank)
{
    return atomic_load(&m->entered[rank * STRIDE]);
}

void meet_leave(const meet_t *m, long n, const char *what)
{
    for (int r = 0; r < m->size; r++) {
        long entered = meet_entered(m, r);
        TL_CHECK(entered >= n, "%s: left barrier %ld, but rank %d has entered only %ld", what, n, r,
                 entered);
    }
}

void meet_barrier(meet_t *m, const char *what)
{
    long n = meet_enter(m);
    TL_MPI(MPI_Barrier(m->comm));
    meet_leave(m, n, what);
}

long meet_ibarrier(meet_t *m, MPI_Request *request)
{
    long n = meet_enter(m);
    TL_MPI(MPI_Ibarrier(m->comm, request));
    return n;
}

void meet_delay(tl_rng_t *rng, int usec)
{
    int kind = (int)tl_range(rng, 0, 7);
    double length = 1e-6 * (double)tl_range(rng, 0, usec);
    if (kind == 0) {
        struct timespec time = {0, (long)(length * 1e9)};
        nanosleep(&time, NULL);
    } else if (kind == 1) {
        double end = MPI_Wtime() + length;
        while (MPI_Wtime() < end) {
        }
    }
}

static const char *const names[] = {"barriers_shm",     "barriers_put",   "barriers_datagram",
                                    "barriers_mlx5",    "barriers_below", "agreements",
                                    "declined",         "retransmits",    "datagram_completed",
                                    "thread_completed", "trials",         "stepper_taken"};
enum { NAMES = sizeof(names) / sizeof(names[0]) };
static MPI_T_pvar_session session;
static MPI_T_pvar_handle handles[NAMES];
static bool one_host, loaded;
/** That of the module which does the barriers where the component does not: coll/tuned. */
enum { PRIORITY_BESIDE = 30 };

void meet_begin(void)
{
    int provided, index, count;
    one_host = tl_one_host();
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    loaded = counter_loaded("coll_nicbarrier_");
    for (int i = 0; i < NAMES; i++) {
        char full[128];
        snprintf(full, sizeof(full), "coll_nicbarrier_%s", names[i]);
        handles[i] = MPI_T_PVAR_HANDLE_NULL;
        if (loaded && counter_find(full, &index))
            MPI_T_pvar_handle_alloc(session, index, NULL, &handles[i], &count);
    }
    const char *engine = meet_engine();
    if (engine != NULL && strcmp(engine, "shm") == 0 && !one_host)
        tl_skip("engine shm is for one host");
}

int meet_finish(void)
{
    for (int i = 0; i < NAMES; i++)
        if (handles[i] != MPI_T_PVAR_HANDLE_NULL)
            MPI_T_pvar_handle_free(session, &handles[i]);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    return tl_finish();
}

long long meet_counter(const char *name)
{
    unsigned long long value = 0;
    int i = 0;
    while (i < NAMES && strcmp(name, names[i]) != 0)
        i++;
    TL_CHECK(i < NAMES, "no test has a variable %s", name);
    if (i == NAMES || handles[i] == MPI_T_PVAR_HANDLE_NULL)
        return -1;
    TL_CHECK(MPI_T_pvar_read(session, handles[i], &value) == MPI_SUCCESS, "%s is not read", name);
    return (long long)value;
}

const char *meet_engine(void)
{
    const char *priority = getenv("OMPI_MCA_coll_nicbarrier_priority");
    const char *engine = getenv("OMPI_MCA_coll_nicbarrier_engine");
    if (priority == NULL || atoi(priority) <= PRIORITY_BESIDE || !loaded)
        return NULL;
    return engine != NULL ? engine : "auto";
}

meet_errors_t meet_catch_errors(void)
{
    char name[] = "/tmp/onic-errors-XXXXXX";
    meet_errors_t errors = {.file = mkstemp(name)};
    unlink(name);
    fflush(stderr);
    errors.old = dup(STDERR_FILENO);
    dup2(errors.file, STDERR_FILENO);
    return errors;
}

int meet_count_errors(meet_errors_t *errors, const char *what)
{
    char text[65536] = "";
    int lines = 0, all = 0;
    fflush(stderr);
    dup2(errors->old, STDERR_FILENO);
    ssize_t n = pread(errors->file, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    for (const char *at = text; (at = strstr(at, what)) != NULL; at += strlen(what))
        lines++;
    close(errors->file);
    close(errors->old);
    TL_MPI(MPI_Allreduce(&lines, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    return all;
}

long long meet_carried(void)
{
    const char *engine = meet_engine();
    const char *ppn = getenv("OMPI_MCA_coll_nicbarrier_ppn");
    char name[64];
    bool chosen = strcmp(engine, "auto") == 0;
    snprintf(name, sizeof(name), "barriers_%s", chosen ? "shm" : engine);
    long long got = meet_counter(name);
    if (chosen && !one_host)
        got += meet_counter("barriers_put") + meet_counter("barriers_datagram");
    /* Where few enough gather in shared memory there is nothing between leaders. */
    if (!chosen && ppn != NULL && atoi(ppn) >= tl_size())
        got += meet_counter("barriers_shm");
    return got;
}

void meet_check_engine(long long least)
{
    const char *engine = meet_engine();
    if (engine == NULL)
        return;
    long long got = meet_carried();
    TL_CHECK(got >= least, "%lld barriers were carried by engine %s, not %lld", got, engine, least);
    TL_CHECK(meet_counter("declined") == 0, "%lld agreements were declined",
             meet_counter("declined"));
}
