/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Words between processes without MPI: in a file that all of them have mapped. */
#include "test/mpi/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64, LOOK_USEC = 50 };

typedef struct board {
    _Atomic int size; /**< 0: it is not whole yet */
    _Atomic int joined;
    _Atomic int said[MOST][MOST][CONTROL_WORDS]; /**< to, from: the number of the last one */
} board_t;

static board_t *board;
static int me;

static void fail(const char *what)
{
    fprintf(stderr, "progress: control: %s: %s\n", what, strerror(errno));
    abort();
}

static void look_again(void)
{
    usleep(LOOK_USEC);
}

/** Hosts that are namespaces of one machine have the working directory in common. */
static const char *directory(void)
{
    return tl_launched_here() ? "/tmp" : ".";
}

static board_t *map(int fd)
{
    board_t *at = mmap(NULL, sizeof(*at), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    close(fd);
    if (at == MAP_FAILED)
        fail("mmap");
    return at;
}

/** A board for so many processes, in an open file. */
static void begin(int fd, int size)
{
    if (size > MOST)
        tl_skip("made for 64 ranks at most");
    if (fd < 0 || ftruncate(fd, sizeof(board_t)) != 0)
        fail("no file");
    board = map(fd);
    atomic_store(&board->size, size);
}

/** Returns when all are there; then the name is needed no more. */
static void join(const char *name, int rank)
{
    me = rank;
    if (atomic_fetch_add(&board->joined, 1) + 1 == atomic_load(&board->size))
        unlink(name);
    while (atomic_load(&board->joined) < atomic_load(&board->size))
        look_again();
}

void control_make(int size, char *address)
{
    snprintf(address, CONTROL_ADDRESS, "%s/progress-XXXXXX", directory());
    begin(mkstemp(address), size);
}

void control_join(const char *address, int rank)
{
    if (board == NULL) {
        const int fd = open(address, O_RDWR | O_CLOEXEC);

        if (fd < 0)
            fail(address);
        board = map(fd);
    }
    join(address, rank);
}

void control_open(int rank, int size)
{
    const char *space = getenv("PMIX_NAMESPACE"),
               *random = getenv("OMPI_MCA_orte_precondition_transports");
    char name[200];
    int fd = -1;

    /* What the processes of a job, and no others, have in common. */
    snprintf(name, sizeof(name), "%s/progress.%s.%s", directory(), space != NULL ? space : "alone",
             random != NULL ? random : "");
    for (char *c = name + strlen(directory()) + 1; *c != '\0'; c++)
        *c = *c == '/' ? '_' : *c;
    if (rank == 0) {
        begin(open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), size);
    } else {
        for (int tries = 0; board == NULL; tries++) {
            fd = open(name, O_RDWR | O_CLOEXEC);
            if (fd >= 0 && lseek(fd, 0, SEEK_END) == (off_t)sizeof(board_t))
                board = map(fd);
            else if (fd >= 0)
                close(fd);
            if (tries == 6000)
                fail(name);
            if (board == NULL)
                usleep(10000);
        }
        while (atomic_load(&board->size) == 0)
            look_again();
    }
    join(name, rank);
}

void control_close(void)
{
    munmap(board, sizeof(*board));
    board = NULL;
}

void control_tell(int to, int word, int number)
{
    atomic_store(&board->said[to][me][word], number);
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool control_told(int from, int word, int number, double seconds)
{
    const double end = now() + seconds;

    while (atomic_load(&board->said[me][from][word]) < number) {
        if (seconds >= 0 && now() >= end)
            return false;
        look_again();
    }
    return true;
}
