/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/peer_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

onic_file_key_t onic_file_offer(int fd)
{
    struct stat st;

    if (fd < 0 || fstat(fd, &st) != 0) {
        return ONIC_NO_FILE;
    }
    return (onic_file_key_t){.pid = getpid(), .fd = fd, .device = st.st_dev, .inode = st.st_ino};
}

/** What a path leads to, told without opening: opening a device or a terminal may have effects. */
static bool is_nameless(const char *path)
{
    char target[16] = "";
    ssize_t n = readlink(path, target, sizeof(target) - 1);

    return n > 0 && (strncmp(target, "/memfd:", strlen("/memfd:")) == 0 ||
                     strncmp(target, "pipe:", strlen("pipe:")) == 0);
}

int onic_file_open(const onic_file_key_t *key, int flags)
{
    char path[64];
    struct stat st;

    if (key->fd < 0) {
        return -1;
    }
    snprintf(path, sizeof(path), "/proc/%lld/fd/%lld", (long long)key->pid, (long long)key->fd);
    int fd = is_nameless(path) ? open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
    if (fd >= 0 && (fstat(fd, &st) != 0 || st.st_dev != key->device || st.st_ino != key->inode)) {
        close(fd);
        fd = -1;
    }
    return fd;
}
