/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE
#include "common/transport/shm/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

/** Where shm_open has its files. */
#define DIRECTORY "/dev/shm"
/** Attempts at a name that is not taken. */
#define NAME_TRIES 8
/** Reserved at a time: signals wait for some tenths of a second at most. */
#define PIECE ((size_t)256 << 20)

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

size_t onic_whole_pages(size_t bytes)
{
    return (bytes + page_size() - 1) / page_size() * page_size();
}

/** Bytes that are mapped for a segment: the nonce lies behind the data. */
static size_t mapped_size(size_t size)
{
    return onic_whole_pages(size + sizeof(uint64_t));
}

static uint64_t *nonce_of(void *base, size_t size)
{
    return (uint64_t *)(void *)((char *)base + mapped_size(size) - sizeof(uint64_t));
}

/** Reserves a piece. A limit on file sizes must not kill the process by SIGXFSZ, and other signals
 *  must wait: before Linux 6.10 one that comes undoes all that has been reserved. */
static int reserve_piece(int fd, size_t from, size_t bytes)
{
    const struct timespec now = {0, 0};
    sigset_t all, xfsz, old;
    int rc;

    sigfillset(&all);
    sigemptyset(&xfsz);
    sigaddset(&xfsz, SIGXFSZ);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    do {
        rc = posix_fallocate(fd, (off_t)from, (off_t)bytes);
    } while (rc == EINTR);
    if (rc == EFBIG && !sigismember(&old, SIGXFSZ))
        (void)sigtimedwait(&xfsz, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return rc;
}

static bool reserve(int fd, size_t from, size_t to)
{
    int rc = 0;

    while (rc == 0 && from < to) {
        size_t bytes = to - from < PIECE ? to - from : PIECE;
        rc = reserve_piece(fd, from, bytes);
        from += bytes;
    }
    return rc == 0;
}

/** Reserves one of the equal shares, if there is one of that number; the last one is longer. */
static bool reserve_share(int fd, const onic_segment_key_t *key, uint64_t share)
{
    if (share >= key->shares)
        return true;
    size_t page = page_size(), pages = mapped_size(key->size) / page;
    size_t each = pages / key->shares, first = each * share;
    size_t last = share == key->shares - 1 ? pages : first + each;

    return reserve(fd, first * page, last * page);
}

static bool map(int fd, int flags, size_t size, onic_segment_t *segment)
{
    void *base = mmap(NULL, mapped_size(size), PROT_READ | PROT_WRITE, flags, fd, 0);

    if (base == MAP_FAILED)
        return false;
    *segment = (onic_segment_t){base, size};
    return true;
}

/** A file of that name, to be read and written. */
static int open_named(const char *name, int flags)
{
    return shm_open(name, O_RDWR | O_CLOEXEC | flags, S_IRUSR | S_IWUSR);
}

/** Opens a new file, found by its descriptor or by a random name; -1 where that fails. */
static int open_new(bool named, onic_segment_key_t *key)
{
    int fd = -1;

    if (!named) {
        fd = open(DIRECTORY, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
        key->file = onic_file_offer(fd);
    }
    for (int i = 0; i < NAME_TRIES && named && fd < 0; i++) {
        uint64_t random;
        if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
            break;
        snprintf(key->name, sizeof(key->name), "/onic-%016llx", (unsigned long long)random);
        fd = open_named(key->name, O_CREAT | O_EXCL);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    if (fd < 0)
        key->name[0] = '\0';
    return fd;
}

/** Gives a new file its length and the nonce, and maps it. */
static bool set_up(int fd, const onic_segment_key_t *key, onic_segment_t *segment)
{
    size_t size = key->size, end = mapped_size(size);

    /* The last page sets the length, and the nonce is about to be written there. */
    if (!reserve(fd, end - page_size(), end) || !map(fd, MAP_SHARED, size, segment))
        return false;
    *nonce_of(segment->base, size) = key->nonce;
    return true;
}

bool onic_segment_make(size_t size, size_t space, int shares, bool named, onic_segment_key_t *key,
                       onic_segment_t *segment)
{
    memset(key, 0, sizeof(*key));
    if (size > SIZE_MAX / 2 ||
        getrandom(&key->nonce, sizeof(key->nonce), 0) != (ssize_t)sizeof(key->nonce))
        return false;
    key->file = ONIC_NO_FILE;
    key->size = size;
    key->shares = (uint64_t)shares;
    int fd = open_new(named, key);
    bool made = fd >= 0 && set_up(fd, key, segment);
    if (made && !reserve(fd, 0, space)) {
        onic_segment_unmap(segment);
        made = false;
    }
    if (fd >= 0 && key->file.fd < 0)
        close(fd);
    if (!made)
        onic_segment_withdraw(key);
    return made;
}

bool onic_segment_reserve(const onic_segment_key_t *key)
{
    const bool nameless = key->file.fd >= 0;
    int fd = nameless ? (int)key->file.fd : open_named(key->name, 0);
    const bool reserved = fd >= 0 && reserve_share(fd, key, 0);

    if (!nameless && fd >= 0)
        close(fd);
    return reserved;
}

/** True if the file that was opened is the one of the key. */
static bool is_known(int fd, const onic_segment_key_t *key)
{
    const size_t end = mapped_size(key->size);
    uint64_t nonce;

    return lseek(fd, 0, SEEK_END) == (off_t)end &&
           pread(fd, &nonce, sizeof(nonce), (off_t)(end - sizeof(nonce))) ==
               (ssize_t)sizeof(nonce) &&
           nonce == key->nonce;
}

onic_joined_t onic_segment_join(const onic_segment_key_t *key, size_t size, int share,
                                onic_segment_t *segment)
{
    if (key->size == 0 || key->size != size)
        return ONIC_NOT_JOINED;
    bool nameless = key->file.fd >= 0;
    int fd = nameless ? onic_file_open(&key->file, O_RDWR) : open_named(key->name, 0);
    if (fd < 0)
        return nameless ? ONIC_NEEDS_NAME : ONIC_NOT_JOINED;
    bool joined = is_known(fd, key) && map(fd, MAP_SHARED, size, segment);
    if (joined && !reserve_share(fd, key, (uint64_t)share)) {
        onic_segment_unmap(segment);
        joined = false;
    }
    close(fd);
    return joined ? ONIC_JOINED : ONIC_NOT_JOINED;
}

bool onic_segment_map_part(const onic_segment_key_t *key, onic_mapped_t *part)
{
    const int fd = onic_file_open(&key->file, O_RDWR);
    void *base = fd >= 0 && is_known(fd, key) ? mmap(NULL, part->len, PROT_READ | PROT_WRITE,
                                                     MAP_SHARED, fd, (off_t)part->from)
                                              : MAP_FAILED;

    if (fd >= 0)
        close(fd);
    part->base = base != MAP_FAILED ? base : NULL;
    return part->base != NULL;
}

void onic_unmap(onic_mapped_t *mapped)
{
    if (mapped->base != NULL)
        (void)munmap(mapped->base, mapped->len);
    mapped->base = NULL;
}

void onic_segment_withdraw(onic_segment_key_t *key)
{
    if (key->size > 0 && key->file.fd >= 0)
        close((int)key->file.fd);
    if (key->name[0] != '\0')
        (void)shm_unlink(key->name);
    memset(key, 0, sizeof(*key));
}

size_t onic_segment_part(size_t liked, unsigned processes)
{
    struct statvfs fs;

    /* A file system without a limit says that it has no blocks. */
    return statvfs(DIRECTORY, &fs) != 0 || fs.f_blocks == 0
               ? liked
               : onic_part(liked, (uint64_t)fs.f_bavail * fs.f_frsize, processes);
}

bool onic_segment_private(size_t size, onic_segment_t *segment)
{
    return size <= SIZE_MAX / 2 && map(-1, MAP_PRIVATE | MAP_ANONYMOUS, size, segment);
}

bool onic_segment_fill(const onic_mapped_t *mapped, const onic_file_key_t *file, size_t from,
                       size_t len)
{
#ifdef MADV_POPULATE_WRITE
    int rc;

    do {
        rc = madvise((char *)mapped->base + from, len, MADV_POPULATE_WRITE);
    } while (rc != 0 && errno == EINTR);
    if (rc == 0 || errno != EINVAL)
        return rc == 0;
#endif
    /* Before Linux 5.14. */
    const int fd = onic_file_open(file, O_RDWR);
    const bool filled = fd >= 0 && reserve(fd, mapped->from + from, mapped->from + from + len);

    if (fd >= 0)
        close(fd);
    return filled;
}

void onic_segment_unmap(onic_segment_t *segment)
{
    if (segment->base != NULL) {
        (void)munmap(segment->base, mapped_size(segment->size));
        segment->base = NULL;
        segment->size = 0;
    }
}
