/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE
#include "common/transport/shm/presence.h"
#include "common/transport/shm/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/** Between two marks, of the processor's counter: a microsecond at most. Reading the kernel's clock
 *  may take longer than all else in a progress that finds nothing (kvm-clock: 27 of 50 ns). */
#define MARK_COUNTS 1024

/** Stands in where there is no memory for a page. */
static onic_presence_t nobody_looks;

/* Threads that make progress look at it while one opens the transport. */
static onic_presence_t *_Atomic mine = &nobody_looks;

void onic_presence_use(onic_presence_t *page)
{
    atomic_store_explicit(&mine, page != NULL ? page : &nobody_looks, memory_order_release);
}

onic_presence_t *onic_presence_mine(void)
{
    return atomic_load_explicit(&mine, memory_order_acquire);
}

void onic_presence_mark(void)
{
#if defined(__x86_64__)
    /* The processor's counter tells when it is worth reading the clock again, whatever that is.
     * Another processor's may be behind: that is worth it, too. */
    static atomic_uint_fast64_t marked;
    const uint64_t count = __builtin_ia32_rdtsc();
    if (count - atomic_load_explicit(&marked, memory_order_relaxed) < MARK_COUNTS)
        return;
    atomic_store_explicit(&marked, count, memory_order_relaxed);
#endif
    atomic_store_explicit(&onic_presence_mine()->seen, onic_now_nsec(), memory_order_relaxed);
}

void onic_presence_offer(const onic_segment_key_t *key)
{
    onic_presence_t *page = onic_presence_mine();
    if (key != NULL)
        page->offer = *key;
    atomic_store_explicit(&page->offers, key != NULL, memory_order_release);
}

/* ---- the pipe ------------------------------------------------------------------------------ */

int onic_wake_pipe_open(void)
{
    int ends[2], fd = -1;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0) {
        const onic_file_key_t key = onic_file_offer(ends[0]);
        fd = onic_file_open(&key, O_RDWR);
        close(ends[0]);
        close(ends[1]);
    }
    return fd;
}

void onic_wake_pipe_close(int fd)
{
    if (fd >= 0)
        close(fd);
}

void onic_wake_pipe_write(int fd, char what)
{
    /* A full pipe is as good: the thread is being woken already. */
    while (write(fd, &what, 1) < 0 && errno == EINTR) {
    }
}

/** For reading, too: a pipe without a reader would end the writer by a signal. */
static int open_pipe(const onic_file_key_t *pipe)
{
    return onic_file_open(pipe, O_RDWR);
}

bool onic_wake_can(const onic_file_key_t *pipe)
{
    const int fd = open_pipe(pipe);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

void onic_wake_peer(const onic_file_key_t *pipe)
{
    const int fd = open_pipe(pipe);
    if (fd >= 0) {
        onic_wake_pipe_write(fd, ONIC_WAKE_PEER);
        close(fd);
    }
}

bool onic_wake_pipe_read(int fd)
{
    char bytes[64];
    bool by_peer = false;
    for (;;) {
        const ssize_t n = read(fd, bytes, sizeof(bytes));
        if (n > 0)
            by_peer = by_peer || memchr(bytes, ONIC_WAKE_PEER, (size_t)n) != NULL;
        else if (n == 0 || errno != EINTR)
            return by_peer;
    }
}
