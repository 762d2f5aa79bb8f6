/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/* ranks: 2-3 */
/* windows: create dynamic */
/* methods: auto cma sieve pack pipeline */
/* p2p: auto copy pipeline */
/**
 * @file
 * Windows and messages in memory that the kernel does not copy from one process to another, all of
 * it or the end: secret memory (memfd_secret), as that of devices. Data goes another way, nothing
 * is an error, and the kernel is asked once for each window and target and direction, and once for
 * each sender. Another window of usual memory is not concerned.
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "test/mpi/refused.h"

/** What may be locked is little for most users. */
enum { END = 1 << 16 };

#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif

/** In place of what is at `at`, where that is given. NULL where the kernel has no such memory. */
static unsigned char *secret(void *at, size_t bytes)
{
    const int fd = (int)syscall(SYS_memfd_secret, 0);
    unsigned char *memory = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0)
        memory = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (at != NULL ? MAP_FIXED : 0),
                      fd, 0);
    if (fd >= 0)
        close(fd);
    return memory != MAP_FAILED ? memory : NULL;
}

/** Usual memory, the last `bytes` of which are secret. NULL as above. */
static unsigned char *usual(size_t bytes)
{
    unsigned char *memory =
        mmap(NULL, REFUSED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        tl_die("no memory");
    return bytes == 0 || secret(memory + REFUSED_BYTES - bytes, bytes) != NULL ? memory : NULL;
}

/** Does the kernel refuse it? */
static bool is_refused(const unsigned char *at)
{
    unsigned char word[8];
    const struct iovec here = {word, sizeof(word)};
    const struct iovec there = {(void *)(uintptr_t)at, sizeof(word)};

    return syscall(SYS_process_vm_readv, getpid(), &here, 1, &there, 1, 0) != sizeof(word);
}

static void messages(unsigned char *from, unsigned char *to)
{
    const int before = refused_calls();

    for (int i = 0; i < 4; i++)
        refused_message(from, to, i);
    TL_CHECK(refused_calls() - before <= 1, "the kernel was asked %d times",
             refused_calls() - before);
}

static void window(tl_kind_t kind, unsigned char *memory, int most)
{
    tl_window_t w = refused_window(kind, memory);
    const int before = refused_calls();

    refused_accesses(&w);
    refused_accesses(&w);
    TL_CHECK(refused_calls() - before <= most, "window %s: the kernel was asked %d times",
             tl_kind_name(kind), refused_calls() - before);
    refused_window_free(&w, memory);
}

int main(int argc, char **argv)
{
    unsigned char *plain, *end, *all, *to;
    int have;

    tl_init(&argc, &argv, MPI_THREAD_SINGLE);
    plain = usual(0);
    to = usual(0);
    end = usual(END);
    all = secret(NULL, REFUSED_BYTES);
    have = end != NULL && is_refused(end + REFUSED_BYTES - END);
    TL_MPI(MPI_Allreduce(MPI_IN_PLACE, &have, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD));
    if (!have)
        tl_skip("there is no memory that the kernel does not copy");
    /* It is more than some may lock. */
    have = all != NULL;
    TL_MPI(MPI_Allreduce(MPI_IN_PLACE, &have, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD));
    messages(end, to);
    messages(plain, end);
    for (tl_kind_t kind = tl_first_kind(); kind < TL_KINDS; kind = tl_next_kind(kind)) {
        window(kind, end, 2);
        if (have)
            window(kind, all, 2);
        window(kind, plain, 0);
    }
    if (have)
        messages(all, to);
    return tl_finish();
}
