/*
 * Copyright (c) 2026 The ompi-nic authors. All rights reserved.
 * SPDX-License-Identifier: BSD-3-Clause
 */
/** @file Segments: descriptors and names, shares, and space, over a posix_fallocate of the test's
 *  own. */
#include "common/transport/shm/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test/unit/unit.h"

enum { CALLS_MAX = 64, PAGE = 4096 };
static const size_t piece_max = (size_t)256 << 20;

/* ---- the kernel ------------------------------------------------------------------------------ */

static struct {
    int fail_after; /* calls that succeed before there is no space; -1: all do */
    int real;       /* calls that really reserve */
    int calls;
    off_t from[CALLS_MAX];
    off_t to[CALLS_MAX];
} kernel;

/* Stands in for that of libc. As Linux before 6.10 does: a signal that may come undoes everything,
 * and here one always comes. */
int posix_fallocate(int fd, off_t from, off_t len)
{
    sigset_t blocked;

    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    if (!sigismember(&blocked, SIGPROF) || !sigismember(&blocked, SIGALRM))
        return EINTR;
    UNIT_CHECK((size_t)len <= piece_max);
    if (kernel.fail_after >= 0 && kernel.calls >= kernel.fail_after)
        return ENOSPC;
    UNIT_CHECK(kernel.calls < CALLS_MAX);
    kernel.from[kernel.calls] = from;
    kernel.to[kernel.calls++] = from + len;
    return kernel.calls > kernel.real || syscall(SYS_fallocate, fd, 0, from, len) == 0 ? 0 : errno;
}

static void reset(void)
{
    memset(&kernel, 0, sizeof(kernel));
    kernel.fail_after = -1;
    kernel.real = CALLS_MAX;
}

