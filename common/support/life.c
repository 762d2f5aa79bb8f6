/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/support/life.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/support/peer_file.h"

/* ---- what decides ---------------------------------------------------------------------------- */

bool onic_stat_read(const char *text, onic_stat_t *stat)
{
    /* The name ends with the last bracket, and may have such in it. */
    const char *at = strrchr(text, ')');

    return at != NULL &&
           sscanf(at + 1,
                  " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %" SCNd64
                  " %*d %" SCNu64,
                  &stat->state, &stat->threads, &stat->began) == 3;
}

bool onic_life_comparable(const onic_life_t *mine, const onic_life_t *other)
{
    return mine->pid_namespace != 0 && other->pid > 0 && other->began != 0 &&
           mine->pid_namespace == other->pid_namespace &&
           mine->time_namespace == other->time_namespace;
}

bool onic_life_ended(const onic_life_t *life, const onic_stat_t *stat)
{
    const bool gone = stat->state == 'Z' || stat->state == 'X';

    return stat->began != life->began || (gone && stat->threads <= 1);
}

/* ---- the system ------------------------------------------------------------------------------ */

/** False where there is no such file, or it cannot be read. */
static bool read_stat(int64_t pid, onic_stat_t *stat)
{
    char path[64], text[1024];

    snprintf(path, sizeof(path), "/proc/%" PRId64 "/stat", pid);
    return onic_file_text(path, text, sizeof(text)) > 0 && onic_stat_read(text, stat);
}

static uint64_t inode_of(const char *path)
{
    struct stat file;

    return stat(path, &file) == 0 ? (uint64_t)file.st_ino : 0;
}

/** True if /proc shows the processes of this namespace. It may be mounted from outside. */
static bool proc_is_mine(void)
{
    char text[32];
    const ssize_t n = readlink("/proc/self", text, sizeof(text) - 1);

    if (n <= 0)
        return false;
    text[n] = '\0';
    return strtoll(text, NULL, 10) == (long long)getpid();
}

static onic_life_t find_mine(void)
{
    onic_life_t life = {.pid = getpid()};
    onic_stat_t stat;

    if (proc_is_mine() && read_stat(life.pid, &stat)) {
        life.began = stat.began;
        life.pid_namespace = inode_of("/proc/self/ns/pid");
        life.time_namespace = inode_of("/proc/self/ns/time");
    }
    return life;
}

onic_life_t onic_life_mine(void)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static onic_life_t known;

    pthread_mutex_lock(&mutex);
    /* A child of fork is another. */
    if (known.pid != getpid())
        known = find_mine();
    const onic_life_t mine = known;
    pthread_mutex_unlock(&mutex);
    return mine;
}

bool onic_life_is_dead(const onic_life_t *life)
{
    const onic_life_t mine = onic_life_mine();
    onic_stat_t stat;

    if (!onic_life_comparable(&mine, life))
        return false;
    if (kill((pid_t)life->pid, 0) != 0 && errno == ESRCH)
        return true;
    /* It may be hidden from me, or have ended just now; the next look will tell. */
    return read_stat(life->pid, &stat) && onic_life_ended(life, &stat);
}
