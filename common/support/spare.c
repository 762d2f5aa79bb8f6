/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/support/spare.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOTHING "/dev/null"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned begun;
static int spare[ONIC_SPARES];
static unsigned there;
/** How many are to be there. */
static unsigned wanted = ONIC_SPARES;
/** Of those, how many are not; read without the mutex, as the next. */
static atomic_uint missing;
static atomic_bool has_run_out;

static int open_nothing(void)
{
    return open(NOTHING, O_RDONLY | O_CLOEXEC);
}

/** Is it still what was opened? A program that closes all descriptors may have used it again. */
static bool is_mine(int fd)
{
    struct stat file, nothing;
    return fstat(fd, &file) == 0 && stat(NOTHING, &nothing) == 0 && S_ISCHR(file.st_mode) &&
           file.st_rdev == nothing.st_rdev;
}

/* With the mutex. */

static void count(void)
{
    atomic_store_explicit(&missing, begun > 0 && there < wanted ? wanted - there : 0,
                          memory_order_relaxed);
}

static void fill(void)
{
    for (int fd; there < wanted && (fd = open_nothing()) >= 0;)
        spare[there++] = fd;
    count();
}

/** Gives up one of those above `least`. */
static bool give_up(unsigned least)
{
    bool given = false;
    while (!given && there > least) {
        const int fd = spare[--there];
        given = is_mine(fd) && close(fd) == 0;
    }
    count();
    return given;
}

/** None is left: most are given up. */
static bool run_out(void)
{
    bool given = false;
    atomic_store(&has_run_out, true);
    wanted = ONIC_SPARES_LEAST;
    while (give_up(wanted))
        given = true;
    return given;
}

void onic_spare_begin(void)
{
    pthread_mutex_lock(&mutex);
    if (begun++ == 0)
        fill();
    pthread_mutex_unlock(&mutex);
}

void onic_spare_end(void)
{
    pthread_mutex_lock(&mutex);
    if (--begun == 0) {
        while (give_up(0)) {
        }
        wanted = ONIC_SPARES;
        atomic_store(&has_run_out, false);
    }
    pthread_mutex_unlock(&mutex);
}

bool onic_spare_give(onic_spare_for_t what)
{
    const int error = errno;
    bool given = false;
    if (error == EMFILE || error == ENFILE) {
        pthread_mutex_lock(&mutex);
        given = run_out() || (what == ONIC_FOR_NOW && give_up(0));
        pthread_mutex_unlock(&mutex);
    }
    errno = error;
    return given;
}

void onic_spare_take_back(void)
{
    if (atomic_load_explicit(&missing, memory_order_relaxed) == 0)
        return;
    pthread_mutex_lock(&mutex);
    if (begun > 0)
        fill();
    pthread_mutex_unlock(&mutex);
}

bool onic_spare_has_run_out(void)
{
    return atomic_load_explicit(&has_run_out, memory_order_relaxed);
}

bool onic_spare_none_left(void)
{
    const int fd = open_nothing();
    const bool none = fd < 0 && (errno == EMFILE || errno == ENFILE);
    if (fd >= 0)
        close(fd);
    return none;
}

void onic_spare_look(void)
{
    if (onic_spare_has_run_out() || !onic_spare_none_left())
        return;
    pthread_mutex_lock(&mutex);
    (void)run_out();
    pthread_mutex_unlock(&mutex);
}

int onic_open(const char *path, int flags, mode_t mode)
{
    int fd;
    do {
        fd = open(path, flags | O_CLOEXEC, mode);
    } while (fd < 0 && onic_spare_give(ONIC_FOR_NOW));
    /* The kernel looks for a descriptor before it looks for the file. */
    const int error = errno;
    if (fd < 0)
        onic_spare_take_back();
    errno = error;
    return fd;
}

void onic_close(int fd)
{
    close(fd);
    onic_spare_take_back();
}
