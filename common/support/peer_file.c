/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "common/support/peer_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

onic_file_key_t onic_file_offer(int fd)
{
    struct stat st;

    if (fd < 0 || fstat(fd, &st) != 0)
        return ONIC_NO_FILE;
    return (onic_file_key_t){.pid = getpid(), .fd = fd, .device = st.st_dev, .inode = st.st_ino};
}

static bool matches(const struct stat *st, const onic_file_key_t *key)
{
    return (S_ISREG(st->st_mode) || S_ISFIFO(st->st_mode)) && st->st_dev == key->device &&
           st->st_ino == key->inode;
}

int onic_file_open(const onic_file_key_t *key, int flags)
{
    char path[64];
    struct stat st;

    if (key->fd < 0)
        return -1;
    snprintf(path, sizeof(path), "/proc/%lld/fd/%lld", (long long)key->pid, (long long)key->fd);
    /* Looked at first: to open a device or a terminal may have effects. */
    if (stat(path, &st) != 0 || !matches(&st, key))
        return -1;
    int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && (fstat(fd, &st) != 0 || !matches(&st, key))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

size_t onic_file_text(const char *path, char *text, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);

    memset(text, 0, size);
    const ssize_t n = fd >= 0 ? read(fd, text, size - 1) : 0;
    if (fd >= 0)
        close(fd);
    return n > 0 ? (size_t)n : 0;
}