static bool exists(const char *name)
{
    const int fd = shm_open(name, O_RDWR, 0);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static size_t used(int fd)
{
    struct stat status;

    ck_assert_int_eq(fstat(fd, &status), 0);
    return (size_t)status.st_blocks * 512;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static int count_descriptors(void)
{
    int n = 0;

    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* Only who must be found by name has one; each reserves its share. */
START_TEST(reserved_by_shares)
{
    const size_t size = 4 << 20;
    const int before = count_descriptors();
    onic_segment_key_t key, copy;
    onic_segment_t first, second, third;

    reset();
    ck_assert(onic_segment_make(size, PAGE, 2, _i == 1, &key, &first));
    ck_assert(onic_segment_reserve(&key));
    copy = key;
    ck_assert_int_eq(key.name[0] != '\0', _i == 1);
    ck_assert(key.name[0] == '\0' || exists(key.name));
    const int fd =
        key.name[0] != '\0' ? shm_open(key.name, O_RDWR, 0) : onic_file_open(&key.file, O_RDWR);
    ck_assert_uint_ge(used(fd), size / 2);
    ck_assert_uint_lt(used(fd), size);
    ck_assert_int_eq(onic_segment_join(&key, size, 1, &second), ONIC_JOINED);
    ck_assert_uint_ge(used(fd), size);
    close(fd);
    onic_segment_withdraw(&key);
    ck_assert_uint_eq(key.size, 0);
    onic_segment_withdraw(&key);
    ck_assert(copy.name[0] == '\0' || !exists(copy.name));
    ck_assert_int_eq(onic_segment_join(&copy, size, 1, &third),
                     _i == 1 ? ONIC_NOT_JOINED : ONIC_NEEDS_NAME);
    ck_assert_int_eq(count_descriptors(), before);
    memset(first.base, 0x5a, size);
    ck_assert_int_eq(((unsigned char *)second.base)[size - 1], 0x5a);
    onic_segment_unmap(&first);
    onic_segment_unmap(&second);
}
END_TEST

/* As much at the beginning as is asked for, and no share. */
START_TEST(reserved_in_part)
{
    onic_segment_key_t key;
    onic_segment_t segment;

    reset();
    ck_assert(onic_segment_make(100 * PAGE, 2 * PAGE, 1, _i == 1, &key, &segment));
    ck_assert_int_eq(kernel.calls, 2);
    ck_assert_int_eq(kernel.from[1], 0);
    ck_assert_int_eq(kernel.to[1], 2 * PAGE);
    onic_segment_withdraw(&key);
    onic_segment_unmap(&segment);
}
END_TEST

START_TEST(reserved_at_once)
{
    const int before = count_descriptors();
    onic_segment_key_t key;
    onic_segment_t segment;

    reset();
    ck_assert(onic_segment_make(100, 1, 1, _i == 1, &key, &segment));
    onic_segment_withdraw(&key);
    onic_segment_unmap(&segment);
    /* The first is for the length. */
    kernel.calls = 0;
    kernel.fail_after = 1;
    ck_assert(!onic_segment_make(100, 1, 1, _i == 1, &key, &segment));
    ck_assert_uint_eq(key.size, 0);
    kernel.calls = kernel.fail_after = 0;
    ck_assert(!onic_segment_make(100, 1, 1, _i == 1, &key, &segment));
    ck_assert_uint_eq(key.size, 0);
    ck_assert_int_eq(count_descriptors(), before);
}
END_TEST

/* A descriptor's number may be used again for something else, which is then not what is meant. */
START_TEST(another_file_is_refused)
{
    onic_segment_key_t key, other;
    onic_segment_t segment, second, third;
    const int before = count_descriptors();

    reset();
    ck_assert(onic_segment_make(5000, 1, 1, false, &key, &segment));
    ck_assert(onic_segment_make(5000, 1, 1, false, &other, &second));
    const onic_segment_key_t copy = key;
    onic_segment_withdraw(&key);
    ck_assert_int_eq(dup2((int)other.file.fd, (int)copy.file.fd), (int)copy.file.fd);
    ck_assert_int_eq(onic_segment_join(&copy, 5000, 1, &third), ONIC_NEEDS_NAME);
    ck_assert_int_eq(close((int)copy.file.fd), 0);
    ck_assert_int_eq(onic_segment_join(&copy, 5000, 1, &third), ONIC_NEEDS_NAME);
    onic_segment_withdraw(&other);
    onic_segment_unmap(&segment);
    onic_segment_unmap(&second);
    ck_assert_int_eq(count_descriptors(), before);
}
END_TEST

static int compare(const void *a, const void *b)
{
    const off_t x = *(const off_t *)a, y = *(const off_t *)b;

    return (x > y) - (x < y);
}

/* All shares together are the whole, and no byte is in two. */
START_TEST(shares_cover_everything)
{
    unit_random_t r = {unit_seed() + (uint64_t)_i};
    const size_t size = 1 + unit_below(&r, unit_once_in(&r, 2) ? 20 * PAGE : (size_t)3 << 30);
    const int shares = 1 + (int)unit_below(&r, 12), members = shares + (int)unit_below(&r, 3);
    onic_segment_key_t key;
    onic_segment_t segment[16];

    reset();
    /* The first is for the length. */
    kernel.real = 1;
    ck_assert(onic_segment_make(size, 1, shares, _i % 2 == 1, &key, &segment[0]));
    kernel.calls = 1;
    ck_assert(onic_segment_reserve(&key));
    for (int i = 1; i < members; i++)
        ck_assert_int_eq(onic_segment_join(&key, size, i, &segment[i]), ONIC_JOINED);
    qsort(kernel.from + 1, (size_t)kernel.calls - 1, sizeof(off_t), compare);
    qsort(kernel.to + 1, (size_t)kernel.calls - 1, sizeof(off_t), compare);
    ck_assert_int_eq(kernel.from[1], 0);
    for (int i = 2; i < kernel.calls; i++)
        ck_assert_int_eq(kernel.from[i], kernel.to[i - 1]);
    ck_assert_uint_ge((size_t)kernel.to[kernel.calls - 1], size + sizeof(uint64_t));
    for (int i = 0; i < members; i++)
        onic_segment_unmap(&segment[i]);
    onic_segment_withdraw(&key);
}
END_TEST

START_TEST(strangers_are_refused)
{
    onic_segment_key_t key, wrong;
    onic_segment_t segment, other;

    reset();
    ck_assert(onic_segment_make(5000, 1, 2, _i == 1, &key, &segment));
    wrong = key;
    wrong.nonce++;
    ck_assert_int_eq(onic_segment_join(&wrong, 5000, 1, &other), ONIC_NOT_JOINED);
    wrong = key;
    wrong.size = 50000;
    ck_assert_int_eq(onic_segment_join(&wrong, 50000, 1, &other), ONIC_NOT_JOINED);
    ck_assert_int_eq(onic_segment_join(&key, 50000, 1, &other), ONIC_NOT_JOINED);
    onic_segment_withdraw(&key);
    ck_assert_int_eq(onic_segment_join(&key, 5000, 1, &other), ONIC_NOT_JOINED);
    ck_assert(!onic_segment_make(SIZE_MAX, 1, 1, _i == 1, &key, &other));
    ck_assert_uint_eq(key.size, 0);
    onic_segment_unmap(&segment);
}
END_TEST

/* All processes together, each with both of its parts, leave three quarters. */
START_TEST(parts_leave_room)
{
    unit_random_t r = {unit_seed() + (uint64_t)_i};
    const unsigned n = 1 + (unsigned)unit_below(&r, 1 << unit_below(&r, 12));
    const uint64_t free = unit_below(&r, UINT64_C(1) << unit_below(&r, 50));
    const size_t liked = unit_below(&r, UINT64_C(1) << unit_below(&r, 30));
    const size_t part = onic_part(liked, free, n);

    UNIT_CHECK(part <= liked);
    UNIT_CHECK(2 * n * (uint64_t)part <= free / 4);
    UNIT_CHECK(part == liked || (part + 1) * n * (uint64_t)ONIC_PART_OF + ONIC_PART_OF > free);
    UNIT_CHECK(onic_part(liked, UINT64_MAX, n) == liked);
}
END_TEST

int main(void)
{
    unit_in_one_process();
    return UNIT_RUN("segment", UNIT_LOOP(shares_cover_everything, 0, 100),
                    UNIT_LOOP(reserved_by_shares, 0, 2), UNIT_LOOP(reserved_in_part, 0, 2),
                    UNIT_LOOP(reserved_at_once, 0, 2), UNIT_LOOP(strangers_are_refused, 0, 2),
                    UNIT_LOOP(parts_leave_room, 0, 1000), UNIT_ONCE(another_file_is_refused));
}
