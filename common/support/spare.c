/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE /* memfd_create */
#include "common/support/spare.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/** One of the reserve: a file of its own, which has no name, no bytes, and no other opener. */
typedef struct spare {
    int fd;
    dev_t device;
    ino_t inode;
} spare_t;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned begun;
static spare_t spare[ONIC_SPARES];
static unsigned there;
/** How many are to be there. */
static unsigned wanted = ONIC_SPARES;
/** Of those, how many are not; read without the mutex, as the next. */
static atomic_uint missing;
static atomic_bool has_run_out;

static int open_nothing(void)
{
    return memfd_create("ompi-nic", MFD_CLOEXEC);
}

/** False where none is to be had. */
static bool take(spare_t *s)
{
    struct stat file;
    s->fd = open_nothing();
    if (s->fd < 0 || fstat(s->fd, &file) != 0)
        return false;
    s->device = file.st_dev;
    s->inode = file.st_ino;
    return true;
}

/** True if it is still what was opened. A program that closes all descriptors may have used it
 *  again. */
static bool is_mine(const spare_t *s)
{
    struct stat file;
    return fstat(s->fd, &file) == 0 && file.st_dev == s->device && file.st_ino == s->inode;
}

/* With the mutex. */

static void count(void)
{
    atomic_store_explicit(&missing, begun > 0 && there < wanted ? wanted - there : 0,
                          memory_order_relaxed);
}

static void fill(void)
{
    while (there < wanted && take(&spare[there]))
        there++;
    count();
}

/** Gives up one of those above `least`. */
static bool give_up(unsigned least)
{
    bool given = false;
    while (!given && there > least) {
        const spare_t *s = &spare[--there];
        given = is_mine(s) && close(s->fd) == 0;
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
    /* What is tried again leaves no error. */
    errno = given ? 0 : error;
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
    struct rlimit r;
    /* The lowest is given each time: while the highest is free there are some, and none has to be
     * taken to see that, which another thread of the program would miss just then. */
    if (getrlimit(RLIMIT_NOFILE, &r) != 0 ||
        (r.rlim_cur > 0 && fcntl((int)r.rlim_cur - 1, F_GETFD) < 0))
        return false;
    const int fd = open_nothing();
    const bool none = fd < 0 && errno == EMFILE;
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
